"""Making a ticket: the one place that does, whatever asks for it, so that what guards work stands here and nowhere else (D-2)."""

from __future__ import annotations

from agentplat.domain.tickets import NewTicket, Ticket
from agentplat.domain.times import now_ms
from agentplat.store.port import Work


def make_ticket(work: Work, new: NewTicket) -> Ticket:
    """Make a ticket within a transaction. Raises Refused, without having written anything, where a guard objects."""
    return work.tickets.make(new, now_ms())
