"""Ceilings: setting and showing them, and letting runs go on that wait at one (A-15, A-16)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Role
from agentplat.domain.budgets import (
    MOST,
    Budget,
    Holder,
    HolderKind,
    Unit,
    agent_holder,
    pipeline_holder,
    run_holder,
    scope_holder,
    scope_holders,
)
from agentplat.domain.errors import Conflict, InvalidInput, Violation
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Resumed
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.charging import charged_to
from agentplat.usecases.finding import readable_agent, readable_run
from agentplat.usecases.workrooms import readable_pipeline, room_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPipeline:
    """The runs of a pipeline's steps, by its id."""

    id: int


Named = str | Ref | int | OfPipeline
"""What a ceiling is set on as callers name it: a scope, an agent, a run's id, or a pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """holder: what was named. scope: where it lies. line: it and all that is broader, from the broadest."""

    holder: Holder
    scope: str
    line: tuple[Holder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageBudgets:
    """Ceilings and what is counted under them."""

    store: Store

    def show(self, access: Access, named: Named) -> list[Budget]:
        """The budgets of what was named and of all broader ones that the caller may read, from the broadest.

        Raises NotFound where an agent or run is not readable, AccessDenied where a scope is not, StoreUnavailable.
        """
        with self.store.reading() as work:
            found = _find(work, access, named)
            shown = [h for h in found.line if h.kind is not HolderKind.SCOPE or access.may_read(h.key)]
            return work.budgets.of(shown)

    def set(self, access: Access, named: Named, unit: Unit, ceiling: int | None) -> None:
        """Set a ceiling, or lift it with None. Broader ceilings count all the same: no narrower one widens them.

        Raises AccessDenied where the caller is no admin of the scope that it lies in, Conflict where a delegated run would get more
        than was set aside for it; else what `show` raises, and InvalidInput.
        """
        if ceiling is not None and not 0 <= ceiling <= MOST:
            remedy = f"give a whole number from 0 to {MOST}, or nothing to lift it"
            raise InvalidInput([Violation(field="ceiling", reason="is out of range", remedy=remedy)])
        with self.store.writing() as work:
            found = _find(work, access, named)
            access.demand(Role.ADMIN, found.scope)
            _demand_within_escrow(work, named, unit, ceiling)
            work.budgets.set_ceiling(found.holder, unit, ceiling)
            subject = named if isinstance(named, Ref) else Ref(found.scope, "*")
            details = {"of": found.holder.name, "unit": unit.value, "ceiling": ceiling}
            work.acts.record(now_ms(), access.person, "set_ceiling", subject, details)

    def resume(self, access: Access, run_id: int) -> Run:
        """Let a run go on that waits at a ceiling; without room it waits again.

        Raises NotFound, AccessDenied where the caller may not open runs of the agent, Conflict where it does not wait for a budget.
        """
        with self.store.writing() as work:
            run = readable_run(work, access, run_id)
            access.demand_publishing(run.agent.scope)
            if run.state is not RunState.WAITING or run.waiting_for is not WaitingFor.BUDGET:
                raise Conflict(f"run {run_id} does not wait for a budget")
            at = now_ms()
            work.acts.record(at, access.person, "resume_run", run.agent, {"run": run_id})
            return work.runs.resume(run, Resumed(waited_for=WaitingFor.BUDGET), at)


def _demand_within_escrow(work: Work, named: Named, unit: Unit, ceiling: int | None) -> None:
    """Raises Conflict where a delegated run could spend more than its delegator set aside for it (D-6)."""
    most = work.budgets.escrowed(named).get(unit) if isinstance(named, int) else None
    if most is not None and (ceiling is None or ceiling > most):
        raise Conflict(f"run {named} spends what its delegator set aside for it; its ceiling can be at most {most}")


def _find(work: Work, access: Access, named: Named) -> _Found:
    if isinstance(named, str):
        access.demand_reading(named)
        return _Found(holder=scope_holder(named), scope=named, line=scope_holders(named))
    if isinstance(named, Ref):
        agent = readable_agent(work, access, named)
        own = agent_holder(agent.id, named)
        return _Found(holder=own, scope=named.scope, line=(*scope_holders(named.scope), own))
    if isinstance(named, OfPipeline):
        pipeline, room = readable_pipeline(work, access, named.id)
        whole = pipeline_holder(pipeline.id)
        return _Found(holder=whole, scope=room.workspace.scope, line=(*scope_holders(room.workspace.scope), whole))
    run = readable_run(work, access, named)
    line = tuple(holder for holder in charged_to(work, run) if _may_know(work, access, holder))
    return _Found(holder=run_holder(run.id), scope=run.agent.scope, line=line)


def _may_know(work: Work, access: Access, holder: Holder) -> bool:
    """Whether the caller may know of a holder that is a pipeline: its workspace may be wider than what they read."""
    if holder.kind is not HolderKind.PIPELINE:
        return True
    pipeline = work.pipelines.find(int(holder.key))
    room = None if pipeline is None else room_of(work, pipeline.space_id)
    return room is not None and access.may_read(room.workspace.scope)
