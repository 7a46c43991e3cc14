"""Workspaces: where the people and agents of a scope work together, and the repositories that they link (W-1, W-10, W-12)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Role
from agentplat.domain.errors import Conflict, InvalidInput, Violation, phrase
from agentplat.domain.registry import Agent
from agentplat.domain.scopes import INSTALLATION, Ref
from agentplat.domain.times import now_ms
from agentplat.domain.workspaces import Repository, Workspace
from agentplat.loop_check import check_name
from agentplat.store.port import Store
from agentplat.usecases.finding_work import person_of, readable_members, readable_workspace
from agentplat.worktrees.port import WorkTrees


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWorkspace:
    """A workspace as one reader gets it. members: those whose home they may read. repositories: None where paths are not theirs."""

    workspace: Workspace
    members: tuple[Ref, ...]
    agents: tuple[Agent, ...]
    repositories: tuple[Repository, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageWorkspaces:
    """trees: the repositories of this host; None where there are none to link."""

    store: Store
    trees: WorkTrees | None

    def create(self, access: Access, scope: str, name: str) -> Workspace:
        """Create a workspace. Raises AccessDenied to whoever is no author or admin of the scope, Conflict, InvalidInput."""
        by, called = person_of(access), check_name(name, "name")
        access.demand_publishing(scope)
        with self.store.writing() as work:
            at = now_ms()
            made = work.workspaces.add(scope, called, by, at)
            if made is None:
                raise Conflict(phrase("%(scope)s has a workspace of this name already; choose another name", scope=scope))
            work.acts.record(at, by, "create_workspace", Ref(scope, called), {"workspace": made.id})
            return made

    def page(self, access: Access, after: int, size: int) -> list[Workspace]:
        """The workspaces that the caller may read, by id, from behind `after`."""
        with self.store.reading() as work:
            return work.workspaces.page(access.scopes, after, size)

    def alone(self, access: Access, workspace_id: int) -> Workspace:
        """One workspace without what is in it. Raises NotFound."""
        with self.store.reading() as work:
            return readable_workspace(work, access, workspace_id)

    def one(self, access: Access, workspace_id: int) -> ShownWorkspace:
        """One workspace. Raises NotFound."""
        with self.store.reading() as work:
            workspace = readable_workspace(work, access, workspace_id)
            return ShownWorkspace(
                workspace=workspace,
                members=tuple(person.ref for person in readable_members(work, access, workspace)),
                agents=tuple(work.workspaces.agents(workspace)),
                repositories=tuple(work.workspaces.repositories(workspace.id)),
            )

    def link(self, access: Access, workspace_id: int, name: str, path: str) -> Repository:
        """Link a git repository of this host.

        A path of the host is nothing that a company may name, or one could link what another one keeps there: only an admin of
        the installation links. Raises NotFound, AccessDenied, Conflict, InvalidInput.
        """
        by, called = person_of(access), check_name(name, "name")
        with self.store.reading() as work:
            workspace = readable_workspace(work, access, workspace_id)
        access.demand(Role.ADMIN, INSTALLATION)
        if self.trees is None:
            raise Conflict("this server keeps no work trees")
        folder = self.trees.check(path)
        with self.store.writing() as work:
            hosts = {linked.host for linked in work.workspaces.repositories(workspace.id)}
            if hosts - {self.trees.host}:
                reason = f"is on the host {self.trees.host}, and the workspace's others are on {', '.join(sorted(hosts))}"
                raise InvalidInput([Violation(field="path", reason=reason, remedy="link repositories of one host")])
            made = work.workspaces.link(workspace, called, self.trees.host, folder)
            if made is None:
                raise Conflict("the workspace links a repository of this name already; choose another name")
            details = {"workspace": workspace.id, "repository": called, "host": made.host, "path": made.path}
            work.acts.record(now_ms(), by, "link_repository", Ref(workspace.scope, workspace.name), details)
            return made
