"""Taking runs for a worker, keeping them and giving them back (R-4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.contracts import RunContract
from agentplat.domain.errors import RunFailed
from agentplat.domain.recovery import Past, past_of
from agentplat.domain.runs import MOST_ATTEMPTS, DriverKind, Run, RunState
from agentplat.domain.steps import Closing, Opening, TakenOver
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Circumstances
from agentplat.domain.trail import verify
from agentplat.store.port import Store, Work
from agentplat.usecases.cancel_run import close_cancelled
from agentplat.usecases.circumstances import circumstances_of

GIVEN_UP = (
    f"given up after {MOST_ATTEMPTS} attempts: each time, whoever held the run ended or fell silent before the run came to its end"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A run that a worker holds, with all that is needed to drive it. past: what was done in it before.

    circumstances: what decides which tools it has. contract: what its output has to fit, where it has to fit anything.
    """

    run: Run
    manifest: Mapping[str, Any]
    opening: Opening
    input: str | None
    past: Past
    circumstances: Circumstances
    contract: RunContract | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRun:
    """lease_s: seconds that a run is held without a sign of life from its worker."""

    store: Store
    content: ContentStore
    lease_s: float

    def __call__(self, drivers: Collection[DriverKind], owner: str, scopes: Collection[str] | None = None) -> Run | None:
        """Hold a run with one of the drivers; None where there is none to take. scopes: only runs of agents there and below.

        The run given may have ended by this: because somebody wants it cancelled, or because it was taken up too often. One that
        is taken over says so in its trail. Raises StoreUnavailable.
        """
        with self.store.reading() as work:
            if not work.runs.leasable(drivers, scopes):
                return None
        with self.store.writing() as work:
            run = work.runs.lease(drivers, owner, self.lease_s, scopes)
            return None if run is None else _taken(work, run)

    def prepare(self, run: Run) -> Held:
        """What a held run is about. Raises RunFailed where its trail is damaged, for nothing may follow from that; ContentDamaged,
        ContentUnavailable, StoreUnavailable.
        """
        with self.store.reading() as work:
            version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
            trail = work.runs.trail(run.id)
            given = work.runs.input(run.id)
            contract = work.contracts.of_run(run.id)
            circumstances = circumstances_of(work, run, {} if version is None else version.content.manifest)
        fault = verify(run.id, run.steps, run.head, run.ended, trail)
        if fault is not None:
            raise RunFailed(f"its trail is damaged: step {fault.number} {fault.reason}")
        opening = trail[0].read()
        if version is None or not isinstance(opening, Opening):
            raise AssertionError("a run has a version and begins with its opening step")
        text = None if given is None or given[1] else self.content.get(given[0]).decode()
        return Held(
            run=run,
            manifest=version.content.manifest,
            opening=opening,
            input=text,
            past=past_of(trail),
            circumstances=circumstances,
            contract=contract,
        )

    def renew(self, run: Run) -> bool:
        """Hold the run for another while; False where it is lost. Raises StoreUnavailable."""
        with self.store.writing() as work:
            return work.runs.renew(run, self.lease_s)

    def release(self, run: Run) -> None:
        """Give the run back in order. Raises StoreUnavailable."""
        with self.store.writing() as work:
            work.runs.release(run)


def _taken(work: Work, run: Run) -> Run:
    """A run that was leased just now, as its holder finds it."""
    if run.cancel_asked_at is not None:
        return close_cancelled(work, run)
    if run.attempts > MOST_ATTEMPTS:
        return work.runs.close(run, Closing(state=RunState.FAILED, reason=GIVEN_UP), now_ms())
    return work.runs.append(run, [TakenOver(attempt=run.attempts)], now_ms()) if run.attempts > 1 else run
