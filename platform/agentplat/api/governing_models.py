"""What goes over the wire about approvals, ceilings, declassification and erasure."""

from __future__ import annotations

from typing import Any, Self

from pydantic import AwareDatetime, Field

from agentplat.api.models import Wire
from agentplat.domain.artifacts import Declassification
from agentplat.domain.budgets import MOST, Budget, Unit
from agentplat.domain.times import iso
from agentplat.usecases.decide_approval import ShownApproval


class ApprovalOut(Wire):
    """A question to a person. digest: over what exactly would run; send it back with the answer. granted: null while undecided.

    order: what exactly would run, null in lists.
    """

    id: int
    run: int
    agent: str
    call: int
    tool: str
    digest: str
    asked_at: str
    granted: bool | None
    decided_by: str | None
    decided_at: str | None
    reason: str | None
    order: dict[str, Any] | None

    @classmethod
    def of(cls, shown: ShownApproval) -> Self:
        """The question on the wire."""
        asked = shown.approval
        return cls(
            id=asked.id,
            run=asked.run_id,
            agent=shown.run.agent.text,
            call=asked.call,
            tool=asked.tool,
            digest=asked.digest,
            asked_at=iso(asked.asked_at),
            granted=asked.granted,
            decided_by=None if shown.decided_by is None else shown.decided_by.text,
            decided_at=None if asked.decided_at is None else iso(asked.decided_at),
            reason=asked.reason,
            order=shown.order,
        )


class ApprovalsOut(Wire):
    """A page of questions, newest first. next: what to give as `before` for the next page, null on the last."""

    approvals: list[ApprovalOut]
    next: int | None


class AnswerIn(Wire):
    """An answer. digest: of the order that was seen."""

    granted: bool
    digest: str = Field(min_length=64, max_length=64)
    reason: str | None = None


class RunStateOut(Wire):
    """Where a run stands."""

    run: int
    state: str


class DeclassifyIn(Wire):
    """Which label, why, and until when it is lifted."""

    label: str = Field(max_length=400)
    reason: str
    until: AwareDatetime


class DeclassificationOut(Wire):
    """A recorded act."""

    id: int
    run: int
    artifact: str
    label: str
    reason: str
    by: str
    at: str
    until: str

    @classmethod
    def of(cls, run: int, artifact: str, act: Declassification) -> Self:
        """The act on the wire."""
        return cls(
            id=act.id,
            run=run,
            artifact=artifact,
            label=act.label,
            reason=act.reason,
            by=act.by,
            at=iso(act.at),
            until=iso(act.expires_at),
        )


class EraseIn(Wire):
    """Why the content is taken away for good."""

    reason: str


class ErasedOut(Wire):
    """changed: false where it was erased already. artifact: null where it was the run's input."""

    run: int
    artifact: str | None
    changed: bool


class BudgetOut(Wire):
    """What is counted of one unit. ceiling: null where nothing is stopped. reserved: set aside for calls under way."""

    kind: str
    of: str
    unit: Unit
    ceiling: int | None
    reserved: int
    spent: int

    @classmethod
    def shown(cls, budget: Budget) -> Self:
        """The budget on the wire."""
        return cls(
            kind=budget.holder.kind.value,
            of=budget.holder.key if budget.holder.kind.value != "agent" else budget.holder.name,
            unit=budget.unit,
            ceiling=budget.ceiling,
            reserved=budget.reserved,
            spent=budget.spent,
        )


class BudgetsOut(Wire):
    """From the broadest holder to what was asked for; the narrowest room counts."""

    budgets: list[BudgetOut]


class CeilingIn(Wire):
    """A ceiling on one thing: a scope, an agent, a run or a pipeline. ceiling: null lifts it."""

    scope: str | None = None
    agent: str | None = None
    run: int | None = Field(default=None, ge=1, le=2**63 - 1)
    pipeline: int | None = Field(default=None, ge=1, le=2**63 - 1)
    unit: Unit
    ceiling: int | None = Field(ge=0, le=MOST)
