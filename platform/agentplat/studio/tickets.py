"""Tickets: status, roles, what was delegated, the runs and messages about it (U-5). No mode, and no contract changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Path
from starlette.responses import Response

from agentplat.domain.errors import Conflict, InvalidInput
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import PartyKind, Status, Ticket, TicketRole
from agentplat.studio.places import Id, Place
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import Page
from agentplat.studio.visitors import Actor, Reader, Visitor, go_to
from agentplat.studio.workspaces import place_of
from agentplat.usecases.manage_tickets import ShownTicket
from agentplat.usecases.names import check_ref

router = APIRouter()

_PAGE = 100
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketsPage(Page):
    """The tickets of a workspace, newest first. refusal: why none was made."""

    template: ClassVar[str] = "tickets.html"
    place: Place
    tickets: tuple[Ticket, ...]
    status: str
    statuses: tuple[Status, ...] = tuple(Status)
    refusal: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An agent or a person that may get a role."""

    kind: PartyKind
    ref: Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketPage(Page):
    """One ticket. parties: those that may get a role."""

    template: ClassVar[str] = "ticket.html"
    place: Place
    shown: ShownTicket
    parties: tuple[Candidate, ...]
    statuses: tuple[Status, ...] = tuple(Status)
    roles: tuple[TicketRole, ...] = tuple(TicketRole)
    refusal: tuple[Told, ...] = ()


@router.get("/workspaces/{workspace_id}/tickets", response_model=None)
def tickets(found: Reader, workspace_id: Id, status: str = "") -> Response:
    """The list."""
    return found.show(_list(found, workspace_id, status), "workspaces")


def _list(found: Visitor, workspace_id: int, status: str = "", refusal: tuple[Told, ...] = ()) -> TicketsPage:
    statuses = [Status(status)] if status in set(Status) else []
    listed = found.cases.together.tickets.page(found.person, workspace_id, statuses, None, _PAGE)
    return TicketsPage(place=place_of(found, workspace_id), tickets=tuple(listed), status=status, refusal=refusal)


@router.post("/workspaces/{workspace_id}/tickets", response_model=None)
def create(found: Actor, workspace_id: Id) -> Response:
    """Make a ticket."""
    title, description = found.form.get("title", ""), found.form.get("description", "")
    try:
        made = found.cases.together.tickets.create(found.person, workspace_id, title, description)
    except InvalidInput as error:
        return found.show(_list(found, workspace_id, refusal=told(error)), "workspaces", status=422)
    return go_to(f"/workspaces/{workspace_id}/tickets/{made.number}")


@router.get("/workspaces/{workspace_id}/tickets/{number}", response_model=None)
def ticket(found: Reader, workspace_id: Id, number: Number) -> Response:
    """One ticket."""
    return found.show(_page(found, workspace_id, number), "workspaces")


@router.post("/workspaces/{workspace_id}/tickets/{number}", response_model=None)
def change(found: Actor, workspace_id: Id, number: Number) -> Response:
    """Change the status that was seen, comment, give or take a role."""
    try:
        _act(found, workspace_id, number)
    except (InvalidInput, Conflict) as error:
        page = _page(found, workspace_id, number, told(error))
        return found.show(page, "workspaces", status=409 if isinstance(error, Conflict) else 422)
    return go_to(f"/workspaces/{workspace_id}/tickets/{number}")


def _act(found: Visitor, workspace_id: int, number: int) -> None:
    form, cases = found.form, found.cases.together.tickets
    match form.get("act"):
        case "status":
            seen = form.get("version", "")
            version = int(seen) if seen.isdecimal() else 0
            cases.change(found.person, workspace_id, number, version, {"status": form.get("status")})
        case "comment":
            cases.comment(found.person, workspace_id, number, form.get("body", ""))
        case "involve" | "release" as act:
            kind, _, text = form.get("party", "").partition(" ")
            role = TicketRole(form["role"]) if form.get("role") in set(TicketRole) else TicketRole.COLLABORATOR
            ref = check_ref(text, "party")
            move = cases.involve if act == "involve" else cases.release
            move(found.person, workspace_id, number, role, PartyKind(kind) if kind in set(PartyKind) else PartyKind.AGENT, ref)


def _page(found: Visitor, workspace_id: int, number: int, refusal: tuple[Told, ...] = ()) -> TicketPage:
    workspace = found.cases.together.workspaces.one(found.person, workspace_id)
    agents = (
        Candidate(kind=PartyKind.AGENT, ref=agent.ref) for agent in workspace.agents if found.person.may_read(agent.ref.scope)
    )
    people = (Candidate(kind=PartyKind.PERSON, ref=ref) for ref in workspace.members)
    return TicketPage(
        place=place_of(found, workspace_id),
        shown=found.cases.together.tickets.one(found.person, workspace_id, number),
        parties=(*agents, *people),
        refusal=refusal,
    )
