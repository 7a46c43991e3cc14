"""Routes of workspaces."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from agentplat.api.agents import PageSize
from agentplat.api.callers import Caller, Served
from agentplat.api.together_models import (
    CompletionOut,
    CompletionsOut,
    NoticeOut,
    NoticesOut,
    RepositoryIn,
    RepositoryOut,
    WorkspaceDetailsOut,
    WorkspaceIn,
    WorkspaceOut,
    WorkspacesOut,
)
from agentplat.usecases.names import check_scope

router = APIRouter(prefix="/v1/workspaces", tags=["workspaces"])

about_me = APIRouter(prefix="/v1/me", tags=["workspaces"])

MOST_ID = 2**63 - 1
WorkspaceId = Annotated[int, Path(ge=1, le=MOST_ID)]
After = Annotated[int, Query(ge=0, le=MOST_ID, description="the id of the last one known")]


@router.get("")
def list_workspaces(served: Served, access: Caller, after: After = 0, page_size: PageSize = 100) -> WorkspacesOut:
    """The workspaces that the caller may read, by id."""
    page = served.use_cases.together.workspaces.page(access, after, page_size)
    following = page[-1].id if len(page) == page_size else None
    return WorkspacesOut(workspaces=[WorkspaceOut.of(workspace) for workspace in page], next=following)


@router.post("", status_code=HTTPStatus.CREATED)
def create_workspace(served: Served, access: Caller, given: WorkspaceIn) -> WorkspaceOut:
    """Create a workspace of a scope."""
    made = served.use_cases.together.workspaces.create(access, check_scope(given.scope, "scope"), given.name)
    return WorkspaceOut.of(made)


@router.get("/{workspace}")
def read_workspace(served: Served, access: Caller, workspace: WorkspaceId) -> WorkspaceDetailsOut:
    """One workspace with its agents, members and repositories."""
    return WorkspaceDetailsOut.shown(served.use_cases.together.workspaces.one(access, workspace))


@router.post("/{workspace}/repositories", status_code=HTTPStatus.CREATED)
def link_repository(served: Served, access: Caller, workspace: WorkspaceId, given: RepositoryIn) -> RepositoryOut:
    """Link a git repository of the server's host; only an admin of the installation does."""
    return RepositoryOut.of(served.use_cases.together.workspaces.link(access, workspace, given.name, given.path))


@router.get("/{workspace}/completions")
def complete(
    served: Served,
    access: Caller,
    workspace: WorkspaceId,
    text: Annotated[str, Query(max_length=400, description="@ or # and the first characters of what is meant")],
) -> CompletionsOut:
    """What may follow @ or # in a message."""
    found = served.use_cases.together.converse.complete(access, workspace, text)
    return CompletionsOut(completions=[CompletionOut.of(completion) for completion in found])


@about_me.get("/mentions")
def list_mentions(
    served: Served, access: Caller, before: Annotated[int | None, Query(ge=1, le=MOST_ID)] = None, page_size: PageSize = 100
) -> NoticesOut:
    """What was said that mentions the caller, newest first."""
    found = served.use_cases.together.converse.notified(access, before, page_size)
    return NoticesOut(messages=[NoticeOut.telling(notice) for notice in found])
