"""Proposals, with a person's decision, and the pipelines that approved ones become (U-7)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query
from starlette.responses import Response

from agentplat.domain.budgets import Unit
from agentplat.domain.errors import Conflict, InvalidInput
from agentplat.domain.pipelines import PipelineState, ProposalState
from agentplat.domain.spaces import Space
from agentplat.studio.places import Id, Place
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import Page
from agentplat.studio.visitors import Actor, Reader, Visitor, go_to
from agentplat.studio.workspaces import place_of
from agentplat.usecases.decide_proposal import Seen
from agentplat.usecases.read_orchestration import ShownPipeline, ShownProposal

router = APIRouter()

_RESEARCH, _SYNTHESIS = "research", "synthesis"
Revision = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step that an approval would start. schema: what its output has to look like, as JSON; empty where that is free."""

    key: str
    title: str
    role: str
    description: str
    needs: tuple[str, ...]
    retries: int
    schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRole:
    """Who would do a part. agent: one that is there; hire: the manifest of one that would be published, as JSON. One of the two."""

    name: str
    agent: str
    hire: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage(Page):
    """A proposal in one of its revisions. budget: the most that all its steps take. whole: all of it as JSON, as its digest has it.

    decides: whether the person may decide now. refusal: why what was asked was not done. reason: what was written then.
    """

    template: ClassVar[str] = "proposal.html"
    place: Place
    space: Space
    shown: ShownProposal
    roles: tuple[PlannedRole, ...]
    steps: tuple[PlannedStep, ...]
    budget: Mapping[Unit, int]
    whole: str
    decides: bool
    refusal: tuple[Told, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePage(Page):
    """A pipeline with its steps. cancels: whether the person may cancel it now. refusal: why it was not cancelled."""

    template: ClassVar[str] = "pipeline.html"
    place: Place
    space: Space
    shown: ShownPipeline
    cancels: bool
    refusal: tuple[Told, ...] = ()


@router.get("/workspaces/{workspace_id}/proposals/{proposal_id}", response_model=None)
def proposal(found: Reader, workspace_id: Id, proposal_id: Id, revision: Revision = None) -> Response:
    """One revision, the newest where none is asked for."""
    return found.show(_proposal(found, workspace_id, proposal_id, revision), "workspaces")


@router.post("/workspaces/{workspace_id}/proposals/{proposal_id}", response_model=None)
def decide(found: Actor, workspace_id: Id, proposal_id: Id) -> Response:
    """Approve or decline what was shown: the form carries its revision and digest."""
    _proposal(found, workspace_id, proposal_id, None)
    number, reason = found.form.get("revision", ""), found.form.get("reason", "").strip()
    seen = Seen(revision=int(number) if number.isdecimal() else 0, digest=found.form.get("digest", ""))
    act = found.cases.orchestrating.decide
    try:
        if found.form.get("answer") == "approve":
            return go_to(f"/workspaces/{workspace_id}/pipelines/{act.approve(found.person, proposal_id, seen).pipeline.id}")
        act.decline(found.person, proposal_id, seen, reason)
    except (Conflict, InvalidInput) as error:
        page = _proposal(found, workspace_id, proposal_id, None, told(error), reason)
        return found.show(page, "workspaces", status=409 if isinstance(error, Conflict) else 422)
    return go_to(f"/workspaces/{workspace_id}/proposals/{proposal_id}")


@router.get("/workspaces/{workspace_id}/pipelines/{pipeline_id}", response_model=None)
def pipeline(found: Reader, workspace_id: Id, pipeline_id: Id) -> Response:
    """Where its steps stand, and their runs."""
    return found.show(_pipeline(found, workspace_id, pipeline_id), "workspaces")


@router.post("/workspaces/{workspace_id}/pipelines/{pipeline_id}", response_model=None)
def cancel(found: Actor, workspace_id: Id, pipeline_id: Id) -> Response:
    """Cancel it."""
    _pipeline(found, workspace_id, pipeline_id)
    try:
        found.cases.orchestrating.cancel(found.person, pipeline_id, found.form.get("reason", "").strip())
    except (Conflict, InvalidInput) as error:
        page = _pipeline(found, workspace_id, pipeline_id, told(error))
        return found.show(page, "workspaces", status=409 if isinstance(error, Conflict) else 422)
    return go_to(f"/workspaces/{workspace_id}/pipelines/{pipeline_id}")


def _space(found: Visitor, workspace_id: int, space_id: int) -> Space:
    """The space that something was proposed in. Raises NotFound where it is of another workspace."""
    return found.cases.together.spaces.one(found.person, workspace_id, space_id).space


def _proposal(
    found: Visitor, workspace_id: int, proposal_id: int, number: int | None, refusal: tuple[Told, ...] = (), reason: str = ""
) -> ProposalPage:
    shown = found.cases.orchestrating.read.proposal(found.person, proposal_id, number)
    place, body = place_of(found, workspace_id), shown.body
    undecided = shown.kept.state is ProposalState.PROPOSED and shown.revision.number == shown.kept.revision
    return ProposalPage(
        place=place,
        space=_space(found, workspace_id, shown.kept.space_id),
        shown=shown,
        roles=tuple(map(_role, body["roles"])),
        steps=_steps(body),
        budget={Unit(unit): amount for unit, amount in body["budget"].items()},
        whole=_json(body),
        decides=undecided and place.writes,
        refusal=refusal,
        reason=reason,
    )


def _json(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False)


def _role(role: Mapping[str, Any]) -> PlannedRole:
    return PlannedRole(name=role["name"], agent=role.get("agent", ""), hire=_json(role["hire"]) if "hire" in role else "")


def _steps(body: Mapping[str, Any]) -> tuple[PlannedStep, ...]:
    research = [{**body[_RESEARCH], "key": _RESEARCH}] if _RESEARCH in body else []
    return tuple(map(_step, [*research, *body["sub_tickets"], {**body[_SYNTHESIS], "key": _SYNTHESIS}]))


def _step(given: Mapping[str, Any]) -> PlannedStep:
    return PlannedStep(
        key=given["key"],
        title=given.get("title", ""),
        role=given["role"],
        description=given["description"],
        needs=tuple(given.get("depends_on", ())),
        retries=given["retries"],
        schema=_json(given["output_schema"]) if "output_schema" in given else "",
    )


def _pipeline(found: Visitor, workspace_id: int, pipeline_id: int, refusal: tuple[Told, ...] = ()) -> PipelinePage:
    shown = found.cases.orchestrating.read.pipeline(found.person, pipeline_id)
    place = place_of(found, workspace_id)
    return PipelinePage(
        place=place,
        space=_space(found, workspace_id, shown.pipeline.space_id),
        shown=shown,
        cancels=shown.pipeline.state is PipelineState.RUNNING and place.writes,
        refusal=refusal,
    )
