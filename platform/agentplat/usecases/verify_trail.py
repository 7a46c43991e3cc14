"""Reading a run's trail, and finding any change to it (R-2)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.errors import NotFound
from agentplat.domain.runs import Run
from agentplat.domain.trail import Fault, Step, verify
from agentplat.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTrail:
    """Checks trails as they are stored."""

    store: Store

    def __call__(self, access: Access, run_id: int) -> tuple[Run, list[Step], Fault | None]:
        """The run, its steps, and the first fault of its trail. Raises NotFound where the run is not readable, StoreUnavailable."""
        with self.store.reading() as work:
            run = work.runs.find(run_id)
            if run is None or not access.may_read(run.agent.scope):
                raise NotFound
            trail = work.runs.trail(run_id)
        return run, trail, verify(run.id, run.steps, run.head, run.ended, trail)
