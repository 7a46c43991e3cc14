"""The index: numbers that never go against an incidence, and what they prove."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from graphsvc.domain.notices import look_alike
from graphsvc.kernels.nodes import EVENT, Nodes
from graphsvc.kernels.order import Numbers
from graphsvc.kernels.rows import Order, Question, Rows

NOBODY = Order(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_))
Events = frozenset[int]
NOTHING: tuple[Events, Events] = (frozenset(), frozenset())


class Tenant:
    """Agents that declare what they like, their rows, and the numbers that follow them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.agents, self.events = rng, rng.randrange(2, 14), rng.randrange(2, 16)
        self.rows, self.numbers, self.nodes = Rows(), Numbers(), Nodes(look_alike)
        self.declared: dict[int, tuple[Events, Events]] = {}

    def node(self, kind: int, name: int) -> int:
        return int(self.nodes.add([kind], [str(name)])[0])

    def some(self, least: int = 0) -> Events:
        return frozenset(self.rng.sample(range(self.events), self.rng.randint(least, min(3, self.events))))

    def change(self) -> None:
        """Publish, replace or retire one agent or three."""
        pairs: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        changed = self.rng.sample(range(self.agents), self.rng.choice([1, 1, 1, min(3, self.agents)]))
        for agent in changed:
            new = NOTHING if self.rng.random() < 0.15 else (self.some(), self.some())
            old, node = self.declared.get(agent, NOTHING), self.node(0, agent)
            self.declared[agent] = new
            for present, more, less in ((False, old, new), (True, new, old)):
                pairs[present] += [(node, self.node(EVENT, event)) for event in more[0] - less[0]]
                pairs[present] += [(self.node(EVENT, event), node) for event in more[1] - less[1]]
        self.rows.add_nodes(self.nodes.count - self.rows.nodes)
        for present, listed in pairs.items():
            sources, targets = np.array(listed, np.int32).reshape(-1, 2).T.copy()
            self.rows.change(sources, targets, present=present)
        self.numbers.follow(self.rows, [self.node(0, agent) for agent in changed])

    def graph(self) -> nx.DiGraph:
        return nx.DiGraph((node, int(target)) for node in range(self.rows.nodes) for target in self.rows.ahead.row(node))

    def question(self) -> Question:
        root = self.node(0, self.rng.randrange(self.agents))
        emits, hears = (np.array([self.node(EVENT, event) for event in self.some(1)], np.int32) for _ in range(2))
        return Question(self.rows, NOBODY, root, emits, hears, 10, 10**6)


def closes_a_loop(graph: nx.DiGraph, question: Question) -> bool:
    graph = graph.subgraph(set(graph) - {question.root})
    ahead = [listener for event in question.emits if event in graph for listener in graph[event]]
    return any(nx.has_path(graph, agent, event) for agent in ahead for event in question.hears if event in graph)


@pytest.mark.promise("G-11")
@pytest.mark.parametrize("seed", range(80))
def test_numbers_stay_right_and_prove_nothing_false_through_any_history(seed: int) -> None:
    rng = random.Random(seed)
    tenant = Tenant(rng)
    for _ in range(60):
        tenant.change()
        if rng.random() < 0.05:
            tenant.numbers.rebuild(tenant.rows)
        graph, number = tenant.graph(), tenant.numbers.of
        assert all(0 < number[source] <= number[target] for source, target in graph.edges)
        question = tenant.question()
        closes = closes_a_loop(graph, question)
        assert not (closes and tenant.numbers.closes_nothing(question))
        known = [[event for event in events if event < tenant.rows.nodes] for events in (question.emits, question.hears)]
        if all(known):
            assert tenant.numbers.leads_nowhere(question) == (not closes)


@pytest.mark.parametrize("seed", range(40))
def test_rebuilt_numbers_are_equal_within_a_component_and_nowhere_else(seed: int) -> None:
    tenant = Tenant(random.Random(seed))
    for _ in range(20):
        tenant.change()
    tenant.numbers.rebuild(tenant.rows)
    graph = tenant.graph()
    component = {node: place for place, nodes in enumerate(nx.strongly_connected_components(graph)) for node in nodes}
    number = tenant.numbers.of
    for one in graph:
        for other in graph:
            assert (number[one] == number[other]) == (component[one] == component[other])


def test_a_walk_that_would_look_at_too_much_proves_nothing() -> None:
    rows, numbers = Rows(), Numbers()
    chain = np.arange(101, dtype=np.int32)
    rows.add_nodes(101)
    rows.change(chain[:-1], chain[1:], present=True)
    numbers.rebuild(rows)
    ends = np.array([0], np.int32), np.array([99], np.int32)
    asked = {most: Question(rows, NOBODY, 101, *ends, 10, most) for most in (10, 1_000)}
    numbers.of[99] = numbers.of[100]  # as coarse as removals could have left them
    rows.change(chain[50:51], chain[51:52], present=False)
    assert not numbers.closes_nothing(asked[10])
    assert not numbers.leads_nowhere(asked[10])
    assert numbers.leads_nowhere(asked[1_000])
