"""Taking runs for a worker, keeping them and giving them back (R-4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.runs import DriverKind, Run
from agentplat.domain.steps import Opening
from agentplat.domain.trail import Step
from agentplat.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A run that a worker holds, with all that is needed to drive it."""

    run: Run
    manifest: Mapping[str, Any]
    opening: Opening
    input: str | None
    trail: list[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRun:
    """lease_s: seconds that a run is held without a sign of life from its worker."""

    store: Store
    content: ContentStore
    lease_s: float

    def __call__(self, drivers: Collection[DriverKind], owner: str) -> Run | None:
        """Hold a run with one of the drivers; None where there is none to take. Raises StoreUnavailable."""
        with self.store.reading() as work:
            if not work.runs.leasable(drivers):
                return None
        with self.store.writing() as work:
            return work.runs.lease(drivers, owner, self.lease_s)

    def prepare(self, run: Run) -> Held:
        """What a held run is about. Raises ContentDamaged, ContentUnavailable, StoreUnavailable."""
        with self.store.reading() as work:
            version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
            trail = work.runs.trail(run.id)
            given = work.runs.input(run.id)
        opening = trail[0].read()
        if version is None or not isinstance(opening, Opening):
            raise AssertionError("a run has a version and begins with its opening step")
        text = None if given is None or given[1] else self.content.get(given[0]).decode()
        return Held(run=run, manifest=version.content.manifest, opening=opening, input=text, trail=trail)

    def renew(self, run: Run) -> bool:
        """Hold the run for another while; False where it is lost. Raises StoreUnavailable."""
        with self.store.writing() as work:
            return work.runs.renew(run, self.lease_s)

    def release(self, run: Run) -> None:
        """Give the run back in order. Raises StoreUnavailable."""
        with self.store.writing() as work:
            work.runs.release(run)
