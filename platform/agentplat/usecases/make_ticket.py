"""Making a ticket: the one place that does, whatever asks for it, so that what guards work stands here and nowhere else (D-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentplat.domain.delegation import Guard, Resolvers, depth_of, refusal
from agentplat.domain.errors import Refused
from agentplat.domain.tickets import NewTicket, Ticket
from agentplat.domain.times import now_ms
from agentplat.store.port import Work
from agentplat.usecases.lineage import lineage_of, ticket_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A delegation. guards: those that it has to pass. given: how they come to their facts."""

    guards: Sequence[Guard]
    given: Resolvers


def make_ticket(work: Work, new: NewTicket, delegation: Guarded | None = None) -> Ticket:
    """Make a ticket within a transaction; one that is delegated is one deeper than what it came from.

    A ticket that hands nothing on passes the guard of depth too where it has a parent (D-4). Raises Refused, without having written
    anything, where a guard objects.
    """
    asked = delegation or _below(work, new)
    said = refusal(asked.guards, asked.given)
    if said is not None:
        raise Refused(said)
    if delegation is not None and delegation.given.depth is not None:
        new = replace(new, depth=delegation.given.depth() + 1)
    return work.tickets.make(new, now_ms())


def _below(work: Work, new: NewTicket) -> Guarded:
    parent_id = new.parent_id
    if parent_id is None:
        return Guarded(guards=(), given=Resolvers())
    return Guarded(guards=(Guard.DEPTH,), given=Resolvers(depth=lambda: depth_of(lineage_of(work, ticket_key(parent_id)))))
