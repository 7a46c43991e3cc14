"""Taking runs for a worker, keeping them and giving them back (R-4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.contracts import RunContract
from agentplat.domain.errors import Conflict, RunFailed
from agentplat.domain.modes import Mode
from agentplat.domain.recovery import Past, past_of
from agentplat.domain.runs import MOST_ATTEMPTS, DriverKind, Run, RunState
from agentplat.domain.spaces import Workplace
from agentplat.domain.steps import Closing, Opening, TakenOver
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Circumstances
from agentplat.domain.trail import verify
from agentplat.domain.workspaces import Repository, WorkTree
from agentplat.store.port import Store, Work
from agentplat.usecases.cancel_run import close_cancelled
from agentplat.usecases.circumstances import circumstances_of
from agentplat.usecases.tell_space import end_run
from agentplat.worktrees.port import WorkTrees

GIVEN_UP = (
    f"given up after {MOST_ATTEMPTS} attempts: each time, whoever held the run ended or fell silent before the run came to its end"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A run that a worker holds, with all that is needed to drive it. past: what was done in it before.

    circumstances: what decides which tools it has. contract: what its output has to fit, where it has to fit anything.
    workplace: where it works, None where it works in no space. trees: its work trees, once `place` has put them there.
    """

    run: Run
    manifest: Mapping[str, Any]
    opening: Opening
    input: str | None
    past: Past
    circumstances: Circumstances
    contract: RunContract | None = None
    workplace: Workplace | None = None
    trees: tuple[WorkTree, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRun:
    """lease_s: seconds that a run is held without a sign of life from its worker. trees: the work trees of this host; without them,
    no run is taken that needs one.
    """

    store: Store
    content: ContentStore
    lease_s: float
    trees: WorkTrees | None = None

    def __call__(self, drivers: Collection[DriverKind], owner: str, scopes: Collection[str] | None = None) -> Run | None:
        """Hold a run with one of the drivers; None where there is none to take. scopes: only runs of agents there and below.

        The run given may have ended by this: because somebody wants it cancelled, or because it was taken up too often. One that
        is taken over says so in its trail. Raises StoreUnavailable.
        """
        host = None if self.trees is None else self.trees.host
        with self.store.reading() as work:
            if not work.runs.leasable(drivers, scopes, host):
                return None
        with self.store.writing() as work:
            run = work.runs.lease(drivers, owner, self.lease_s, scopes, host)
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
            workplace = work.spaces.workplace(run.id)
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
            workplace=workplace,
        )

    def place(self, held: Held) -> Held:
        """The run with its work trees, which are made if need be: those of its space to write to in a chat, else files to read.

        Raises RunFailed where they cannot be made, StoreUnavailable.
        """
        workplace = held.workplace
        if workplace is None or self.trees is None:
            return held
        with self.store.reading() as work:
            linked = work.workspaces.repositories(workplace.workspace_id)
            space = work.spaces.find(workplace.space_id)
            kept = {tree.repository.id: tree.branch for tree in work.workspaces.trees(workplace.space_id)}
        assert space is not None  # a workplace names a space that is there
        found = []
        for repository in linked:
            branch = kept.get(repository.id) or self.trees.branch_of(space.id, space.name)
            try:
                found.append(self._tree(held.run, workplace, repository, branch))
            except Conflict as error:
                raise RunFailed(f"its work tree of {repository.name} cannot be made: {error}") from error
        return replace(held, trees=tuple(found))

    def _tree(self, run: Run, workplace: Workplace, repository: Repository, branch: str) -> WorkTree:
        assert self.trees is not None  # asked by `place`
        if workplace.mode is not Mode.CHAT:
            return self.trees.snapshot(repository, workplace.space_id, branch, run.id)
        path = self.trees.path_of(workplace.space_id, repository)
        with self.store.writing() as work:
            # Before it is made, so that one that was left half-made is taken away with its space.
            work.workspaces.keep_tree(workplace.space_id, repository, path, branch)
        return self.trees.open(repository, workplace.space_id, branch)

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
        return end_run(work, run, Closing(state=RunState.FAILED, reason=GIVEN_UP), now_ms())
    return work.runs.append(run, [TakenOver(attempt=run.attempts)], now_ms()) if run.attempts > 1 else run
