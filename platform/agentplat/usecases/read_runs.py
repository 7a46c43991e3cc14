"""Reading runs and their trails. Each name and id in them is asked about again (O-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.errors import TrailDamaged
from agentplat.domain.runs import Run
from agentplat.domain.shown_runs import ShownRun, ShownStep, runs_named, shown_steps
from agentplat.domain.trail import first_fault
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import readable_run


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRuns:
    """Reads runs."""

    store: Store

    def page(self, access: Access, before: int | None, size: int) -> list[ShownRun]:
        """Runs of readable agents with an id under `before`, newest first. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return _shown(work, access, work.runs.page(access.scopes, before, size))

    def one(self, access: Access, run_id: int) -> ShownRun:
        """One run. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            [shown] = _shown(work, access, [readable_run(work, access, run_id)])
            return shown

    def trail(self, access: Access, run_id: int, after: int, size: int) -> tuple[Run, list[ShownStep]]:
        """The run, and at most so many of its steps behind a number. Raises NotFound, TrailDamaged, StoreUnavailable."""
        with self.store.reading() as work:
            run = readable_run(work, access, run_id)
            # From the first one on, as a hash is shown only where nothing before it is hidden.
            trail = work.runs.trail(run_id, size=after + size)
            fault = first_fault(run_id, trail)
            if fault is not None:
                raise TrailDamaged(run_id, fault.number)
            readable = work.runs.readable_among(runs_named(trail), access.scopes)
        shown = shown_steps(trail, lambda text: access.may_read(text.partition(":")[0]), lambda named: named in readable)
        return run, shown[after:]


def _shown(work: Work, access: Access, runs: Sequence[Run]) -> list[ShownRun]:
    named = {run_id for run in runs for run_id in (run.source_run_id, run.chain) if run_id is not None}
    readable = work.runs.readable_among(named, access.scopes)
    contracts = work.contracts.of_runs({run.id for run in runs})
    ids = {person_id for run in runs for person_id in (run.on_behalf_of_id, run.cancel_asked_by_id) if person_id is not None}
    people = {person_id: access.visible(work.people.by_id(person_id).ref) for person_id in ids}
    return [
        ShownRun(
            run=run,
            on_behalf_of=people[run.on_behalf_of_id],
            cancel_asked_by=None if run.cancel_asked_by_id is None else people[run.cancel_asked_by_id],
            source_run=run.source_run_id if run.source_run_id in readable else None,
            chain=run.chain if run.chain in readable else None,
            contract=contracts.get(run.id),
        )
        for run in runs
    ]
