"""Publishing the events of finished runs: each finds its listeners, and each listener its outcome (R-8 to R-17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from agentplat.domain.actions import driver_of
from agentplat.domain.artifacts import Artifact, Delivery, resolve
from agentplat.domain.chains import (
    AtHopLimit,
    ChainLimits,
    ChainUnknown,
    Judgement,
    Listener,
    OpenedBy,
    OutcomeKind,
    Position,
    Withheld,
    after,
    judge,
    position_of,
    withheld,
)
from agentplat.domain.deliveries import MOST_ATTEMPTS, NewOutcome
from agentplat.domain.errors import StoreUnavailable
from agentplat.domain.labels import Labels, label_of
from agentplat.domain.outbox import Backoff
from agentplat.domain.registry import Agent, Emission
from agentplat.domain.runs import DriverKind, NewRun, Run
from agentplat.domain.steps import Closing, WithheldEvents, WithheldWhy
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """A finished run that was handled. outcomes: how many deliveries it had, or 1 for that it had none."""

    run_id: int
    outcomes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Undispatched:
    """A finished run that could not be handled. attempts: how often that was, None where somebody else handled it meanwhile."""

    run_id: int
    attempts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Executable:
    """What of a version is needed here. Versions never change, so it is kept."""

    emits: tuple[Emission, ...]
    driver: DriverKind


class _Versions:
    """The versions looked up before; the oldest are forgotten."""

    MOST = 1_000

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], _Executable] = {}

    def get(self, work: Work, agent_id: int, number: int) -> _Executable:
        """A version that is there."""
        kept = self._kept.get((agent_id, number))
        if kept is None:
            version = work.registry.version(work.registry.by_id(agent_id), number)
            if version is None:
                raise AssertionError("runs and listeners have a version")
            kept = _Executable(emits=version.content.emits, driver=driver_of(version.content.manifest))
            while len(self._kept) >= self.MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[agent_id, number] = kept
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchEvents:
    """Handles one finished run after the other, oldest first. Any number may do so at once. backoff: waits after failures."""

    store: Store
    backoff: Backoff
    _versions: _Versions = field(default_factory=_Versions, init=False)

    def waiting(self) -> bool:
        """Whether there is something to do, without taking part in the queue of writers. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.deliveries.due()

    def __call__(self) -> Dispatched | Undispatched | None:
        """Handle the run that has waited longest, all of it in one transaction; None where none is due. Raises StoreUnavailable."""
        run: Run | None = None
        try:
            with self.store.writing() as work:
                run = work.deliveries.take()
                if run is None:
                    return None
                outcomes = list(_Leaving(work, run, self._versions).outcomes()) or [NewOutcome(kind=OutcomeKind.NO_LISTENERS)]
                work.deliveries.settle(run.id, outcomes)
            return Dispatched(run_id=run.id, outcomes=len(outcomes))
        except StoreUnavailable:
            raise  # the database's fault and not the run's
        except Exception as error:
            if run is None:
                raise
            return self._failed(run, error)

    def _failed(self, run: Run, error: Exception) -> Undispatched:
        """Let the run wait behind the others, or set it aside, so that it holds up nobody (R-17)."""
        with self.store.writing() as work:
            attempts = work.deliveries.fail(run.id)
            aside = attempts is not None and attempts >= MOST_ATTEMPTS
            if aside:
                # The message of an error may hold anything; the log, which only the operator reads, has it.
                work.deliveries.put_aside(run.id, type(error).__name__)
            elif attempts is not None:
                work.deliveries.postpone(run.id, self.backoff.wait_s(attempts, 0.0))
        told = {"run": run.id, "agent": run.agent.text, "attempts": attempts, "exc_info": error}
        if aside:
            log.error("a finished run is set aside and its events do not leave; see `agentplat dispatch status`", **told)
        else:
            log.error("a finished run could not be dispatched and is tried again", **told)
        return Undispatched(run_id=run.id, attempts=attempts)


class _Leaving:
    """The events of one finished run as they leave."""

    def __init__(self, work: Work, run: Run, versions: _Versions) -> None:
        self._work, self._run, self._versions = work, run, versions
        self._limits = work.chains.limits()
        self._position = position_of(run)
        self._stopped = _stopped(work, run, self._position, self._limits)
        self._published = work.artifacts.of_run(run.id)
        self._spent = False
        self._before: Mapping[tuple[str, int], int] | None = None

    def outcomes(self) -> Iterator[NewOutcome]:
        """What becomes of every listener, event by event as the version that was executed declares them."""
        for emission in self._versions.get(self._work, self._run.agent_id, self._run.number).emits:
            for listener in self._work.registry.listeners(emission.event):
                yield self._outcome(emission, listener)

    def _outcome(self, emission: Emission, listener: Agent) -> NewOutcome:
        heard = Listener(agent_id=listener.id, scope=listener.ref.scope, paused=listener.paused)
        judged = judge(heard, self._run.agent_id, self._stopped, _carried(emission, self._published))
        if judged.kind is not OutcomeKind.OPENED:
            details = self._details(judged)
            return NewOutcome(kind=judged.kind, event=emission.event, listener=listener, details=details)
        run_id = self._open(emission, listener)
        if run_id is None:
            details = {"chain": self._place.chain, "limit": self._limits.runs}
            return NewOutcome(kind=OutcomeKind.CHAIN_RUNS_SPENT, event=emission.event, listener=listener, details=details)
        return NewOutcome(kind=OutcomeKind.OPENED, event=emission.event, listener=listener, run_id=run_id)

    def _details(self, judged: Judgement) -> Mapping[str, Any]:
        if judged.crossing is not None:
            return {"label": judged.crossing.label.text, "into": judged.crossing.into, "rule": judged.crossing.rule}
        if judged.kind is OutcomeKind.HOP_LIMIT and isinstance(self._stopped, AtHopLimit):
            return {"chain": self._stopped.chain, "limit": self._stopped.limit}
        return {}

    @property
    def _place(self) -> Position:
        if self._position is None:
            raise AssertionError("a run whose chain is unknown opens none")
        return self._position

    def _open(self, emission: Emission, listener: Agent) -> int | None:
        """Open the listener's run, or find the one that an older worker opened for this delivery before (R-15).

        None where there is none and the chain's budget of runs is spent (R-12).
        """
        # Nobody gives back what was taken, so what is spent once stays spent; an event may have thousands of listeners.
        self._spent = self._spent or not self._work.chains.take(self._place.chain, self._limits.runs)
        if self._spent:
            if self._before is None:
                self._before = self._work.deliveries.opened(self._run.id)
            return self._before.get((emission.event, listener.id))
        new = self._new(resolve(emission, self._run.agent.text, self._run.id, self._published), listener)
        # Where an older worker was quicker, its run stays counted in the chain: it follows from it.
        run = self._work.runs.open(new, now_ms()) or self._work.runs.delivered(self._run.id, emission.event, listener.id)
        if run is None:
            raise AssertionError("only this delivery can have opened its run before")
        return run.id

    def _new(self, delivery: Delivery, listener: Agent) -> NewRun:
        if listener.current is None:
            raise AssertionError("a listener has a published version")
        return NewRun(
            agent=listener,
            number=listener.current,
            driver=self._versions.get(self._work, listener.id, listener.current).driver,
            opened_by=OpenedBy.EVENT,
            on_behalf_of=self._work.people.by_id(self._run.on_behalf_of_id),
            labels=label_of(listener.ref.scope),
            source_run_id=self._run.id,
            position=after(self._place, OpenedBy.EVENT),
            delivery=delivery,
        )


def _carried(emission: Emission, published: Mapping[str, Artifact]) -> list[Labels]:
    """The labels of everything that the event's contract would hand to a listener."""
    return [published[name].labels for name in emission.artifacts if name in published]


def _stopped(work: Work, run: Run, position: Position | None, limits: ChainLimits) -> Withheld | None:
    """Why the run's events are withheld. What its closing step says holds, though the limit was raised since; so does the limit of
    now, for a worker of the version before closes without a word on it (R-9).
    """
    last = work.runs.trail(run.id, after=run.steps - 1)
    closing = last[-1].read() if last else None
    said = closing.withheld if isinstance(closing, Closing) else None
    return withheld(position, limits) or (None if said is None else _as_said(said))


def _as_said(said: WithheldEvents) -> Withheld:
    if said.why is WithheldWhy.HOP_LIMIT and said.chain is not None and said.limit is not None:
        return AtHopLimit(chain=said.chain, limit=said.limit)
    return ChainUnknown()
