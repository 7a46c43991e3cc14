"""Publications on their way to the graph service: the order they keep and the waits between attempts (P-6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.scopes import Ref


class EntryKind(StrEnum):
    """What an entry tells the graph service."""

    PUBLISH = "publish"
    RETIRE = "retire"


class EntryState(StrEnum):
    """Where an entry stands. An entry that waits or is set aside holds back every later one of its agent."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    SET_ASIDE = "set_aside"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the outbox. position: its place among the agent's entries. actor: the person it is delivered for.

    reason: why the last attempt failed, or why it was set aside; for operators and admins.
    """

    id: int
    agent_id: int
    agent: Ref
    position: int
    kind: EntryKind
    number: int
    actor_id: int
    state: EntryState
    attempts: int
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An entry that one deliverer holds until its lease ends. owner: a text that nobody else has."""

    entry: Entry
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between attempts: doubling from `first_s` to `longest_s` seconds, each shortened by up to half at random.

    The jitter keeps many agents from coming back in one moment; the bound keeps a recovery from being noticed late.
    """

    first_s: float
    longest_s: float

    def wait_s(self, attempts: int, chance: float) -> float:
        """Seconds to wait after so many failed attempts, at least 1. chance: a random number from 0 to 1."""
        # Capping the exponent keeps the power small after a long outage.
        full = min(self.longest_s, self.first_s * 2.0 ** min(attempts - 1, 30))
        return full * (1 - chance / 2)
