"""Looking at runs together: what is under way, what a period came to, what changed (U-3, U-9). Redacted like every reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from agentplat.domain.access import Access
from agentplat.domain.budgets import Unit
from agentplat.domain.insights import LoggedRun, Progress, RunFilter, Totals
from agentplat.domain.scopes import Ref
from agentplat.store.port import Store
from agentplat.usecases.finding import readable_run

MOST_AGENTS = 1_000
MOST_UNDER_WAY = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterEntry:
    """A published agent and what it does just now. runs: under way, oldest first; none where it is idle.

    idle_since: when its last run ended, None where it never had one.
    """

    agent: Ref
    paused: bool
    runs: tuple[LoggedRun, ...]
    idle_since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The agents of some scopes. cut: whether there are more agents or runs than these."""

    agents: tuple[RosterEntry, ...]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRuns:
    """Reads runs by the many."""

    store: Store

    def roster(self, access: Access, scope: str | None) -> Roster:
        """Who works, who waits, who is idle. Raises StoreUnavailable."""
        scopes = access.scopes if scope is None else access.scopes_in(scope)
        with self.store.reading() as work:
            agents = work.registry.declared(scopes, MOST_AGENTS + 1)
            runs = work.insights.under_way(scopes, MOST_UNDER_WAY + 1)
            ended = work.insights.last_ended(scopes)
        by_agent: dict[Ref, list[LoggedRun]] = {}
        for logged in runs[:MOST_UNDER_WAY]:
            by_agent.setdefault(logged.run.agent, []).append(logged)
        entries = [
            RosterEntry(
                agent=declared.agent,
                paused=declared.paused,
                runs=tuple(by_agent.get(declared.agent, ())),
                idle_since=ended.get(declared.agent),
            )
            for declared in agents[:MOST_AGENTS]
        ]
        return Roster(agents=tuple(entries), cut=len(agents) > MOST_AGENTS or len(runs) > MOST_UNDER_WAY)

    def log(self, access: Access, which: RunFilter, before: int | None, size: int) -> list[LoggedRun]:
        """The run log, newest first, as far as the reader may see it. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.insights.log(_narrowed(access, which), before, size)

    def totals(self, access: Access, which: RunFilter) -> Totals:
        """What the runs came to that the reader may see. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.insights.totals(_narrowed(access, which))

    def spent(self, access: Access, run_id: int) -> Mapping[Unit, int]:
        """What one run cost so far. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            run = readable_run(work, access, run_id)
            return work.insights.spent([run.id]).get(run.id, {})

    def begin(self) -> tuple[int, set[int]]:
        """The newest run and those that wait, for `progress` to go on from. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.insights.newest(), work.insights.waiting()

    def progress(self, run_ids: Collection[int], newer_than: int) -> list[Progress]:
        """How far those runs are that are queued, running, asked about or newer. For the platform itself: it is not redacted.

        Raises StoreUnavailable.
        """
        with self.store.reading() as work:
            return work.insights.progress(run_ids, newer_than)

    def said(self, space_ids: Collection[int]) -> dict[int, int]:
        """The last message of each space, for the platform itself. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.spaces.last_said(space_ids)


def _narrowed(access: Access, which: RunFilter) -> RunFilter:
    """The same without what the reader may not see."""
    return replace(which, scopes=tuple(found for scope in which.scopes for found in access.scopes_in(scope)))
