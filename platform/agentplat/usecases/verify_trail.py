"""Finding any change to a run's trail (R-2)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.errors import TrailDamaged
from agentplat.domain.runs import Run
from agentplat.domain.trail import Fault, Step, changed, first_fault, verify
from agentplat.store.port import Store
from agentplat.usecases.finding import readable_run


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTrail:
    """Checks trails as they are stored."""

    store: Store

    def __call__(self, access: Access, run_id: int) -> tuple[Run, list[Step], Fault | None]:
        """The run, its steps, and the first fault of its trail. Raises NotFound where the run is not readable, StoreUnavailable."""
        with self.store.reading() as work:
            run = readable_run(work, access, run_id)
            try:
                trail, unread = work.runs.trail(run_id), None
            except TrailDamaged as error:
                trail, unread = work.runs.trail(run_id, size=error.number - 1), changed(error.number)
        if unread is not None:
            # Something before the step that cannot be read at all may be wrong too, and the first fault is asked for.
            return run, trail, first_fault(run.id, trail) or unread
        return run, trail, verify(run.id, run.steps, run.head, run.ended, trail)
