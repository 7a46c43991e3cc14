"""Budgets: what is counted, for whom, in which whole numbers, and up to which ceiling (A-15, A-16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from agentplat.domain.scopes import INSTALLATION, Ref


class Unit(StrEnum):
    """What is counted. Money in millionths of a US dollar, time in milliseconds: whole numbers add up exactly."""

    MONEY = "money_microusd"
    TOKENS = "tokens"
    TOOL_CALLS = "tool_calls"
    TIME = "time_ms"


_WORDS: Mapping[Unit, str] = {
    Unit.MONEY: "money",
    Unit.TOKENS: "tokens",
    Unit.TOOL_CALLS: "tool calls",
    Unit.TIME: "time",
}

MOST = 2**62
"""The largest ceiling and amount; sums of two still fit the database."""


class HolderKind(StrEnum):
    """What a ceiling is set on: a scope (the installation, a company, an area), an agent, a run, or all runs of a pipeline."""

    SCOPE = "scope"
    AGENT = "agent"
    RUN = "run"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What a ceiling is set on. key: the scope, or the id of the rest as text. name: what it is called in words."""

    kind: HolderKind
    key: str
    name: str


def scope_holder(scope: str) -> Holder:
    """The holder that stands for a scope."""
    name = "the installation" if scope == INSTALLATION else scope
    return Holder(kind=HolderKind.SCOPE, key=scope, name=name)


def agent_holder(agent_id: int, ref: Ref) -> Holder:
    """The holder that stands for an agent."""
    return Holder(kind=HolderKind.AGENT, key=str(agent_id), name=ref.text)


def run_holder(run_id: int) -> Holder:
    """The holder that stands for a run."""
    return Holder(kind=HolderKind.RUN, key=str(run_id), name=f"run {run_id}")


def pipeline_holder(pipeline_id: int) -> Holder:
    """The holder that stands for all runs of a pipeline's steps."""
    return Holder(kind=HolderKind.PIPELINE, key=str(pipeline_id), name=f"pipeline {pipeline_id}")


def scope_holders(scope: str) -> tuple[Holder, ...]:
    """The installation, the company and the area that a scope lies in, from the broadest."""
    company = scope.partition("/")[0]
    return tuple(scope_holder(found) for found in dict.fromkeys((INSTALLATION, company, scope)))


def holders(
    agent_id: int, ref: Ref, run_id: int, *, delegators: Iterable[str] = (), pipeline_ids: Iterable[int] = ()
) -> tuple[Holder, ...]:
    """All that a call of a run is charged to, from the broadest: a narrower ceiling so never widens a broader one (A-16).

    delegators: the scopes of the agents who delegated its work. pipeline_ids: the pipelines whose step it is, or theirs.
    """
    scopes = {holder for scope in (ref.scope, *delegators) for holder in scope_holders(scope)}
    # The installation, then companies, then areas.
    broadest_first = sorted(scopes, key=lambda holder: (holder.key != INSTALLATION, holder.key.count("/"), holder.key))
    own = (agent_holder(agent_id, ref), *map(pipeline_holder, pipeline_ids), run_holder(run_id))
    return (*broadest_first, *own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What is counted of one unit for one holder. ceiling: None where nothing is stopped and only counted."""

    id: int
    holder: Holder
    unit: Unit
    ceiling: int | None
    reserved: int
    spent: int

    def has_room_for(self, amount: int) -> bool:
        """Whether so much more stays within the ceiling."""
        return self.ceiling is None or self.spent + self.reserved + amount <= self.ceiling

    @property
    def remainder(self) -> int | None:
        """What is neither spent nor set aside; None where nothing is stopped."""
        return None if self.ceiling is None else max(0, self.ceiling - self.spent - self.reserved)

    @property
    def words(self) -> str:
        """Which ceiling this is. It names no number: whoever reads a trail need not know what others spend."""
        return f"{_WORDS[self.unit]} of {self.holder.name}"


def first_stop(budgets: Iterable[Budget], amounts: Mapping[Unit, int]) -> Budget | None:
    """The first budget without room for its unit's amount; None where all have it."""
    return next((budget for budget in budgets if not budget.has_room_for(amounts.get(budget.unit, 0))), None)


def ceilings_of(manifest: Mapping[str, Any]) -> dict[Unit, int]:
    """The ceilings that a version sets on each of its runs."""
    given = manifest.get("spec", {}).get("budget") or {}
    fields = ((Unit.MONEY, "money_usd", 10**6), (Unit.TOKENS, "tokens", 1), (Unit.TOOL_CALLS, "tool_calls", 1))
    found = ((unit, given.get(field), factor) for unit, field, factor in (*fields, (Unit.TIME, "seconds", 1_000)))
    return {unit: min(int(Decimal(str(value)) * factor), MOST) for unit, value, factor in found if value is not None}
