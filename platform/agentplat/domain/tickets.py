"""Tickets: pieces of work, with who is involved and where each stands (W-2, W-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentplat.domain.scopes import Ref

MOST_DEPTH = 3
"""How many times in a row work is delegated, at most (D-2). Another limit than that of chains and that of nested sub-agents."""


class Status(StrEnum):
    """Where a ticket stands."""

    BACKLOG = "backlog"
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    IN_REVIEW = "in_review"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


CLOSED = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED})
"""Where an agent does not move a ticket any more; a person may open it again."""

_NEXT: Mapping[Status, frozenset[Status]] = {
    Status.BACKLOG: frozenset({Status.OPEN, Status.CANCELLED}),
    Status.OPEN: frozenset({Status.IN_PROGRESS, Status.BLOCKED, Status.CANCELLED}),
    Status.IN_PROGRESS: frozenset({Status.BLOCKED, Status.IN_REVIEW, Status.DONE, Status.FAILED}),
    Status.BLOCKED: frozenset({Status.OPEN, Status.IN_PROGRESS, Status.FAILED, Status.CANCELLED}),
    Status.IN_REVIEW: frozenset({Status.IN_PROGRESS, Status.DONE, Status.FAILED}),
}


def agent_may_move(now: Status, then: Status) -> bool:
    """Whether an agent may move a ticket from one status to the other; a person may move it to any."""
    return then in _NEXT.get(now, frozenset())


def next_for_agents(now: Status) -> list[Status]:
    """Where an agent may move a ticket, in the order of the statuses."""
    return [status for status in Status if agent_may_move(now, status)]


class TicketRole(StrEnum):
    """How somebody is involved in a ticket. It is a record and grants nothing."""

    ASSIGNEE = "assignee"
    COLLABORATOR = "collaborator"
    REVIEWER = "reviewer"


class PartyKind(StrEnum):
    """Whether somebody is an agent or a person."""

    AGENT = "agent"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """An agent or a person. id: the agent's or the person's."""

    kind: PartyKind
    id: int
    ref: Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Involved:
    """Somebody in a role. A ticket has one assignee at most."""

    role: TicketRole
    party: Party


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A ticket as it stands.

    number: its own in the workspace, as in ``#12``. version: grows by one with every change. depth: how many times in a row it was
    delegated; 0 where a person or an agent made it without delegating. delegated_by_id: the agent who delegated it. made_by: the
    person; made_in_run: the run of the agent who made it; one of the two. space_id: where the run that it was delegated to works.
    Times in milliseconds since 1970, UTC.
    """

    id: int
    workspace_id: int
    number: int
    title: str
    description: str
    status: Status
    version: int
    depth: int
    parent_id: int | None
    delegated_by_id: int | None
    made_by_id: int | None
    made_in_run_id: int | None
    space_id: int | None
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTicket:
    """A ticket to be made; the fields mean what they mean in `Ticket`."""

    workspace_id: int
    title: str
    description: str
    status: Status = Status.OPEN
    depth: int = 0
    parent_id: int | None = None
    delegated_by_id: int | None = None
    made_by_id: int | None = None
    made_in_run_id: int | None = None
    space_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who writes: a person, or an agent through its run. One of the two ids is there."""

    person_id: int | None = None
    run_id: int | None = None


class MessageKind(StrEnum):
    """What a message is. Refusals and notices are the platform's own words; they mention nobody (W-9)."""

    SAID = "said"
    PROGRESS = "progress"
    RESULT = "result"
    PLAN = "plan"
    PROPOSAL = "proposal"
    REFUSAL = "refusal"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketChange:
    """One change. author: a person, or the agent of a run; run_id: that run. body: what changed, as JSON values."""

    version: int
    author: Party
    run_id: int | None
    body: Mapping[str, Any]
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketComment:
    """A comment on a ticket. author: a person, or the agent of a run; run_id: that run."""

    id: int
    kind: MessageKind
    author: Party
    run_id: int | None
    body: str
    at: int
