"""The graph as a fold of the log: places of agents, versions that come and go, sizes."""

from __future__ import annotations

import random

import pytest

from graphsvc.domain.names import parse_agent
from tests import oracle
from tests.graphsvc.folding import KERNELS, Asked, ask, fold, refs
from tests.oracle import Agent, agent

kernels = pytest.mark.parametrize("kernel", KERNELS)


def around(centre: str, names: list[str]) -> list[Agent]:
    """Agents of which each is on a loop of two with the centre, over one event each way."""
    return [agent(centre, ["back"], ["out"]), *(agent(name, ["out"], ["back"]) for name in names)]


@pytest.mark.promise("G-5")
@kernels
@pytest.mark.parametrize(
    "arrival",
    ["ascending", "descending", "inwards", "shuffled"],
)
def test_loops_of_one_length_come_by_name_however_the_agents_arrive(kernel: str, arrival: str) -> None:
    names = [f"{i:03}" for i in range(400)]
    orders = {
        "ascending": names,
        "descending": names[::-1],
        # Each comes between the two before it, where the room for numbers is halved every time.
        "inwards": [name for pair in zip(names[:200], names[:199:-1], strict=True) for name in pair],
        "shuffled": random.Random(1).sample(names, len(names)),
    }
    published = around("hub", orders[arrival])
    answer = ask(fold(published, at_once=False), published[0], kernel=KERNELS[kernel], max_loops=1_000)
    assert answer.loops == [("*:hub", f"*:{name}") for name in names]


@pytest.mark.promise("G-5")
@kernels
def test_names_are_compared_by_code_point_and_then_by_the_text_of_the_scope(kernel: str) -> None:
    in_order = ["*:10", "*:9", "*:Z", "*:a", "acme:a", "acme/a:a", "acme1:a", "*:a b", "*:ab", "*:é", "*:ﬀ", "*:😀"]
    others = [agent(ref.partition(":")[2], ["out"], ["back"], ref.partition(":")[0]) for ref in reversed(in_order)]
    hub = agent("hub", ["back"], ["out"])
    answer = ask(fold([hub, *others]), hub, kernel=KERNELS[kernel], max_loops=20)
    assert [ref for _, ref in answer.loops] == in_order


@pytest.mark.promise("G-15")
@kernels
def test_hidden_agents_come_after_readable_ones_by_first_publication(kernel: str) -> None:
    hub = agent("hub", ["back"], ["out"], "acme")
    places = [("z", "globex"), ("m", "acme"), ("a", "globex"), ("k", "initech"), ("b", "acme")]
    others = [agent(name, ["out"], ["back"], scope) for name, scope in places]
    answer = ask(fold([*others, hub]), hub, ["acme"], KERNELS[kernel])
    assert [ref for _, ref in answer.loops] == ["acme:b", "acme:m", "globex:z", "globex:a", "initech:k"]


@pytest.mark.promise("G-15")
@kernels
def test_an_agent_that_is_retired_and_published_again_keeps_its_place(kernel: str) -> None:
    hub = agent("hub", ["back"], ["out"], "acme")
    first, second = (agent(name, ["out"], ["back"], "globex") for name in ("second by name", "first by name"))
    silent = agent(first.name, scope=first.scope)
    history = [hub, first, second, silent, parse_agent(first.ref), first]
    answer = ask(fold(history), hub, ["acme"], KERNELS[kernel])
    assert answer.loops == [(hub.ref, first.ref), (hub.ref, second.ref)]


@pytest.mark.promise("G-3")
def test_a_new_version_takes_the_place_of_the_old_one_and_a_retired_agent_has_none() -> None:
    a, b = agent("a", ["x"], ["y"]), agent("b", ["y"], ["x"])
    other = agent("b", ["y"], ["z"])
    assert ask(fold([a, b]), a).loops == [(a.ref, b.ref)]
    assert ask(fold([a, b, other]), a).loops == []
    assert ask(fold([a, other, b]), a).loops == [(a.ref, b.ref)]
    assert ask(fold([a, b, parse_agent(b.ref)]), a).loops == []
    assert ask(fold([a, b, parse_agent(b.ref), b]), a).loops == [(a.ref, b.ref)]


@pytest.mark.promise("G-3")
@kernels
def test_a_version_is_judged_by_its_own_declaration_whether_its_agent_is_known_or_not(kernel: str) -> None:
    published = [agent("a", ["x"], ["y"]), agent("b", ["y"], ["x"]), agent("c", ["y", "z"], ["x"])]
    graph = fold(published)

    def loops(name: str, hears: list[str], emits: list[str]) -> Asked:
        return ask(graph, agent(name, hears, emits), kernel=KERNELS[kernel])

    assert loops("a", ["x"], ["z"]).loops == [("*:a", "*:c")]
    assert loops("a", [], ["y"]).loops == []
    assert loops("a", ["x"], ["nobody knows this one"]).loops == []
    assert loops("stranger", ["x"], ["z", "nobody knows this one"]).loops == [
        ("*:stranger", "*:c"),
        ("*:stranger", "*:c", "*:a", "*:b"),
    ]
    assert ask(graph, published[0], kernel=KERNELS[kernel]).loops == [("*:a", "*:b"), ("*:a", "*:c")]


@pytest.mark.promise("G-11")
def test_asking_changes_nothing() -> None:
    published = [agent("a", ["x"], ["y"]), agent("b", ["y"], ["x"])]
    graph = fold(published)
    before = (graph.sizes(), graph.versions(), graph.revision, graph.rows.nodes)
    for proposed in (agent("a", ["x", "new"], ["y", "newer"]), agent("new", ["y"], ["x"])):
        for kernel in KERNELS.values():
            ask(graph, proposed, kernel=kernel)
    assert (graph.sizes(), graph.versions(), graph.revision, graph.rows.nodes) == before


def test_a_graph_knows_its_versions_numbers_and_sizes() -> None:
    a, b, c = agent("a", ["x"], ["y"]), agent("b", ["y"], ["x", "lonely"]), agent("c", ["once"], [])
    graph = fold([c, b, a, agent("a", ["x"], []), parse_agent(c.ref)])
    assert graph.revision == 5
    assert [(version.agent.text, version.number) for version in graph.versions()] == [("*:a", 2), ("*:b", 1)]
    assert graph.sizes() == (2, 3, 4)
    assert (graph.published(parse_agent("*:c")), graph.last_number(parse_agent("*:c"))) == (None, 1)
    assert (graph.published(parse_agent("*:d")), graph.last_number(parse_agent("*:d"))) == (None, 0)


@pytest.mark.promise("G-25")
def test_folding_entries_one_by_one_or_in_any_batches_gives_one_graph() -> None:
    rng = random.Random(3)
    events = [f"e{i}" for i in range(8)]
    history = [agent(f"n{rng.randrange(7)}", rng.sample(events, 2), rng.sample(events, 2)) for _ in range(60)]
    current = {one.ref: one for one in history}
    one_by_one, at_once = fold(history, at_once=False), fold(history)
    assert one_by_one.versions() == at_once.versions()
    assert one_by_one.sizes() == at_once.sizes()
    for one in current.values():
        want = refs(oracle.loops(list(current.values()), one))
        for graph in (one_by_one, at_once):
            assert ask(graph, one, max_loops=1_000).loops == want
