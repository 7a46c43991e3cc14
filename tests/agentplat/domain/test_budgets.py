"""Ceilings as arithmetic: what a version sets, who is charged, and which ceiling stops a call."""

from __future__ import annotations

import pytest
from agentplat.domain.budgets import MOST, Budget, Unit, agent_holder, ceilings_of, first_stop, holders, scope_holder
from agentplat.domain.scopes import Ref


@pytest.mark.promise("A-16")
def test_a_call_is_charged_from_the_installation_down_to_its_run() -> None:
    found = holders(7, Ref("acme/platform", "developer"), 12)
    assert [holder.key for holder in found] == ["*", "acme", "acme/platform", "7", "12"]
    assert [holder.key for holder in holders(7, Ref("*", "developer"), 12)] == ["*", "7", "12"]
    assert [holder.key for holder in holders(7, Ref("acme", "developer"), 12)] == ["*", "acme", "7", "12"]


def budget(key: str, ceiling: int | None, spent: int = 0, reserved: int = 0, unit: Unit = Unit.TOKENS) -> Budget:
    return Budget(id=1, holder=scope_holder(key), unit=unit, ceiling=ceiling, reserved=reserved, spent=spent)


@pytest.mark.promise("A-16")
def test_a_wider_ceiling_below_a_narrower_one_widens_nothing() -> None:
    broad, narrow = budget("acme", 10, spent=4, reserved=5), budget("acme/platform", 1_000)
    assert first_stop([broad, narrow], {Unit.TOKENS: 1}) is None
    assert first_stop([broad, narrow], {Unit.TOKENS: 2}) is broad
    assert first_stop([budget("acme", None, spent=MOST), narrow], {Unit.TOKENS: 1_000}) is None
    assert first_stop([budget("acme", 0)], {Unit.TOKENS: 0}) is None


def test_a_ceiling_is_named_without_a_number() -> None:
    assert budget("*", 10).words == "tokens of the installation"
    assert budget("acme", 10, unit=Unit.TOOL_CALLS).words == "tool calls of acme"
    assert agent_holder(7, Ref("acme", "x")).name == "acme:x"


def test_what_a_version_sets_is_read_in_whole_numbers() -> None:
    given = {"money_usd": 0.1, "tokens": 5, "tool_calls": 0, "seconds": 1.5}
    assert ceilings_of({"spec": {"budget": given}}) == {
        Unit.MONEY: 100_000,
        Unit.TOKENS: 5,
        Unit.TOOL_CALLS: 0,
        Unit.TIME: 1_500,
    }
    assert ceilings_of({"spec": {"budget": {"money_usd": 1e300}}}) == {Unit.MONEY: MOST}
    assert ceilings_of({"spec": {}}) == ceilings_of({}) == ceilings_of({"spec": {"budget": None}}) == {}
