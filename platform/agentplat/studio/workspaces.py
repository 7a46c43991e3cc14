"""Workspaces: the list, where each begins (U-2), and its monitoring (U-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query
from starlette.responses import Response

from agentplat.domain.errors import Conflict, InvalidInput
from agentplat.domain.workspaces import Workspace
from agentplat.studio.monitoring import InsightsQuery, insights_page, live_page
from agentplat.studio.places import Id, Place
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import Page
from agentplat.studio.visitors import Actor, Reader, Visitor, go_to
from agentplat.usecases.names import check_scope

router = APIRouter()

_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspacesPage(Page):
    """The workspaces that a person may read. refusal: why none was created."""

    template: ClassVar[str] = "workspaces.html"
    workspaces: tuple[Workspace, ...]
    scopes: tuple[str, ...]
    following: int | None
    refusal: tuple[Told, ...] = ()


def place_of(found: Visitor, workspace_id: int) -> Place:
    """The workspace. Raises NotFound."""
    workspace = found.cases.together.workspaces.alone(found.person, workspace_id)
    return Place(workspace=workspace, writes=found.person.may_publish(workspace.scope))


@router.get("/workspaces", response_model=None)
def workspaces(found: Reader, after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0) -> Response:
    """The list, oldest first."""
    return found.show(_list(found, after), "workspaces")


def _list(found: Visitor, after: int = 0, refusal: tuple[Told, ...] = ()) -> WorkspacesPage:
    listed = found.cases.together.workspaces.page(found.person, after, _PAGE)
    return WorkspacesPage(
        workspaces=tuple(listed),
        scopes=tuple(scope for scope in found.person.scopes if found.person.may_publish(scope)),
        following=listed[-1].id if len(listed) == _PAGE else None,
        refusal=refusal,
    )


@router.post("/workspaces", response_model=None)
def create(found: Actor) -> Response:
    """Create a workspace."""
    try:
        scope = check_scope(found.form.get("scope", ""), "scope")
        made = found.cases.together.workspaces.create(found.person, scope, found.form.get("name", "").strip())
    except (InvalidInput, Conflict) as error:
        return found.show(_list(found, refusal=told(error)), "workspaces", status=409 if isinstance(error, Conflict) else 422)
    return go_to(f"/workspaces/{made.id}")


@router.get("/workspaces/{workspace_id}", response_model=None)
def workspace(found: Reader, workspace_id: Id) -> Response:
    """There is no page of a workspace by itself: it begins with its inbox."""
    return go_to(f"{place_of(found, workspace_id).path}/inbox")


@router.get("/workspaces/{workspace_id}/observability", response_model=None)
def observability(found: Reader, workspace_id: Id) -> Response:
    """The live roster of the workspace's agents."""
    place = place_of(found, workspace_id)
    return found.show(live_page(found, place.workspace.scope, f"{place.path}/observability", place), "workspaces")


@router.get("/workspaces/{workspace_id}/observability/insights", response_model=None)
def workspace_insights(
    found: Reader,
    workspace_id: Id,
    period: str = "7d",
    agent: str = "",
    state: str = "",
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """The run log of the workspace's agents."""
    place = place_of(found, workspace_id)
    asked = InsightsQuery(scope=place.workspace.scope, period=period, agent=agent, state=state, before=before)
    return found.show(insights_page(found, asked, f"{place.path}/observability/insights", place), "workspaces")
