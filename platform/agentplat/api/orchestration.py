"""Routes of proposals and pipelines."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from agentplat.api.agents import PageSize, Tongue
from agentplat.api.callers import Caller, Served
from agentplat.api.orchestration_models import (
    ApprovedOut,
    CancelPipelineIn,
    DeclineIn,
    PipelineDetailsOut,
    PipelineOut,
    PipelinesOut,
    ProposalDetailsOut,
    ProposalOut,
    ProposalsOut,
    ProposedOut,
    ProposeIn,
    SeenIn,
)
from agentplat.domain.languages import Language

router = APIRouter(prefix="/v1", tags=["orchestration"])

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
OfSpace = Annotated[int | None, Query(ge=1, le=2**63 - 1, description="only those of this space")]
Before = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


@router.post("/spaces/{space}/proposals", status_code=HTTPStatus.CREATED)
def propose(served: Served, access: Caller, space: Id, given: ProposeIn) -> ProposedOut:
    """Propose an orchestration in a space."""
    return ProposedOut.of(served.use_cases.orchestrating.propose(access, space, given.proposal))


@router.get("/proposals")
def list_proposals(
    served: Served, access: Caller, space: OfSpace = None, before: Before = None, page_size: PageSize = 100
) -> ProposalsOut:
    """The proposals in workspaces that the caller may read, newest first."""
    page = served.use_cases.orchestrating.read.proposals(access, space, before, page_size)
    following = page[-1].id if len(page) == page_size else None
    return ProposalsOut(proposals=[ProposalOut.of(kept) for kept in page], next=following)


@router.get("/proposals/{proposal}")
def show_proposal(
    served: Served,
    access: Caller,
    proposal: Id,
    revision: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="the newest where it is left out")] = None,
) -> ProposalDetailsOut:
    """One revision of a proposal, with the digest to decide by."""
    return ProposalDetailsOut.shown(served.use_cases.orchestrating.read.proposal(access, proposal, revision))


@router.post("/proposals/{proposal}/revisions", status_code=HTTPStatus.CREATED)
def revise_proposal(served: Served, access: Caller, proposal: Id, given: ProposeIn) -> ProposedOut:
    """Word a proposal anew that nobody decided about."""
    return ProposedOut.of(served.use_cases.orchestrating.propose.revise(access, proposal, given.proposal))


@router.post("/proposals/{proposal}/approve")
def approve_proposal(served: Served, access: Caller, proposal: Id, given: SeenIn, language: Tongue = Language.EN) -> ApprovedOut:
    """Approve the revision that was seen: hire, make project, team and pipeline, and let that run."""
    return ApprovedOut.of(served.use_cases.orchestrating.decide.approve(access, proposal, given.seen), language)


@router.post("/proposals/{proposal}/decline")
def decline_proposal(served: Served, access: Caller, proposal: Id, given: DeclineIn) -> ProposalOut:
    """Decline the revision that was seen."""
    return ProposalOut.of(served.use_cases.orchestrating.decide.decline(access, proposal, given.seen, given.reason))


@router.get("/pipelines")
def list_pipelines(
    served: Served, access: Caller, space: OfSpace = None, before: Before = None, page_size: PageSize = 100
) -> PipelinesOut:
    """The pipelines in workspaces that the caller may read, newest first."""
    page = served.use_cases.orchestrating.read.pipelines(access, space, before, page_size)
    following = page[-1].pipeline.id if len(page) == page_size else None
    return PipelinesOut(pipelines=[PipelineOut.of(shown) for shown in page], next=following)


@router.get("/pipelines/{pipeline}")
def show_pipeline(served: Served, access: Caller, pipeline: Id) -> PipelineDetailsOut:
    """A pipeline with its steps and their runs."""
    return PipelineDetailsOut.shown(served.use_cases.orchestrating.read.pipeline(access, pipeline))


@router.post("/pipelines/{pipeline}/cancel")
def cancel_pipeline(served: Served, access: Caller, pipeline: Id, given: CancelPipelineIn) -> PipelineDetailsOut:
    """Cancel the pipeline and every run of its steps; a run that a worker holds ends before its next step."""
    served.use_cases.orchestrating.cancel(access, pipeline, given.reason)
    return PipelineDetailsOut.shown(served.use_cases.orchestrating.read.pipeline(access, pipeline))
