"""Chains for tests: agents that listen to each other, and a platform in one thread that carries and dispatches their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.artifacts import Answer
from agentplat.domain.chains import OutcomeKind
from agentplat.domain.deliveries import Outcome
from agentplat.domain.outbox import Backoff
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Closing
from agentplat.store.port import Store
from agentplat.usecases.dispatch_events import DispatchEvents, Undispatched
from agentplat.usecases.finish_run import FinishRun

from tests.agentplat.run_records import ALL_DRIVERS, agent_of, folder_content, leased, opened

NO_WAIT = Backoff(first_s=1e-6, longest_s=1e-6)
"""Waits that are over at once, rounded to whole milliseconds."""
LONG_WAIT = Backoff(first_s=600, longest_s=600)
EVERYBODY = Access(None, frozenset(Grant(role, "*") for role in Role))


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A platform in one thread."""

    store: Store
    folder: Path
    backoff: Backoff = NO_WAIT

    @property
    def dispatch(self) -> DispatchEvents:
        """The dispatcher's use case."""
        return DispatchEvents(store=self.store, backoff=self.backoff)

    def finish(self, run: Run, artifacts: Mapping[str, str] | None = None) -> Run:
        """End a held run well."""
        return FinishRun(store=self.store, content=folder_content(self.folder))(run, Answer(summary="", artifacts=artifacts or {}))

    def run(self, ref: Ref, artifacts: Mapping[str, str] | None = None) -> Run:
        """A run that a person opened, finished. No other run may wait."""
        run = opened(self.store, ref)
        held = leased(self.store)
        assert held.id == run.id
        return self.finish(held, artifacts)

    def sweep(self) -> int:
        """Dispatch until nothing is due; how many runs were handled."""
        count = 0
        while (done := self.dispatch()) is not None:
            assert not isinstance(done, Undispatched), f"run {done.run_id} could not be handled"
            count += 1
        return count

    def carry(self) -> int:
        """Finish every run that waits; how many there were."""
        count = 0
        while run := self.next():
            self.finish(run)
            count += 1
        return count

    def next(self) -> Run | None:
        """The oldest run that waits, held."""
        with self.store.reading() as work:
            waits = work.runs.leasable(ALL_DRIVERS)
        return leased(self.store) if waits else None

    def settle(self) -> None:
        """Carry and dispatch until nothing happens any more."""
        while self.sweep() + self.carry():
            pass

    def outcomes(self, run: Run) -> list[Outcome]:
        """What became of a run's deliveries."""
        with self.store.reading() as work:
            return work.deliveries.outcomes([run.id])

    def kinds(self, run: Run) -> dict[str | None, OutcomeKind]:
        """The kind of outcome by the listener's name."""
        return {None if one.listener is None else one.listener.name: one.kind for one in self.outcomes(run)}

    def chain(self, run: Run) -> list[Run]:
        """All runs of the run's chain."""
        assert run.chain is not None
        with self.store.reading() as work:
            return work.runs.of_chain(run.chain, 10_000)

    def all_runs(self) -> list[Run]:
        """Every run there is, oldest first."""
        with self.store.reading() as work:
            return work.runs.page(["*"], None, 100_000)[::-1]

    def closing(self, run: Run) -> Closing:
        """The closing step."""
        with self.store.reading() as work:
            body = work.runs.trail(run.id)[-1].read()
        assert isinstance(body, Closing)
        return body


def two_agent_loop(store: Store, first: Ref, second: Ref) -> None:
    """Two agents that start each other."""
    agent_of(store, first, ("there",), ("back",))
    agent_of(store, second, ("back",), ("there",))
