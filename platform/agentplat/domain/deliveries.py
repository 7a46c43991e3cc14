"""What becomes of finished runs: their deliveries, what could not be handled, and the account over all of them (R-13 to R-17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentplat.domain.chains import OutcomeKind
from agentplat.domain.registry import Agent
from agentplat.domain.scopes import Ref

MOST_ATTEMPTS = 5
"""How often a finished run is tried before it is set aside (R-17)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOutcome:
    """What became of one listener, as it is stored. event, listener: both None for a finished run that nobody hears.

    run_id: the run that the delivery opened. details: JSON values, such as the label and the rule of a barrier.
    """

    kind: OutcomeKind
    event: str | None = None
    listener: Agent | None = None
    run_id: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one listener, as it was stored. listener: None for a run without any, and where the reader may not read it."""

    source_run_id: int
    event: str | None
    listener: Ref | None
    kind: OutcomeKind
    run_id: int | None
    details: Mapping[str, Any]
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A finished run that could not be handled. reason: the kind of fault; the dispatcher's log has all of it."""

    run_id: int
    agent: Ref
    attempts: int
    reason: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What is still to be dispatched. failing: of those that wait, the ones that failed before. oldest: when the first finished."""

    waiting: int
    failing: int
    oldest: int | None
    set_aside: int


class Account(StrEnum):
    """How a finished run stands in the books of the dispatcher."""

    DISPATCHED = "dispatched"
    BEFORE = "before"
    WAITING = "waiting"
    SET_ASIDE = "set_aside"
    UNACCOUNTED = "unaccounted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Every run that finished in a period, counted under exactly one heading (R-16).

    finished: all of them, counted apart. counts: by heading. before: dispatched by a version that kept no outcomes. unaccounted:
    marked as dispatched without a word on any listener, or the other way round. unmatched: outcomes that name a run which this
    delivery did not open, and opened runs that no outcome names. examples: the first runs of the headings that are no good end.
    """

    finished: int
    counts: Mapping[Account, int]
    outcomes: Mapping[OutcomeKind, int]
    unmatched: int
    examples: Mapping[Account, tuple[int, ...]]

    @property
    def proved(self) -> bool:
        """Whether every finished run was handled, and every delivery opened what its outcome says."""
        good = self.counts.get(Account.DISPATCHED, 0) + self.counts.get(Account.BEFORE, 0)
        return good == self.finished == sum(self.counts.values()) and self.unmatched == 0
