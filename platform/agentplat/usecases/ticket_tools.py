"""Tools by which a run reads, makes and changes tickets of the workspace where it works (W-2, W-3, W-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from agentplat.domain.autonomy import Autonomy
from agentplat.domain.errors import Refused
from agentplat.domain.labels import join
from agentplat.domain.mentions import resolve
from agentplat.domain.modes import Mode
from agentplat.domain.scopes import contains
from agentplat.domain.tickets import (
    Author,
    Involved,
    MessageKind,
    NewTicket,
    Status,
    Ticket,
    TicketRole,
    agent_may_move,
    next_for_agents,
)
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Effect, Given, Place, ToolSpec
from agentplat.store.port import Work
from agentplat.usecases.finding_work import as_party, labels_of_ticket, labels_within
from agentplat.usecases.make_ticket import make_ticket
from agentplat.usecases.manage_tickets import apply_change
from agentplat.usecases.place_tools import CHAT, EVERY_MODE, MOST_SHOWN_BYTES, TICKET, PlaceTool, Where, declared, told
from agentplat.usecases.texts import check_description, check_text, check_title, clipped

MOST_LISTED = 50
MOST_COMMENTS = 50
"""Tickets of a list, and comments of a ticket, that one call gives, at most."""

_STATUSES = [status.value for status in Status]
_MAKING: Mapping[str, Any] = {
    "place": Place(modes=CHAT, named=True),
    "effect": Effect.WRITE,
    "free_from": Autonomy.ACT_WITH_APPROVAL,
}


def _ticket(work: Work, where: Where, number: Any) -> Ticket:
    """The ticket of this number where the run works. Raises Refused."""
    found = work.tickets.numbered(where.workspace.id, int(number))
    if found is None:
        raise Refused(f"#{int(number)} is no ticket of this workspace")
    return found


@dataclass(frozen=True, kw_only=True)
class ListTickets(PlaceTool):
    """Lists tickets."""

    @property
    @override
    def spec(self) -> ToolSpec:
        statuses = {"type": "array", "items": {"enum": _STATUSES}, "description": "none for all"}
        before = {**TICKET, "description": "only tickets with a lower number"}
        return declared(
            "list_tickets",
            f"List tickets of your workspace, newest first, at most {MOST_LISTED} at once.",
            {"statuses": statuses, "before": before},
            (),
            Place(modes=EVERY_MODE),
            Effect.READ,
        )

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        statuses = [Status(status) for status in arguments.get("statuses") or _STATUSES]
        found = work.tickets.page(where.workspace.id, statuses, arguments.get("before"), MOST_LISTED)
        listed = [{"ticket": ticket.number, "title": ticket.title, "status": ticket.status.value} for ticket in found]
        return told({"tickets": listed}, join(*(labels_of_ticket(work, where.workspace, ticket) for ticket in found)))


@dataclass(frozen=True, kw_only=True)
class ReadTicket(PlaceTool):
    """Reads a ticket."""

    @property
    @override
    def spec(self) -> ToolSpec:
        said = "Read a ticket of your workspace with its comments and who is involved."
        return declared("read_ticket", said, {"ticket": TICKET}, ("ticket",), Place(modes=EVERY_MODE), Effect.READ)

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        ticket = _ticket(work, where, arguments["ticket"])
        comments = work.tickets.comments(ticket.id, 0, MOST_COMMENTS)
        children = [child for child in work.tickets.children(ticket.id) if child.workspace_id == where.workspace.id]
        values = {
            "ticket": ticket.number,
            "title": ticket.title,
            "description": clipped(ticket.description, MOST_SHOWN_BYTES),
            "status": ticket.status.value,
            "version": ticket.version,
            "involved": [
                {"role": one.role.value, one.party.kind.value: where.name(one.party.ref)}
                for one in work.tickets.involved(ticket.id)
            ],
            "children": [child.number for child in children],
            "comments": [
                {"from": where.name(comment.author.ref), "text": clipped(comment.body, MOST_SHOWN_BYTES)} for comment in comments
            ],
        }
        wrote = labels_within(work, where.workspace, [comment.run_id for comment in comments])
        return told(values, join(wrote, labels_of_ticket(work, where.workspace, ticket)))


@dataclass(frozen=True, kw_only=True)
class CommentTicket(PlaceTool):
    """Comments on a ticket."""

    @property
    @override
    def spec(self) -> ToolSpec:
        return declared(
            "comment_ticket",
            "Comment on a ticket: in plan mode on the one you work on, in a review on those you were shown.",
            {"ticket": TICKET, "text": {"type": "string", "minLength": 1}},
            ("ticket", "text"),
            Place(modes=frozenset({Mode.CHAT, Mode.PLAN, Mode.REVIEW})),
            Effect.WRITE,
        )

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        ticket = _ticket(work, where, arguments["ticket"])
        _demand_reach(work, where, ticket)
        said = check_text(str(arguments["text"]), "text")
        comment = work.tickets.comment(ticket, MessageKind.SAID, Author(run_id=where.run.id), said, now_ms())
        return told({"comment": comment.id})


def _demand_reach(work: Work, where: Where, ticket: Ticket) -> None:
    """Raises Refused where the mode keeps the run from commenting on the ticket."""
    workplace = where.workplace
    if workplace.mode is Mode.PLAN and ticket.id != workplace.ticket_id:
        raise Refused(f"#{ticket.number} is not the ticket that this run works on, and in plan mode it comments on no other")
    if workplace.mode is Mode.REVIEW:
        message = None if workplace.message_id is None else work.spaces.message(workplace.message_id)
        if message is None or ticket.id not in message.tickets:
            raise Refused(f"#{ticket.number} is no ticket that this review was asked about")


@dataclass(frozen=True, kw_only=True)
class CreateTicket(PlaceTool):
    """Makes a ticket."""

    @property
    @override
    def spec(self) -> ToolSpec:
        properties = {
            "title": {"type": "string", "minLength": 1},
            "description": {"type": "string"},
            "status": {"enum": [Status.BACKLOG.value, Status.OPEN.value]},
        }
        said = "Make a ticket in your workspace. It starts nothing."
        return declared("create_ticket", said, properties, ("title",), **_MAKING)

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        new = NewTicket(
            workspace_id=where.workspace.id,
            title=check_title(str(arguments["title"])),
            description=check_description(str(arguments.get("description", ""))),
            status=Status(arguments.get("status", Status.OPEN)),
            made_in_run_id=where.run.id,
        )
        return told({"ticket": make_ticket(work, new).number})


@dataclass(frozen=True, kw_only=True)
class MoveTicket(PlaceTool):
    """Moves a ticket along the transition graph."""

    @property
    @override
    def spec(self) -> ToolSpec:
        version = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1, "description": "the version that read_ticket gave"}
        properties = {"ticket": TICKET, "status": {"enum": _STATUSES}, "version": version}
        said = "Give a ticket another status. A version that is not the present one is refused."
        return declared("move_ticket", said, properties, ("ticket", "status", "version"), **_MAKING)

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        ticket, then = _ticket(work, where, arguments["ticket"]), Status(arguments["status"])
        if ticket.version == arguments["version"] and not agent_may_move(ticket.status, then):
            onward = ", ".join(status.value for status in next_for_agents(ticket.status)) or "nowhere"
            raise Refused(f"an agent moves a ticket from {ticket.status.value} to {onward}, not to {then.value}")
        author = Author(run_id=where.run.id)
        after = apply_change(work, ticket, author, int(arguments["version"]), {"status": then.value})
        return told({"ticket": after.number, "status": after.status.value, "version": after.version})


@dataclass(frozen=True, kw_only=True)
class AssignTicket(PlaceTool):
    """Records who is involved in a ticket."""

    @property
    @override
    def spec(self) -> ToolSpec:
        properties = {
            "ticket": TICKET,
            "role": {"enum": [role.value for role in TicketRole]},
            "name": {"type": "string", "minLength": 1, "description": "of an agent or a person of the workspace"},
        }
        said = "Record that somebody is the assignee, a collaborator or a reviewer of a ticket. It starts nothing."
        return declared("assign_ticket", said, properties, ("ticket", "role", "name"), **_MAKING)

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        ticket, workspace = _ticket(work, where, arguments["ticket"]), where.workspace
        people = [person for person in work.workspaces.members(workspace) if contains(workspace.scope, person.ref.scope)]
        among = [*map(as_party, work.workspaces.agents(workspace)), *map(as_party, people)]
        party = resolve(str(arguments["name"]), among, "this workspace")
        changed = work.tickets.involve(ticket, Involved(role=TicketRole(arguments["role"]), party=party))
        return told({"ticket": ticket.number, "role": arguments["role"], "name": party.ref.text, "changed": changed})
