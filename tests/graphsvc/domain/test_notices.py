"""Names that look alike, and what to take out of a version to break its loops."""

from __future__ import annotations

from itertools import chain, combinations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.domain.names import parse_agent
from graphsvc.domain.notices import breaking_set, look_alike
from graphsvc.domain.report import BreakingSet, Hop, Loop

ROOT, OTHER = parse_agent("acme:root"), parse_agent("acme:other")


@pytest.mark.promise("G-18")
@pytest.mark.parametrize(
    "names",
    [
        ("order", "orders", "Order", "ORDERS"),
        ("order.created", "order_created", "order-created", "order created", "Order/Created", "order:created", "orders.created"),
        ("ecommerce.orders/OrderCreated", "ecommerce.order/OrderCreated", "ecommerce.order/order_created"),
        ("CodeReady", "codeReady", "code.ready", "CODE_READY"),
        ("HTTPRequest", "http.request", "HttpRequests"),
        ("straße", "STRASSE"),
    ],
)
def test_names_that_differ_in_case_separators_or_a_plural_s_look_alike(names: tuple[str, ...]) -> None:
    assert len({look_alike(name) for name in names}) == 1


@pytest.mark.promise("G-18")
@pytest.mark.parametrize(
    ("one", "other"),
    [("order", "border"), ("order.created", "order.updated"), ("order1", "order2"), ("plan", "plane"), ("is", "i"), ("as", "a")],
)
def test_names_that_differ_in_more_do_not(one: str, other: str) -> None:
    assert look_alike(one) != look_alike(other)


class Way(NamedTuple):
    """How a loop leaves the version and how it comes back to it."""

    own: bool
    out: frozenset[str]
    back: frozenset[str]

    @property
    def loop(self) -> Loop:
        if self.own:
            return Loop((ROOT,), (Hop(tuple(sorted(self.out))),))
        return Loop((ROOT, OTHER), (Hop(tuple(sorted(self.out))), Hop(tuple(sorted(self.back)))))

    def left(self, events: frozenset[str], triggers: frozenset[str]) -> bool:
        """Whether the loop is still there once these are taken out of the version."""
        if self.own:
            return bool(self.out - events - triggers)
        return bool(self.out - events) and bool(self.back - triggers)


_names = st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=3)
_own = st.builds(lambda events: Way(True, events, events), _names)
_ways = st.lists(st.builds(Way, st.just(False), _names, _names), max_size=6)


def subsets(items: list[tuple[bool, str]]) -> list[frozenset[tuple[bool, str]]]:
    return [frozenset(some) for some in chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))]


@pytest.mark.promise("G-19")
@given(st.one_of(st.just([]), st.lists(_own, min_size=1, max_size=1)), _ways)
def test_the_breaking_set_is_one_of_the_smallest_by_inclusion_among_all_subsets(own: list[Way], longer: list[Way]) -> None:
    ways = own + longer
    found = breaking_set([way.loop for way in ways])
    if not ways:
        assert found is None
        return
    assert found is not None
    items = sorted({(False, e) for way in ways for e in way.out} | {(True, t) for way in ways for t in way.back})

    def breaks(chosen: frozenset[tuple[bool, str]]) -> bool:
        events, triggers = (frozenset(name for is_trigger, name in chosen if is_trigger is side) for side in (False, True))
        return not any(way.left(events, triggers) for way in ways)

    breaking = [chosen for chosen in subsets(items) if breaks(chosen)]
    taken = frozenset([(True, name) for name in found.triggers] + [(False, name) for name in found.events])
    assert taken in breaking
    assert not any(chosen < taken for chosen in breaking)
    assert (list(found.triggers), list(found.events)) == (sorted(found.triggers), sorted(found.events))


@pytest.mark.promise("G-19", "G-11")
@given(st.permutations([Way(False, frozenset("ab"), frozenset("c")), Way(False, frozenset("b"), frozenset("cd"))]))
def test_the_breaking_set_does_not_depend_on_the_order_of_the_loops(ways: list[Way]) -> None:
    in_order = sorted(ways, key=lambda way: sorted(way.out))
    assert breaking_set([way.loop for way in ways]) == breaking_set([way.loop for way in in_order])


@pytest.mark.promise("G-19")
def test_one_trigger_that_every_loop_comes_back_by_is_enough() -> None:
    ways = [Way(False, frozenset([out]), frozenset(["review.done"])) for out in ("code", "docs", "plan")]
    assert breaking_set([way.loop for way in ways]) == BreakingSet(("review.done",), ())


@pytest.mark.promise("G-19")
def test_nothing_breaks_no_loops() -> None:
    assert breaking_set([]) is None
