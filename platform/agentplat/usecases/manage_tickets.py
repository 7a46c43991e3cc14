"""Tickets as people see and change them (W-2, W-3). A role is a record and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.errors import Conflict, InvalidInput, NotFound, Violation, phrase
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Message
from agentplat.domain.tickets import (
    Author,
    Involved,
    MessageKind,
    NewTicket,
    Party,
    PartyKind,
    Status,
    Ticket,
    TicketChange,
    TicketComment,
    TicketRole,
)
from agentplat.domain.times import now_ms
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Store, Work
from agentplat.usecases.finding_work import (
    agent_in,
    as_party,
    open_workspace,
    person_of,
    readable_workspace,
    ticket_in,
    ticket_numbers,
)
from agentplat.usecases.make_ticket import make_ticket
from agentplat.usecases.texts import check_description, check_text, check_title

MOST_RELATED = 100
"""Comments, runs, messages and tickets below it that a ticket is shown with, each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """A ticket below another one. by: the agent who delegated it."""

    ticket: Ticket
    by: Ref | None
    children: tuple[Delegated, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTicket:
    """A ticket with all that belongs to it. parent: the number of the ticket that it is part of.

    numbers: those of the tickets that the messages refer to, by id.
    """

    ticket: Ticket
    parent: int | None
    made_by: Party
    involved: tuple[Involved, ...]
    changes: tuple[TicketChange, ...]
    comments: tuple[TicketComment, ...]
    children: tuple[Delegated, ...]
    runs: tuple[Run, ...]
    messages: tuple[Message, ...]
    numbers: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageTickets:
    """Makes, shows and changes tickets of workspaces that the caller may read. Each method raises NotFound and StoreUnavailable.

    Whoever changes something is an author or admin of the workspace's scope, else AccessDenied is raised.
    """

    store: Store

    def create(self, access: Access, workspace_id: int, title: str, description: str, status: Status = Status.OPEN) -> Ticket:
        """Make a ticket. Raises InvalidInput."""
        by = person_of(access)
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            new = NewTicket(
                workspace_id=workspace.id,
                title=check_title(title),
                description=check_description(description),
                status=status,
                made_by_id=by.id,
            )
            return make_ticket(work, new)

    def page(self, access: Access, workspace_id: int, statuses: Collection[Status], before: int | None, size: int) -> list[Ticket]:
        """Tickets with one of the statuses and a number under `before`, newest first; without statuses, all."""
        with self.store.reading() as work:
            workspace = readable_workspace(work, access, workspace_id)
            return work.tickets.page(workspace.id, statuses or list(Status), before, size)

    def one(self, access: Access, workspace_id: int, number: int) -> ShownTicket:
        """One ticket."""
        with self.store.reading() as work:
            return shown_ticket(work, readable_workspace(work, access, workspace_id), number)

    def change(self, access: Access, workspace_id: int, number: int, version: int, given: Mapping[str, Any]) -> Ticket:
        """Change title, description or status, any of them to any other. version: the one that the caller saw.

        Raises Conflict where the ticket has another version by now, InvalidInput where nothing is given to change.
        """
        by = person_of(access)
        changed = checked_changes(given)
        with self.store.writing() as work:
            ticket = ticket_in(work, open_workspace(work, access, workspace_id), number)
            return apply_change(work, ticket, Author(person_id=by.id), version, changed)

    def comment(self, access: Access, workspace_id: int, number: int, body: str) -> TicketComment:
        """Comment on a ticket. Raises InvalidInput."""
        by, said = person_of(access), check_text(body, "body")
        with self.store.writing() as work:
            ticket = ticket_in(work, open_workspace(work, access, workspace_id), number)
            return work.tickets.comment(ticket, MessageKind.SAID, Author(person_id=by.id), said, now_ms())

    def involve(self, access: Access, workspace_id: int, number: int, role: TicketRole, kind: PartyKind, ref: Ref) -> bool:
        """Give an agent or a member a role; whether this changed anything. It starts nothing."""
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            ticket = ticket_in(work, workspace, number)
            return work.tickets.involve(ticket, Involved(role=role, party=_party(work, access, workspace, kind, ref)))

    def release(self, access: Access, workspace_id: int, number: int, role: TicketRole, kind: PartyKind, ref: Ref) -> bool:
        """Take a role away, from somebody who is no member any more too; whether this changed anything."""
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            ticket = ticket_in(work, workspace, number)
            involved = work.tickets.involved(ticket.id) if access.may_read(ref.scope) else []
            there = [one for one in involved if (one.role, one.party.kind, one.party.ref) == (role, kind, ref)]
            if not there:
                _party(work, access, workspace, kind, ref)
            return bool(there) and work.tickets.release(ticket, there[0])


def checked_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The new values, checked. Raises InvalidInput."""
    checks: Mapping[str, Callable[[str], str]] = {
        "title": check_title,
        "description": check_description,
        "status": lambda status: Status(status).value,
    }
    changed = {name: check(given[name]) for name, check in checks.items() if given.get(name) is not None}
    if not changed:
        remedy = "give a title, a description or a status"
        raise InvalidInput([Violation(field="status", reason="and everything else is missing", remedy=remedy)])
    return changed


def apply_change(work: Work, ticket: Ticket, author: Author, version: int, changed: Mapping[str, Any]) -> Ticket:
    """Change a ticket within a transaction. Raises Conflict where the version is not the present one."""
    after = work.tickets.change(ticket, author, now_ms(), changed) if ticket.version == version else None
    if after is None:
        # Somebody may have changed it between the look and the change.
        now = work.tickets.find(ticket.id) or ticket
        said = "%(ticket)s has version %(now)s by now, not %(version)s; look at it again, then change it"
        raise Conflict(phrase(said, ticket=f"#{ticket.number}", now=now.version, version=version))
    return after


def _party(work: Work, access: Access, workspace: Workspace, kind: PartyKind, ref: Ref) -> Party:
    if kind is PartyKind.AGENT:
        return as_party(agent_in(work, workspace, ref))
    members = work.workspaces.members(workspace) if access.may_read(ref.scope) else []
    found = next((person for person in members if person.ref == ref), None)
    if found is None:
        raise NotFound
    return as_party(found)


def shown_ticket(work: Work, workspace: Workspace, number: int) -> ShownTicket:
    """A ticket of the workspace with all that belongs to it. Raises NotFound."""
    ticket = ticket_in(work, workspace, number)
    parent = None if ticket.parent_id is None else work.tickets.find(ticket.parent_id)
    messages = work.spaces.referring(ticket.id, MOST_RELATED)
    budget = [MOST_RELATED]
    return ShownTicket(
        ticket=ticket,
        parent=None if parent is None else parent.number,
        made_by=_maker(work, ticket),
        involved=tuple(work.tickets.involved(ticket.id)),
        changes=tuple(work.tickets.changes(ticket.id)),
        comments=tuple(work.tickets.comments(ticket.id, 0, MOST_RELATED)),
        children=_below(work, ticket, budget),
        runs=tuple(work.runs.some(work.spaces.runs_on(ticket.id, MOST_RELATED)).values()),
        messages=tuple(messages),
        numbers=ticket_numbers(work, messages),
    )


def _maker(work: Work, ticket: Ticket) -> Party:
    if ticket.made_by_id is not None:
        return as_party(work.people.by_id(ticket.made_by_id))
    run = None if ticket.made_in_run_id is None else work.runs.find(ticket.made_in_run_id)
    assert run is not None  # the schema wants one of the two
    return as_party(work.registry.by_id(run.agent_id))


def _below(work: Work, ticket: Ticket, budget: list[int]) -> tuple[Delegated, ...]:
    """The tickets below one, at most so many in all."""
    found = []
    for child in work.tickets.children(ticket.id):
        if budget[0] == 0:
            break
        budget[0] -= 1
        by = None if child.delegated_by_id is None else work.registry.by_id(child.delegated_by_id).ref
        found.append(Delegated(ticket=child, by=by, children=_below(work, child, budget)))
    return tuple(found)
