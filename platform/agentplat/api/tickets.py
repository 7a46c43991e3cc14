"""Routes of tickets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from agentplat.api.agents import PageSize
from agentplat.api.callers import Caller, NamedRef, Served
from agentplat.api.together_models import (
    ChangedOut,
    ChangeIn,
    ChangeOut,
    CommentIn,
    CommentOut,
    DelegatedOut,
    InvolvedOut,
    MessageOut,
    PartyOut,
    PlaceRunOut,
    TicketDetailsOut,
    TicketIn,
    TicketOut,
    TicketsOut,
)
from agentplat.api.workspaces import WorkspaceId
from agentplat.domain.access import Access
from agentplat.domain.tickets import PartyKind, Status, TicketRole
from agentplat.usecases.converse import shown_to
from agentplat.usecases.manage_tickets import ShownTicket

router = APIRouter(prefix="/v1/workspaces/{workspace}/tickets", tags=["tickets"])

TicketNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("")
def list_tickets(
    served: Served,
    access: Caller,
    workspace: WorkspaceId,
    status: Annotated[list[Status] | None, Query(description="only those with one of these")] = None,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    page_size: PageSize = 100,
) -> TicketsOut:
    """Tickets of the workspace, newest first."""
    page = served.use_cases.together.tickets.page(access, workspace, status or (), before, page_size)
    following = page[-1].number if len(page) == page_size else None
    return TicketsOut(tickets=[TicketOut.of(ticket) for ticket in page], next=following)


@router.post("", status_code=HTTPStatus.CREATED)
def create_ticket(served: Served, access: Caller, workspace: WorkspaceId, given: TicketIn) -> TicketOut:
    """Make a ticket."""
    made = served.use_cases.together.tickets.create(access, workspace, given.title, given.description, given.status)
    return TicketOut.of(made)


def _details(shown: ShownTicket, access: Access) -> TicketDetailsOut:
    return TicketDetailsOut(
        parent=shown.parent,
        made_by=PartyOut.of(shown.made_by, access),
        involved=[InvolvedOut.having(involved, access) for involved in shown.involved],
        changes=[ChangeOut.of(change, access) for change in shown.changes],
        comments=[CommentOut.of(comment, access) for comment in shown.comments],
        children=[DelegatedOut.of(child, access) for child in shown.children],
        runs=[PlaceRunOut.of(run, access) for run in shown.runs],
        messages=[MessageOut.of(shown_to(access, message, shown.numbers)) for message in shown.messages],
        **dict(TicketOut.of(shown.ticket)),
    )


@router.get("/{number}")
def read_ticket(served: Served, access: Caller, workspace: WorkspaceId, number: TicketNumber) -> TicketDetailsOut:
    """One ticket with its roles, changes, comments, tree of delegation, runs, and the newest messages that refer to it."""
    return _details(served.use_cases.together.tickets.one(access, workspace, number), access)


@router.patch("/{number}")
def change_ticket(served: Served, access: Caller, workspace: WorkspaceId, number: TicketNumber, given: ChangeIn) -> TicketOut:
    """Change title, description or status; refused where somebody changed the ticket meanwhile."""
    changed = given.model_dump(exclude={"version"})
    return TicketOut.of(served.use_cases.together.tickets.change(access, workspace, number, given.version, changed))


@router.post("/{number}/comments", status_code=HTTPStatus.CREATED)
def comment_ticket(served: Served, access: Caller, workspace: WorkspaceId, number: TicketNumber, given: CommentIn) -> CommentOut:
    """Comment on a ticket."""
    return CommentOut.of(served.use_cases.together.tickets.comment(access, workspace, number, given.body), access)


@router.put("/{number}/roles/{role}/{kind}/{ref}")
def involve(
    served: Served,
    access: Caller,
    workspace: WorkspaceId,
    number: TicketNumber,
    role: TicketRole,
    kind: PartyKind,
    ref: NamedRef,
) -> ChangedOut:
    """Record that an agent or a person has a role. It grants nothing and starts nothing."""
    return ChangedOut(changed=served.use_cases.together.tickets.involve(access, workspace, number, role, kind, ref))


@router.delete("/{number}/roles/{role}/{kind}/{ref}")
def release(
    served: Served,
    access: Caller,
    workspace: WorkspaceId,
    number: TicketNumber,
    role: TicketRole,
    kind: PartyKind,
    ref: NamedRef,
) -> ChangedOut:
    """Take a role away."""
    return ChangedOut(changed=served.use_cases.together.tickets.release(access, workspace, number, role, kind, ref))
