"""Routes by which people govern runs: approvals, ceilings, declassification, erasure."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query

from agentplat.api.agents import PageSize
from agentplat.api.callers import Caller, Served
from agentplat.api.governing_models import (
    AnswerIn,
    ApprovalOut,
    ApprovalsOut,
    BudgetOut,
    BudgetsOut,
    CeilingIn,
    DeclassificationOut,
    DeclassifyIn,
    ErasedOut,
    EraseIn,
    RunStateOut,
)
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.usecases.manage_budgets import Named, OfPipeline
from agentplat.usecases.names import check_name, check_ref, check_scope

router = APIRouter(prefix="/v1", tags=["governing"])

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
Artifact = Annotated[str, Path(description="name of an artifact, percent-encoded")]


@router.get("/approvals")
def list_approvals(
    served: Served,
    access: Caller,
    undecided: bool = True,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    page_size: PageSize = 100,
) -> ApprovalsOut:
    """What runs wait for, in the scopes where the caller is an approver; with `undecided=false` what was decided too."""
    page = served.use_cases.governing.approvals.page(access, undecided, before, page_size)
    following = page[-1].approval.id if len(page) == page_size else None
    return ApprovalsOut(approvals=[ApprovalOut.of(shown) for shown in page], next=following)


@router.get("/approvals/{approval}")
def show_approval(served: Served, access: Caller, approval: Id) -> ApprovalOut:
    """One question, with what exactly would run."""
    return ApprovalOut.of(served.use_cases.governing.approvals.one(access, approval))


@router.post("/approvals/{approval}/answer")
def answer_approval(served: Served, access: Caller, approval: Id, given: AnswerIn) -> RunStateOut:
    """Grant or refuse; the run goes on either way."""
    run = served.use_cases.governing.approvals.decide(access, approval, given.digest, given.granted, given.reason)
    return RunStateOut(run=run.id, state=run.state.value)


@router.post("/runs/{run}/artifacts/{name}/declassify")
def declassify(served: Served, access: Caller, run: Id, name: Artifact, given: DeclassifyIn) -> DeclassificationOut:
    """Let an artifact be read without one of its labels for a while; never one of a place."""
    called = check_name(unquote(name), "name")
    until = int(given.until.timestamp() * 1_000)
    act = served.use_cases.governing.declassify(access, run, called, given.label, given.reason, until)
    return DeclassificationOut.of(run, called, act)


@router.post("/runs/{run}/artifacts/{name}/erase")
def erase(served: Served, access: Caller, run: Id, name: Artifact, given: EraseIn) -> ErasedOut:
    """Take the content of an artifact away for good; its name, digest and labels stay."""
    called = check_name(unquote(name), "name")
    return ErasedOut(run=run, artifact=called, changed=served.use_cases.governing.erase(access, run, called, given.reason))


@router.post("/runs/{run}/erase-input")
def erase_input(served: Served, access: Caller, run: Id, given: EraseIn) -> ErasedOut:
    """Take what the opener of a run wrote away for good."""
    return ErasedOut(run=run, artifact=None, changed=served.use_cases.governing.erase.input(access, run, given.reason))


@router.post("/runs/{run}/resume")
def resume_run(served: Served, access: Caller, run: Id) -> RunStateOut:
    """Let a run go on that waits at a ceiling."""
    found = served.use_cases.governing.budgets.resume(access, run)
    return RunStateOut(run=found.id, state=found.state.value)


def _named(scope: str | None, agent: str | None, run: int | None, pipeline: int | None) -> Named:
    named = (("scope", scope), ("agent", agent), ("run", run), ("pipeline", pipeline))
    given = [name for name, value in named if value is not None]
    if len(given) != 1:
        remedy = "name one scope, one agent, one run or one pipeline"
        raise InvalidInput([Violation(field="scope", reason=f"{len(given)} things are named", remedy=remedy)])
    if scope is not None:
        return check_scope(scope, "scope")
    if agent is not None:
        return check_ref(agent, "agent")
    if pipeline is not None:
        return OfPipeline(id=pipeline)
    assert run is not None  # one of the four is given
    return run


@router.get("/budgets")
def show_budgets(
    served: Served,
    access: Caller,
    scope: str | None = None,
    agent: str | None = None,
    run: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    pipeline: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> BudgetsOut:
    """The ceilings on a scope, an agent, a run or a pipeline, with the broader ones that the caller may read."""
    found = served.use_cases.governing.budgets.show(access, _named(scope, agent, run, pipeline))
    return BudgetsOut(budgets=[BudgetOut.shown(budget) for budget in found])


@router.put("/budgets")
def set_ceiling(served: Served, access: Caller, given: CeilingIn) -> BudgetsOut:
    """Set or lift a ceiling."""
    named = _named(given.scope, given.agent, given.run, given.pipeline)
    served.use_cases.governing.budgets.set(access, named, given.unit, given.ceiling)
    return BudgetsOut(budgets=[BudgetOut.shown(budget) for budget in served.use_cases.governing.budgets.show(access, named)])
