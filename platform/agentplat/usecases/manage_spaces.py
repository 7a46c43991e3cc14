"""Spaces as people set them up: mode, participants, autonomy, removal (W-6, W-8, W-10, D-9)."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from agentplat.domain.access import Access, Person, Role
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.errors import Conflict, InvalidInput, PlatformError, Violation, phrase
from agentplat.domain.modes import CHOSEN, Mode
from agentplat.domain.registry import Agent
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Space
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.domain.workspaces import KeptTree
from agentplat.loop_check import check_name
from agentplat.store.port import Store, Work
from agentplat.usecases.circumstances import USUAL_AUTONOMY
from agentplat.usecases.finding_work import agent_in, held_space, open_workspace, person_of, readable_workspace, space_in
from agentplat.usecases.texts import check_title
from agentplat.worktrees.port import WorkTrees

MOST_RUNS = 100
"""Runs that a space is shown with."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """An agent that takes part, and how far it acts by itself in the space."""

    agent: Agent
    autonomy: Autonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSpace:
    """A space with who takes part, the newest runs that work in it, and its work trees."""

    space: Space
    participants: tuple[Participant, ...]
    runs: tuple[Run, ...]
    trees: tuple[KeptTree, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageSpaces:
    """Sets up spaces of workspaces that the caller may read. Each method raises NotFound and StoreUnavailable.

    Whoever changes something is an author or admin of the workspace's scope, else AccessDenied is raised. trees: the work trees of
    this host; None where it keeps none.
    """

    store: Store
    trees: WorkTrees | None

    def create(self, access: Access, workspace_id: int, name: str, mode: Mode = Mode.CHAT) -> Space:
        """Create a space. Raises InvalidInput for a mode that nobody chooses, Conflict where the name is taken."""
        _demand_choice(mode)
        return self._create(access, workspace_id, check_name(name, "name"), mode)

    def create_review(self, access: Access, workspace_id: int, pull_request: str) -> Space:
        """Create the space in which a pull request is reviewed; its mode stays review. pull_request: how people refer to it."""
        return self._create(
            access, workspace_id, check_name(f"review of {check_title(pull_request, 'pull_request')}", "name"), Mode.REVIEW
        )

    def _create(self, access: Access, workspace_id: int, name: str, mode: Mode) -> Space:
        by = person_of(access)
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            made = work.spaces.add(workspace.id, name, mode, by, now_ms())
            if made is None:
                raise Conflict("the workspace has a space of this name already; choose another name")
            return made

    def page(self, access: Access, workspace_id: int, after: int, size: int) -> list[Space]:
        """Spaces by id, from behind `after`."""
        with self.store.reading() as work:
            return work.spaces.page(readable_workspace(work, access, workspace_id).id, after, size)

    def one(self, access: Access, workspace_id: int, space_id: int) -> ShownSpace:
        """One space."""
        with self.store.reading() as work:
            space = space_in(work, readable_workspace(work, access, workspace_id), space_id)
            return ShownSpace(
                space=space,
                participants=tuple(
                    Participant(agent=agent, autonomy=work.spaces.autonomy(space.id, agent.id) or USUAL_AUTONOMY)
                    for agent in work.spaces.participants(space.id)
                ),
                runs=tuple(work.runs.some(work.spaces.runs_of(space.id, MOST_RUNS)).values()),
                trees=tuple(work.workspaces.trees(space.id)),
            )

    def set_mode(self, access: Access, workspace_id: int, space_id: int, mode: Mode) -> Space:
        """Set the mode for what the next message opens. Raises InvalidInput, and Conflict where the space is one of review."""
        by = person_of(access)
        _demand_choice(mode)
        with self.store.writing() as work:
            space = held_space(work, open_workspace(work, access, workspace_id), space_id)
            if space.mode is Mode.REVIEW:
                raise Conflict("a space in which a pull request is reviewed keeps its mode; create another space")
            if space.mode is not mode:
                work.spaces.set_mode(space, mode)
                self._notice(work, space, by, f"The mode is {mode.value} from the next message on; it was {space.mode.value}.")
        return self.one(access, workspace_id, space_id).space

    def add_participant(self, access: Access, workspace_id: int, space_id: int, ref: Ref) -> bool:
        """Let an agent take part, so that others may mention it; whether this changed anything."""
        by = person_of(access)
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            space = held_space(work, workspace, space_id)
            return work.spaces.add_participant(space, agent_in(work, workspace, ref), by, now_ms())

    def remove_participant(self, access: Access, workspace_id: int, space_id: int, ref: Ref) -> bool:
        """Let an agent take part no longer; whether this changed anything."""
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            space = held_space(work, workspace, space_id)
            return work.spaces.remove_participant(space, agent_in(work, workspace, ref))

    def set_autonomy(self, access: Access, workspace_id: int, space_id: int, ref: Ref, level: Autonomy) -> None:
        """Set how far an agent acts by itself in the space. Raises AccessDenied where the caller is no admin of the scope."""
        by = person_of(access)
        with self.store.writing() as work:
            workspace = readable_workspace(work, access, workspace_id)
            access.demand(Role.ADMIN, workspace.scope)
            space, agent = held_space(work, workspace, space_id), agent_in(work, workspace, ref)
            at = now_ms()
            work.spaces.set_autonomy(space, agent, level, by, at)
            work.acts.record(at, by, "set_autonomy", ref, {"space": space.id, "level": level.value})

    def remove(self, access: Access, workspace_id: int, space_id: int) -> tuple[str, ...]:
        """Remove a space and its work trees. What was said stays on record, and so does every commit.

        What was not committed in a work tree is committed first. The branches that stay, as they have commits that are nowhere
        else; those of trees on another host are told by its log. Raises Conflict while runs work in the space.
        """
        by = person_of(access)
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            space = held_space(work, workspace, space_id)
            working = work.spaces.unended(space.id)
            if working:
                raise Conflict(
                    phrase("runs %(runs)s still work in the space; let them end, or cancel them", runs=", ".join(map(str, working)))
                )
            at = now_ms()
            work.spaces.remove(space, at)
            work.acts.record(at, by, "remove_space", Ref(workspace.scope, workspace.name), {"space": space.id, "name": space.name})
        return self.tidy(space.id)

    def tidy(self, space_id: int) -> tuple[str, ...]:
        """Take the work trees of a removed space away that lie on this host; the branches that stay.

        One that cannot be removed just now is left for the next time.
        """
        if self.trees is None:
            return ()
        with self.store.reading() as work:
            kept = [tree for tree in work.workspaces.trees(space_id) if tree.repository.host == self.trees.host]
        stay = []
        for tree in kept:
            try:
                left = self.trees.remove(tree)
            except PlatformError as error:
                log.warning("a work tree could not be removed", space=space_id, path=tree.path, reason=str(error))
                continue
            with self.store.writing() as work:
                work.workspaces.forget_tree(tree)
            log.info("a work tree was removed", space=space_id, branch=left.branch, committed=left.committed)
            stay += [] if left.branch is None else [left.branch]
        self.trees.remove_snapshots(space_id)
        return tuple(stay)

    def tidy_all(self) -> None:
        """Take away what removed spaces have left on this host."""
        if self.trees is not None:
            with self.store.reading() as work:
                left = set(work.workspaces.left_behind(self.trees.host))
                here = [work.spaces.find(space_id) for space_id in self.trees.spaces()]
            left |= {space.id for space in here if space is not None and space.removed_at is not None}
            for space_id in sorted(left):
                self.tidy(space_id)

    def _notice(self, work: Work, space: Space, by: Person, text: str) -> None:
        work.spaces.say(space, MessageKind.NOTICE, Author(person_id=by.id), text, now_ms())


def _demand_choice(mode: Mode) -> None:
    if mode not in CHOSEN:
        modes = ", ".join(chosen.value for chosen in CHOSEN)
        remedy = phrase("choose %(modes)s; review is set by spaces of pull requests", modes=modes)
        reason = phrase("is %(mode)s, which nobody chooses", mode=mode.value)
        raise InvalidInput([Violation(field="mode", reason=reason, remedy=remedy)])
