"""Runs: one execution of one version of one agent, from its opening to its end (R-1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.access import Person
from agentplat.domain.artifacts import Blob, Delivery
from agentplat.domain.chains import OpenedBy, Position
from agentplat.domain.labels import Labels
from agentplat.domain.registry import Agent
from agentplat.domain.scopes import Ref


class RunState(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


MOST_ATTEMPTS = 3
"""How often a run is taken up before it is given up: a run that ends its workers must not go on doing so (R-4)."""

ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CANCELLED})
"""States that are never left."""


class WaitingFor(StrEnum):
    """What a waiting run waits for."""

    APPROVAL = "approval"
    BUDGET = "budget"


class DriverKind(StrEnum):
    """What does the thinking in a run (R-5)."""

    SCRIPTED = "scripted"
    MODEL = "model"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What is known of a run when it is opened.

    position: its place in the chain that it continues; None where it begins one. opener: the person who opened it, where one did.
    labels: what it begins with. delivery: the event that opened it. input: what the opener wrote, in the content store.
    """

    agent: Agent
    number: int
    driver: DriverKind
    opened_by: OpenedBy
    on_behalf_of: Person
    labels: Labels
    opener: Person | None = None
    source_run_id: int | None = None
    position: Position | None = None
    delivery: Delivery | None = None
    input: Blob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it is stored.

    hop, chain: as recorded when it was opened, both None where an older worker opened it; `domain.chains.position_of` reads them.
    owner: the worker that holds it. attempts: how often it was leased since it last was given back in order.
    steps, head: how many steps its trail has, and the hash of the last one. Times in milliseconds since 1970, UTC.
    """

    id: int
    agent_id: int
    agent: Ref
    number: int
    driver: DriverKind
    opened_by: OpenedBy
    on_behalf_of_id: int
    source_run_id: int | None
    event: str | None
    hop: int | None
    chain: int | None
    state: RunState
    waiting_for: WaitingFor | None
    labels: Labels
    owner: str | None
    attempts: int
    steps: int
    head: str | None
    opened_at: int
    finished_at: int | None
    cancel_asked_at: int | None
    cancel_asked_by_id: int | None

    @property
    def ended(self) -> bool:
        """Whether nothing will happen in it any more."""
        return self.state in ENDED
