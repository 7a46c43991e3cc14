"""Guards of delegation over facts: which one answers, in which words, and what a chain is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from agentplat.domain.autonomy import Autonomy, autonomy_of
from agentplat.domain.delegation import (
    EXHAUSTED,
    STRUCTURE,
    Guard,
    Key,
    Levels,
    Link,
    Resolvers,
    Unresolved,
    depth_of,
    no_parent,
    refusal,
    way_from,
)
from hypothesis import given
from hypothesis import strategies as st

PASSING: Mapping[str, Any] = {
    "depth": lambda: 0,
    "cycle": lambda: None,
    "autonomy": lambda: Levels(delegator=Autonomy.ACT_FREELY, delegate=Autonomy.ACT_FREELY),
    "budget": lambda: True,
}
FAILING: Mapping[str, Any] = {
    "depth": lambda: 3,
    "cycle": lambda: ("A", "B", "A"),
    "autonomy": lambda: Levels(delegator=Autonomy.ACT_WITH_APPROVAL, delegate=Autonomy.ACT_FREELY),
    "budget": lambda: False,
}
WORDS = {
    "depth": "Delegation refused: chain depth 4 exceeds the cap of 3.",
    "cycle": "Delegation refused: cycle detected (A → B → A).",
    "autonomy": 'Delegation refused: a delegate cannot run "actFreely" above the delegator ceiling "actWithApproval".',
    "budget": "Delegation refused: the delegator's budget envelope is exhausted (delegation cannot mint budget).",
}


def _given(failing: set[str]) -> Resolvers:
    return Resolvers(**{name: FAILING[name] if name in failing else found for name, found in PASSING.items()})


@pytest.mark.promise("D-3", "D-4")
@given(failing=st.sets(st.sampled_from(sorted(WORDS))))
def test_the_first_guard_that_fails_answers_word_for_word(failing: set[str]) -> None:
    first = next((WORDS[guard.value] for guard in Guard if guard.value in failing), None)
    assert refusal(tuple(Guard), _given(failing)) == first
    assert [guard.value for guard in Guard] == ["depth", "cycle", "autonomy", "budget"]


@pytest.mark.promise("D-4")
def test_a_guard_behind_the_one_that_fails_is_not_asked() -> None:
    def never() -> bool:
        raise AssertionError("asked")

    assert refusal(tuple(Guard), Resolvers(**{**PASSING, "cycle": FAILING["cycle"], "budget": never})) == WORDS["cycle"]


@pytest.mark.promise("D-7")
@pytest.mark.parametrize("missing", list(Guard))
def test_a_guard_without_a_resolver_or_whose_resolver_cannot_tell_refuses(missing: Guard) -> None:
    def cannot_tell() -> Any:
        raise Unresolved

    said = f"Delegation refused: the {missing.value} guard cannot be evaluated."
    for resolver in (None, cannot_tell):
        assert refusal(tuple(Guard), Resolvers(**{**PASSING, missing.value: resolver})) == said


@pytest.mark.promise("D-5")
def test_a_person_is_asked_for_depth_and_cycle_alone() -> None:
    assert refusal(STRUCTURE, Resolvers(depth=PASSING["depth"], cycle=PASSING["cycle"])) is None
    assert refusal(STRUCTURE, _given({"autonomy", "budget"})) is None
    assert refusal(STRUCTURE, _given({"cycle"})) == WORDS["cycle"]


@pytest.mark.promise("D-2")
@pytest.mark.parametrize(("depth", "passes"), [(-1, True), (0, True), (2, True), (3, False), (9, False)])
def test_the_fourth_hop_in_a_row_is_one_too_many(depth: int, passes: bool) -> None:
    assert (refusal(STRUCTURE, Resolvers(depth=lambda: depth, cycle=PASSING["cycle"])) is None) is passes


@pytest.mark.promise("D-9")
@pytest.mark.parametrize("delegator", [*Autonomy, "whatever"])
@pytest.mark.parametrize("delegate", [*Autonomy, "whatever"])
def test_levels_are_ordered_and_what_is_unknown_is_the_safest(delegator: str, delegate: str) -> None:
    order = ["proposeOnly", "actWithApproval", "actFreely"]
    mine, theirs = (order.index(level) if level in order else 0 for level in (delegator, delegate))
    levels = Levels(delegator=autonomy_of(delegator), delegate=autonomy_of(delegate))
    said = refusal(tuple(Guard), Resolvers(**{**PASSING, "autonomy": lambda: levels}))
    assert (said is None) is (theirs <= mine)


@pytest.mark.promise("D-3")
def test_the_remaining_texts_are_stable() -> None:
    assert no_parent("T") == "Delegation refused: parent ticket T does not exist."
    assert WORDS["budget"] == EXHAUSTED


def _run(number: int) -> Key:
    return ("run", number)


def _ticket(number: int) -> Key:
    return ("ticket", number)


A, B, C, D = range(1, 5)


@pytest.mark.promise("D-5")
def test_a_chain_is_counted_on_the_way_with_most_delegations() -> None:
    lineage = {
        _run(3): Link(agents=(C,), before={_run(2): False, _ticket(9): False}),
        _run(2): Link(agents=(B,), before={_run(1): True}),
        _run(1): Link(agents=(A,)),
        # A ticket says itself how deep it is, should what it came from not be known any more.
        _ticket(9): Link(agents=(D,), depth=2),
    }
    assert depth_of(lineage) == 2
    assert depth_of({**lineage, _ticket(9): Link(agents=())}) == 1
    assert depth_of({}) == 0


@pytest.mark.promise("D-5")
def test_the_way_back_is_told_from_where_the_agent_had_the_work() -> None:
    lineage = {
        _run(3): Link(agents=(C,), before={_ticket(2): False, _run(2): True}),
        _ticket(2): Link(agents=(C, B), before={_ticket(1): True}),
        _ticket(1): Link(agents=(B, A)),
        _run(2): Link(agents=(B,), before={_run(1): True}),
        _run(1): Link(agents=(A,)),
    }
    assert way_from(lineage, _run(3), A) == (A, B, C)
    assert way_from(lineage, _run(3), B) == (B, C)
    assert way_from(lineage, _run(3), C) == (C,)
    assert way_from(lineage, _run(3), D) is None


@pytest.mark.promise("D-7")
def test_a_lineage_that_goes_round_is_no_ground_to_decide_on() -> None:
    lineage = {_run(1): Link(agents=(A,), before={_run(2): True}), _run(2): Link(agents=(B,), before={_run(1): True})}
    with pytest.raises(Unresolved):
        depth_of(lineage)
