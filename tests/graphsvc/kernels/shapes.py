"""Graphs that catch a search which wanders, expands pairs or cannot stop."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.oracle import Agent, agent

Edge = tuple[int, int]


def of_edges(edges: Iterable[Edge]) -> list[Agent]:
    """Agents by number, with an event of its own for each edge."""
    every = sorted(set(edges))
    heard: dict[int, set[str]] = {node: set() for edge in every for node in edge}
    emitted: dict[int, set[str]] = {node: set() for node in heard}
    for source, target in every:
        emitted[source].add(f"{source}>{target}")
        heard[target].add(f"{source}>{target}")
    return [agent(str(node).zfill(6), heard[node], emitted[node]) for node in sorted(heard)]


def mirrored(agents: Iterable[Agent]) -> list[Agent]:
    """The same with every edge turned round."""
    return [agent(one.name, one.emits, one.hears) for one in agents]


def incidences(agents: Iterable[Agent]) -> int:
    """How many agent-event incidences the graph has."""
    return sum(len(one.hears) + len(one.emits) for one in agents)


def diamonds(count: int) -> list[Agent]:
    """Agents 0 and 1 are a loop; behind 1 a chain of diamonds, with two ways through each, leads back to 1 only."""
    edges, tip, free = [(0, 1), (1, 0)], 1, 2
    for _ in range(count):
        left, right, end = free, free + 1, free + 2
        edges += [(tip, left), (tip, right), (left, end), (right, end)]
        tip, free = end, free + 3
    return of_edges([*edges, (tip, 1)])


def layers(count: int, width: int, last: Iterable[Agent]) -> list[Agent]:
    """Every agent of a layer starts every agent of the next over one event; `last` stands before and behind them."""
    middle = [agent(f"{i}.{j:02}", [f"hub {i}"], [f"hub {i + 1}"]) for i in range(count) for j in range(width)]
    return [*last, *middle]


def crowd_that_leads_back_to_its_own_start() -> list[Agent]:
    """v and p are a loop; three layers of sixty agents lead from p to p."""
    return layers(3, 60, [agent("v", ["to v"], ["to p"]), agent("p", ["to p", "hub 3"], ["to v", "hub 0"])])


def crowd_with_equal_loops() -> list[Agent]:
    """40 to the power of 5 loops of one length lead through v."""
    return layers(5, 40, [agent("v", ["hub 5"], ["hub 0"])])


def ring_beside_a_region(ring: int, region: int) -> list[Agent]:
    """A ring from agent 0 on. Three edges of each of its agents but the first lead into a region, where each agent has three more,
    and which leads back to agent 1 only."""
    rng = random.Random(1)
    edges = [(i, (i + 1) % ring) for i in range(ring)]
    edges += [(i, ring + rng.randrange(region)) for i in range(1, ring) for _ in range(3)]
    edges += [(ring + i, ring + rng.randrange(region)) for i in range(region) for _ in range(3)]
    edges += [(ring + i, 1) for i in range(region)]
    return of_edges(edge for edge in edges if edge[0] != edge[1])


def complete_with_an_event_for_each_edge(count: int) -> list[Agent]:
    """Every agent starts every other."""
    return of_edges((i, j) for i in range(count) for j in range(count) if i != j)


def complete_with_an_event_for_each_agent(count: int) -> list[Agent]:
    """Every agent hears every other's one event."""
    return [agent(str(i).zfill(6), [f"of {j}" for j in range(count) if j != i], [f"of {i}"]) for i in range(count)]


def complete_over_one_event(count: int) -> list[Agent]:
    """Everybody emits and hears one event."""
    return [agent(str(i).zfill(6), ["news"], ["news"]) for i in range(count)]
