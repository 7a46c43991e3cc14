"""From a graph and a proposed version to what one reader may see of its loops."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from graphsvc.domain.limits import Limits
from graphsvc.domain.model import declare
from graphsvc.domain.names import parse_agent
from graphsvc.domain.report import BreakingSet, Loop, Notice, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.judge import judge
from graphsvc.kernels import reference
from tests.graphsvc.folding import KERNELS, declaration_of, fold, reader
from tests.oracle import Agent, agent


def judged(published: list[Agent], proposed: Agent, scopes: tuple[str, ...] = ("*",), **limits: int) -> Report:
    agent_ref, declared = parse_agent(proposed.ref), declaration_of(proposed)
    return judge(fold(published), agent_ref, declared, reader(scopes), Limits(**limits), reference.search, None)


def path(loop: Loop) -> list[str]:
    return ["?" if one is None else one.text for one in loop.agents]


def hops(loop: Loop) -> list[tuple[str, ...] | None]:
    return [hop.events for hop in loop.hops]


def notices(report: Report, *kinds: type[Notice]) -> list[Notice]:
    return [notice for notice in report.notices if isinstance(notice, kinds)]


# Hops


@pytest.mark.promise("G-1", "G-14")
def test_a_hop_lists_every_shared_event_sorted_and_none_that_is_not_shared() -> None:
    a = agent("a", ["back", "again"], ["z", "9", "10", "é", "only mine"])
    b = agent("b", ["é", "10", "z", "9", "only heard"], ["again", "back", "for nobody"])
    assert [hops(loop) for loop in judged([a, b], a).loops] == [[("10", "9", "z", "é"), ("again", "back")]]


RING = [
    agent("a", ["da"], ["ab"], "acme"),
    agent("b", ["ab"], ["bc"], "globex"),
    agent("c", ["bc"], ["cd"], "initech"),
    agent("d", ["cd"], ["da"], "acme"),
]


@pytest.mark.promise("G-13", "G-14")
@pytest.mark.parametrize(
    ("scopes", "names", "events"),
    [
        (("*",), ["acme:a", "globex:b", "initech:c", "acme:d"], [("ab",), ("bc",), ("cd",), ("da",)]),
        (("acme",), ["acme:a", "?", "?", "acme:d"], [("ab",), None, ("cd",), ("da",)]),
        (("acme", "globex"), ["acme:a", "globex:b", "?", "acme:d"], [("ab",), ("bc",), ("cd",), ("da",)]),
        (("initech",), ["acme:a", "?", "initech:c", "?"], [("ab",), ("bc",), ("cd",), ("da",)]),
        ((), ["acme:a", "?", "?", "?"], [("ab",), None, None, ("da",)]),
    ],
)
def test_a_hops_events_are_shown_where_one_of_its_ends_is_readable(
    scopes: tuple[str, ...], names: list[str], events: list[tuple[str, ...] | None]
) -> None:
    loop = judged(RING, RING[0], scopes).loops[0]
    assert (path(loop), hops(loop), loop.length) == (names, events, 4)


@pytest.mark.promise("G-13", "P-12")
def test_the_agent_asked_about_is_named_whoever_asks() -> None:
    own = agent("a", ["x"], ["x"], "acme")
    assert [path(loop) for loop in judged([], own, ()).loops] == [["acme:a"]]


@pytest.mark.promise("G-14", "G-15")
def test_two_appearances_of_one_hidden_agent_are_told_apart_by_nothing() -> None:
    a = agent("a", ["back"], ["out"], "acme")
    hidden = agent("h", ["out", "via"], ["back"], "globex")
    b = agent("b", ["out"], ["via"], "acme")
    loops = judged([a, hidden, b], a, ("acme",)).loops
    assert [path(loop) for loop in loops] == [["acme:a", "?"], ["acme:a", "acme:b", "?"]]
    alike = [agent(name, ["out"], ["back"], "globex") for name in ("g", "h", "i")]
    seen = judged([a, *alike], a, ("acme",)).loops
    assert len(seen) == 3
    assert len({repr(loop) for loop in seen}) == 1


# Marks

PLACES = ("acme/platform", "acme/finance", "acme", "globex/platform", "globex", "*")
PASSES = {
    "acme/platform": {"acme/platform", "acme", "*"},
    "acme/finance": {"acme/finance", "acme", "*"},
    "acme": {"acme", "acme/platform", "acme/finance", "*"},
    "globex/platform": {"globex/platform", "globex", "*"},
    "globex": {"globex", "globex/platform", "*"},
    "*": set(PLACES),
}


@pytest.mark.promise("G-6")
@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("target", PLACES)
def test_a_hop_whose_artifacts_may_not_pass_is_marked_and_shown_all_the_same(source: str, target: str) -> None:
    a = Agent("a", frozenset(["back"]), frozenset(["out"]), source, frozenset(["out"]))
    b = agent("b", ["out"], ["back"], target)
    loop = judged([a, b], a).loops[0]
    assert [hop.barrier for hop in loop.hops] == [target not in PASSES[source], False]
    assert hops(loop) == [("out",), ("back",)]


@pytest.mark.promise("G-6")
def test_one_event_without_artifacts_is_a_way_past_the_barrier() -> None:
    b = agent("b", ["one", "two"], ["back"], "globex")
    both = frozenset(["one", "two"])
    for guarded, marked in ((both, True), (frozenset(["one"]), False), (frozenset(), False)):
        a = Agent("a", frozenset(["back"]), both | {"not heard"}, "acme", guarded)
        assert judged([a, b], a).loops[0].hops[0].barrier is marked


@pytest.mark.promise("G-6", "G-14")
def test_the_barrier_is_marked_only_where_both_ends_are_readable() -> None:
    a = Agent("a", frozenset(["back"]), frozenset(["out"]), "acme", frozenset(["out"]))
    b = Agent("b", frozenset(["out"]), frozenset(["back"]), "globex", frozenset(["back"]))
    marks = {
        scopes: [hop.barrier for hop in judged([a, b], a, scopes).loops[0].hops]
        for scopes in (("*",), ("acme", "globex"), ("acme",))
    }
    assert marks == {("*",): [True, True], ("acme", "globex"): [True, True], ("acme",): [False, False]}
    # The agent asked about may be named even by those who may not read its scope.
    assert [hop.barrier for hop in judged([a, b], a, ("globex",)).loops[0].hops] == [True, True]


def ring(length: int) -> list[Agent]:
    return [agent(f"n{i}", [f"e{i}"], [f"e{(i + 1) % length}"]) for i in range(length)]


@pytest.mark.promise("G-6")
@pytest.mark.parametrize(
    ("length", "chain_limit", "over"), [(8, 8, False), (9, 8, True), (2, 2, False), (3, 2, True), (9, 9, False)]
)
def test_a_loop_of_more_agents_than_a_chain_has_hops_is_marked(length: int, chain_limit: int, over: bool) -> None:
    loop = judged(ring(length), ring(length)[0], chain_limit=chain_limit).loops[0]
    assert (loop.length, loop.over_chain_limit) == (length, over)


# The own event


@pytest.mark.promise("G-4")
def test_the_own_event_loop_comes_first_and_takes_no_place_from_the_others() -> None:
    a = agent("a", ["x", "own", "own too"], ["y", "own too", "own"])
    others = [agent(name, ["y"], ["x"]) for name in "bcd"]
    report = judged([a, *others], a, max_loops=3)
    assert [path(loop) for loop in report.loops] == [["*:a"], ["*:a", "*:b"], ["*:a", "*:c"], ["*:a", "*:d"]]
    assert [loop.is_self for loop in report.loops] == [True, False, False, False]
    assert hops(report.loops[0]) == [("own", "own too")]
    assert report.verification is Verification.COMPLETE
    fewer = judged([a, *others], a, max_loops=2)
    assert (len(fewer.loops), fewer.verification) == (3, Verification.MORE_LOOPS)


@pytest.mark.promise("G-4", "G-8", "G-9")
def test_the_own_event_loop_is_no_found_loop_when_the_walk_ends_early() -> None:
    a, b = agent("a", ["x", "own"], ["y", "own"]), agent("b", ["y"], ["x"])
    report = judged([a, b], a, max_visits=0)
    assert [path(loop) for loop in report.loops] == [["*:a"]]
    assert report.verification is Verification.NOT_VERIFIED


@pytest.mark.promise("G-4", "G-3")
def test_whether_an_agent_hears_itself_is_read_from_the_proposed_version() -> None:
    old, new = agent("a", ["x"], ["x"]), agent("a", ["x"], ["y"])
    assert judged([old], new).loops == ()
    assert [path(loop) for loop in judged([new], old).loops] == [["*:a"]]


# Notices


@pytest.mark.promise("G-17")
def test_events_nobody_hears_and_triggers_nobody_emits_are_noticed_by_name() -> None:
    a = agent("a", ["fed", "b none", "a none", "own"], ["heard", "z none", "y none", "own"])
    others = [agent("b", ["heard"], ["fed"]), agent("c", ["fed"], ["heard"])]
    assert notices(judged([a, *others], a), UnheardEvent, UnfedTrigger) == [
        UnheardEvent("y none"),
        UnheardEvent("z none"),
        UnfedTrigger("a none"),
        UnfedTrigger("b none"),
    ]


@pytest.mark.promise("G-17", "G-16")
def test_agents_out_of_sight_count_as_nobody() -> None:
    a = agent("a", ["in"], ["out"], "acme")
    hidden = [agent("s", [], ["in"], "globex"), agent("t", ["out"], [], "globex")]
    unseen = [UnheardEvent("out"), UnfedTrigger("in")]
    assert notices(judged([a, *hidden], a), UnheardEvent, UnfedTrigger) == []
    assert notices(judged([a, *hidden], a, ("acme", "globex")), UnheardEvent, UnfedTrigger) == []
    assert notices(judged([a, *hidden], a, ("acme",)), UnheardEvent, UnfedTrigger) == unseen
    assert notices(judged([a], a, ("acme",)), UnheardEvent, UnfedTrigger) == unseen


@pytest.mark.promise("G-17", "G-3")
def test_the_version_that_is_replaced_neither_hears_nor_feeds_the_new_one() -> None:
    old = agent("a", ["out"], ["in"])
    assert notices(judged([old], agent("a", ["in"], ["out"])), UnheardEvent, UnfedTrigger) == [
        UnheardEvent("out"),
        UnfedTrigger("in"),
    ]


def hint(trigger: str, emitted: dict[str, str], scopes: tuple[str, ...] = ("*",)) -> str | None:
    """The hint for a trigger among events, each emitted by an agent of its own in that scope."""
    a = agent("a", [trigger], [], "acme")
    others = [agent(f"emits {event}", [], [event], scope) for event, scope in emitted.items()]
    found = notices(judged([a, *others], a, scopes), UnfedTrigger)
    assert [notice.event for notice in found] == [trigger]
    return found[0].hint


@pytest.mark.promise("G-18")
@pytest.mark.parametrize(
    ("trigger", "emitted"),
    [
        ("orders", "order"),
        ("order", "orders"),
        ("Order", "order"),
        ("order.created", "order_created"),
        ("order-created", "OrderCreated"),
        ("ecommerce.orders/OrderCreated", "ecommerce.order/OrderCreated"),
        ("ecommerce.order/OrderCreated", "ecommerce.orders/OrderCreated"),
    ],
)
def test_a_trigger_nobody_emits_gets_the_event_it_may_have_meant(trigger: str, emitted: str) -> None:
    assert hint(trigger, {emitted: "acme", "something else": "acme"}) == emitted


@pytest.mark.promise("G-18")
def test_without_a_similar_event_there_is_no_hint() -> None:
    assert hint("orders", {"border": "acme", "order.created": "acme", "reorder": "acme"}) is None
    assert hint("orders", {}) is None


@pytest.mark.promise("G-18", "G-11")
def test_among_several_similar_events_the_first_by_name_is_the_hint_whatever_the_order_of_arrival() -> None:
    alike = ["order", "Orders", "ORDER", "Order"]
    for order in permutations(alike):
        assert hint("orders", dict.fromkeys(order, "acme")) == "ORDER"


@pytest.mark.promise("G-18", "G-16")
def test_a_hint_names_only_what_a_readable_agent_emits() -> None:
    emitted = {"ORDER": "globex", "order": "acme"}
    assert hint("orders", emitted) == "ORDER"
    assert hint("orders", emitted, ("acme",)) == "order"
    assert hint("orders", {"ORDER": "globex"}, ("acme",)) is None
    # An event that is only heard is no source of anything.
    a, b = agent("a", ["orders"], []), agent("b", ["order"], [])
    assert notices(judged([a, b], a), UnfedTrigger) == [UnfedTrigger("orders")]


@pytest.mark.promise("G-19")
def test_the_breaking_set_counts_the_loops_named_and_those_alone() -> None:
    a = agent("a", ["x1", "x2"], ["y"])
    published = [a, agent("b", ["y"], ["x1"]), agent("c", ["y"], ["x2"])]
    assert notices(judged(published, a), BreakingSet) == [BreakingSet((), ("y",))]
    (one,) = notices(judged(published, a, max_loops=1), BreakingSet)
    assert isinstance(one, BreakingSet)
    assert len(one.triggers) + len(one.events) == 1
    assert "x2" not in one.triggers
    assert notices(judged(published, agent("a", ["x1"], [])), BreakingSet) == []


@pytest.mark.promise("G-19")
@pytest.mark.parametrize("seed", range(8))
def test_a_version_without_its_breaking_set_closes_none_of_the_loops(seed: int) -> None:
    rng = random.Random(seed)
    events = [f"e{i}" for i in range(7)]
    published = [agent(f"n{i}", rng.sample(events, 2), rng.sample(events, 2)) for i in range(7)]
    proposed = agent("n0", rng.sample(events, 4), rng.sample(events, 4))
    report = judged(published, proposed, max_loops=1_000)
    assert report.loops
    (found,) = notices(report, BreakingSet)
    assert isinstance(found, BreakingSet)
    assert judged(published, proposed.without(found.triggers, found.events)).loops == ()
    for kept in [*found.triggers, *found.events]:
        less = proposed.without([t for t in found.triggers if t != kept], [e for e in found.events if e != kept])
        assert judged(published, less).loops, kept


@pytest.mark.promise("G-11")
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_report_does_not_depend_on_the_order_in_which_a_declaration_lists_its_events(kernel: str) -> None:
    graph = fold(RING)
    reports = {
        judge(
            graph, parse_agent("acme:a"), declare(list(emits), list(hears)), reader(["acme"]), Limits(), KERNELS[kernel], 4
        ).digest
        for emits in permutations(["ab", "q", "p"])
        for hears in permutations(["da", "s", "r"])
    }
    assert len(reports) == 1
