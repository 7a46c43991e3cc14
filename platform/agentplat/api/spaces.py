"""Routes of spaces and of what is said in them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path

from agentplat.api.agents import PageSize
from agentplat.api.callers import Caller, NamedRef, Served
from agentplat.api.space_models import (
    AutonomyIn,
    ModeIn,
    RemovedOut,
    ReviewIn,
    SpaceDetailsOut,
    SpaceIn,
    SpaceOut,
    SpacesOut,
)
from agentplat.api.together_models import ChangedOut, MessageIn, MessageOut, MessagesOut
from agentplat.api.workspaces import MOST_ID, After, WorkspaceId

router = APIRouter(prefix="/v1/workspaces/{workspace}", tags=["spaces"])

SpaceId = Annotated[int, Path(ge=1, le=MOST_ID)]


@router.get("/spaces")
def list_spaces(served: Served, access: Caller, workspace: WorkspaceId, after: After = 0, page_size: PageSize = 100) -> SpacesOut:
    """Spaces of the workspace, by id."""
    page = served.use_cases.together.spaces.page(access, workspace, after, page_size)
    following = page[-1].id if len(page) == page_size else None
    return SpacesOut(spaces=[SpaceOut.of(space) for space in page], next=following)


@router.post("/spaces", status_code=HTTPStatus.CREATED)
def create_space(served: Served, access: Caller, workspace: WorkspaceId, given: SpaceIn) -> SpaceOut:
    """Create a space."""
    return SpaceOut.of(served.use_cases.together.spaces.create(access, workspace, given.name, given.mode))


@router.post("/review-spaces", status_code=HTTPStatus.CREATED)
def create_review(served: Served, access: Caller, workspace: WorkspaceId, given: ReviewIn) -> SpaceOut:
    """Create the space in which a pull request is reviewed."""
    return SpaceOut.of(served.use_cases.together.spaces.create_review(access, workspace, given.pull_request))


@router.get("/spaces/{space}")
def read_space(served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId) -> SpaceDetailsOut:
    """One space with who takes part, its runs and its work trees."""
    return SpaceDetailsOut.shown(served.use_cases.together.spaces.one(access, workspace, space), access)


@router.delete("/spaces/{space}")
def remove_space(served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId) -> RemovedOut:
    """Remove a space and its work trees, and no commit."""
    branches = served.use_cases.together.spaces.remove(access, workspace, space)
    return RemovedOut(space=space, branches=list(branches))


@router.put("/spaces/{space}/mode")
def set_mode(served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId, given: ModeIn) -> SpaceOut:
    """Choose the mode for what the next message opens."""
    return SpaceOut.of(served.use_cases.together.spaces.set_mode(access, workspace, space, given.mode))


@router.put("/spaces/{space}/participants/{ref}")
def add_participant(served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId, ref: NamedRef) -> ChangedOut:
    """Let an agent take part, so that others may mention it."""
    return ChangedOut(changed=served.use_cases.together.spaces.add_participant(access, workspace, space, ref))


@router.delete("/spaces/{space}/participants/{ref}")
def remove_participant(served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId, ref: NamedRef) -> ChangedOut:
    """Let an agent take part no longer."""
    return ChangedOut(changed=served.use_cases.together.spaces.remove_participant(access, workspace, space, ref))


@router.put("/spaces/{space}/autonomy/{ref}")
def set_autonomy(
    served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId, ref: NamedRef, given: AutonomyIn
) -> SpaceDetailsOut:
    """Set how far an agent acts by itself in the space; only an admin of the workspace's scope does."""
    served.use_cases.together.spaces.set_autonomy(access, workspace, space, ref, given.level)
    return read_space(served, access, workspace, space)


@router.get("/spaces/{space}/messages")
def list_messages(
    served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId, after: After = 0, page_size: PageSize = 100
) -> MessagesOut:
    """What was said behind a message, oldest first."""
    page = served.use_cases.together.converse.messages(access, workspace, space, after, page_size)
    following = page[-1].id if page else after
    return MessagesOut(messages=[MessageOut.of(message) for message in page], next=following)


@router.post("/spaces/{space}/messages", status_code=HTTPStatus.CREATED)
def post_message(served: Served, access: Caller, workspace: WorkspaceId, space: SpaceId, given: MessageIn) -> MessageOut:
    """Say something. Mentioning an agent hands it work; the answer and the space tell where a guard refuses."""
    return MessageOut.of(served.use_cases.together.converse.post(access, workspace, space, given.body))
