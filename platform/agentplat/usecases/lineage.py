"""Where the work of a run or a ticket came from: through delegations, mentions, events and pipelines alike (D-5).

A run came from the run that opened it, whatever it opened it by, and from the ticket that it works on. A ticket came from its
parent and from the run that made it. So neither a parent that is left out nor a mention in between makes work look new.
"""

from __future__ import annotations

from agentplat.domain.chains import OpenedBy
from agentplat.domain.delegation import Key, Lineage, Link, Unresolved
from agentplat.domain.tickets import PartyKind, TicketRole
from agentplat.store.port import Work

MOST_LINKS = 1_000
"""Longer ways are not looked through; whatever depends on them is refused."""


def run_key(run_id: int) -> Key:
    """The key of a run in a lineage."""
    return ("run", run_id)


def ticket_key(ticket_id: int) -> Key:
    """The key of a ticket in a lineage."""
    return ("ticket", ticket_id)


def lineage_of(work: Work, *ends: Key) -> Lineage:
    """All that these runs and tickets came from, they themselves among it. Raises Unresolved where that is too much."""
    found: dict[Key, Link] = {}
    waiting = list(ends)
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        if len(found) == MOST_LINKS:
            raise Unresolved
        kind, number = key
        found[key] = _run(work, number) if kind == "run" else _ticket(work, number)
        waiting.extend(found[key].before)
    return found


def _run(work: Work, run_id: int) -> Link:
    run, workplace = work.runs.find(run_id), work.spaces.workplace(run_id)
    if run is None:
        raise Unresolved
    before: dict[Key, bool] = {}
    if workplace is not None and workplace.ticket_id is not None:
        before[ticket_key(workplace.ticket_id)] = False
    if run.source_run_id is not None:
        before[run_key(run.source_run_id)] = run.opened_by is OpenedBy.DELEGATION
    return Link(agents=(run.agent_id,), before=before)


def _ticket(work: Work, ticket_id: int) -> Link:
    ticket = work.tickets.find(ticket_id)
    if ticket is None:
        raise Unresolved
    had_it = [
        involved.party.id
        for involved in work.tickets.involved(ticket_id)
        if involved.role is TicketRole.ASSIGNEE and involved.party.kind is PartyKind.AGENT
    ]
    if ticket.delegated_by_id is not None:
        had_it.append(ticket.delegated_by_id)
    delegated = ticket.depth > 0
    before: dict[Key, bool] = {}
    if ticket.parent_id is not None:
        before[ticket_key(ticket.parent_id)] = delegated
    if ticket.made_in_run_id is not None:
        before[run_key(ticket.made_in_run_id)] = delegated
    return Link(agents=tuple(had_it), depth=ticket.depth, before=before)
