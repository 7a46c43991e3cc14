"""Spaces: conversations of people and agents, in which work is handed over and reported on (W-4 to W-9)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.modes import Mode
from agentplat.domain.tickets import MessageKind, Party


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A space. mode: that of the runs which the next message opens. removed_at: None while it is there. Times in milliseconds since
    1970, UTC.
    """

    id: int
    workspace_id: int
    name: str
    mode: Mode
    created_at: int
    removed_at: int | None


class MentionOutcome(StrEnum):
    """What became of a mention: a run was opened, a person was notified, nothing was to be done, or it was refused."""

    OPENED = "opened"
    NOTIFIED = "notified"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Somebody whom a message mentions. run_id: the run that it opened. reason: why it was refused or ignored."""

    party: Party
    outcome: MentionOutcome
    run_id: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message in a space. author: a person, or the agent whose run wrote it; run_id: that run.

    at: milliseconds since 1970, UTC.
    """

    id: int
    space_id: int
    kind: MessageKind
    author: Party
    run_id: int | None
    body: str
    at: int
    tickets: tuple[int, ...] = ()
    mentions: tuple[Mention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where a run works. mode: that of the space when the run was opened, which later changes leave alone.

    message_id: what opened it. ticket_id: the ticket that it works on, where it works on one.
    """

    workspace_id: int
    space_id: int
    mode: Mode
    message_id: int | None = None
    ticket_id: int | None = None
