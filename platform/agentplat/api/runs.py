"""Routes of runs and their trails."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from agentplat.api.agents import PageSize, Tongue
from agentplat.api.callers import Caller, NamedRef, Served
from agentplat.api.run_models import OpenRunIn, RunOut, RunsOut, StepOut, TrailOut, VerificationOut
from agentplat.domain.languages import Language

router = APIRouter(prefix="/v1", tags=["runs"])

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.post("/agents/{ref}/runs", status_code=HTTPStatus.CREATED)
def open_run(served: Served, access: Caller, ref: NamedRef, given: OpenRunIn, language: Tongue = Language.EN) -> RunOut:
    """Open a run of the agent's published version; a worker takes it up."""
    run = served.use_cases.open_run(access, ref, given.input, contract=given.contract())
    return RunOut.of(served.use_cases.read_runs.one(access, run.id), language)


@router.get("/runs")
def list_runs(
    served: Served,
    access: Caller,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    page_size: PageSize = 100,
    language: Tongue = Language.EN,
) -> RunsOut:
    """The runs that the caller may read, newest first."""
    page = served.use_cases.read_runs.page(access, before, page_size)
    following = page[-1].run.id if len(page) == page_size else None
    return RunsOut(runs=[RunOut.of(shown, language) for shown in page], next=following)


@router.get("/runs/{run_id}")
def read_run(served: Served, access: Caller, run_id: RunId, language: Tongue = Language.EN) -> RunOut:
    """One run."""
    return RunOut.of(served.use_cases.read_runs.one(access, run_id), language)


@router.post("/runs/{run_id}/cancel")
def cancel_run(served: Served, access: Caller, run_id: RunId, language: Tongue = Language.EN) -> RunOut:
    """Cancel the run. One that a worker holds is noted as to be cancelled, and ends before its next step."""
    served.use_cases.cancel_run(access, run_id)
    return RunOut.of(served.use_cases.read_runs.one(access, run_id), language)


@router.get("/runs/{run_id}/trail")
def read_trail(
    served: Served,
    access: Caller,
    run_id: RunId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="the number of the last step known")] = 0,
    page_size: PageSize = 100,
    language: Tongue = Language.EN,
) -> TrailOut:
    """The steps of the run's trail, in order."""
    run, steps = served.use_cases.read_runs.trail(access, run_id, after, page_size)
    following = steps[-1].number if len(steps) == page_size else None
    return TrailOut(run=run.id, steps=[StepOut.of(run, step, language) for step in steps], next=following)


@router.get("/runs/{run_id}/verification")
def verify_trail(served: Served, access: Caller, run_id: RunId, language: Tongue = Language.EN) -> VerificationOut:
    """Look through the whole trail for any change."""
    run, _, fault = served.use_cases.verify_trail(access, run_id)
    return VerificationOut.of(run, fault, language)
