"""Workspaces, their repositories, and contracts of output in SQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.artifacts import Blob
from agentplat.domain.contracts import ContractMode, RunContract
from agentplat.domain.registry import Agent
from agentplat.domain.scopes import INSTALLATION, Ref
from agentplat.domain.workspaces import KeptTree, Repository, Workspace
from agentplat.store import work_schema as schema
from agentplat.store.registry import below, insert
from agentplat.store.schema import agents, grants, people, published
from agentplat.store.work_port import Contracts, Workspaces


def _workspace(row: Row[Any]) -> Workspace:
    return Workspace(id=row.id, scope=row.scope, name=row.name, created_at=row.created_at)


def _repository(row: Any) -> Repository:
    return Repository(id=row.id, workspace_id=row.workspace_id, name=row.name, host=row.host, path=row.path)


def _containing(scope: str) -> set[str]:
    """The scope and those that contain it."""
    return {INSTALLATION, scope.partition("/")[0], scope}


class SqlWorkspaces(Workspaces):
    """Workspaces in SQL; `store.work_port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def add(self, scope: str, name: str, by: Person | None, at: int) -> Workspace | None:
        values = {"scope": scope, "name": name, "created_at": at, "created_by_id": None if by is None else by.id}
        added = insert(self._connection, schema.workspaces).values(values).on_conflict_do_nothing()
        row = self._connection.execute(added.returning(*schema.workspaces.c)).one_or_none()
        return None if row is None else _workspace(row)

    @override
    def find(self, workspace_id: int) -> Workspace | None:
        workspaces = schema.workspaces
        row = self._connection.execute(sa.select(workspaces).where(workspaces.c.id == workspace_id)).one_or_none()
        return None if row is None else _workspace(row)

    @override
    def page(self, scopes: Collection[str], after: int, size: int) -> list[Workspace]:
        workspaces = schema.workspaces
        wanted = sa.select(workspaces).where(below(workspaces.c.scope, scopes), workspaces.c.id > after)
        return [_workspace(row) for row in self._connection.execute(wanted.order_by(workspaces.c.id).limit(size))]

    @override
    def link(self, workspace: Workspace, name: str, host: str, path: str) -> Repository | None:
        values = {"workspace_id": workspace.id, "name": name, "host": host, "path": path}
        added = insert(self._connection, schema.repositories).values(values).on_conflict_do_nothing()
        row = self._connection.execute(added.returning(*schema.repositories.c)).one_or_none()
        return None if row is None else _repository(row)

    @override
    def repositories(self, workspace_id: int) -> list[Repository]:
        repositories = schema.repositories
        wanted = sa.select(repositories).where(repositories.c.workspace_id == workspace_id).order_by(repositories.c.name)
        return [_repository(row) for row in self._connection.execute(wanted)]

    @override
    def members(self, workspace: Workspace) -> list[Person]:
        granted = sa.select(grants.c.person_id).where(grants.c.scope.in_(sorted(_containing(workspace.scope))))
        wanted = sa.select(people).where(people.c.id.in_(granted)).order_by(people.c.scope, people.c.name)
        return [Person(id=row.id, ref=Ref(row.scope, row.name)) for row in self._connection.execute(wanted)]

    @override
    def agents(self, workspace: Workspace) -> list[Agent]:
        joined = agents.join(published, published.c.agent_id == agents.c.id)
        wanted = sa.select(*agents.c, published.c.number.label("current")).select_from(joined)
        found = wanted.where(below(agents.c.scope, [workspace.scope])).order_by(agents.c.scope, agents.c.name)
        return [
            Agent(id=row.id, ref=Ref(row.scope, row.name), paused=row.paused, current=row.current)
            for row in self._connection.execute(found)
        ]

    @override
    def keep_tree(self, space_id: int, repository: Repository, path: str, branch: str) -> None:
        values = {"space_id": space_id, "repository_id": repository.id, "host": repository.host, "path": path, "branch": branch}
        self._connection.execute(insert(self._connection, schema.work_trees).values(values).on_conflict_do_nothing())

    @override
    def trees(self, space_id: int) -> list[KeptTree]:
        trees, repositories = schema.work_trees, schema.repositories
        joined = trees.join(repositories, repositories.c.id == trees.c.repository_id)
        wanted = sa.select(*repositories.c, trees.c.path.label("tree"), trees.c.branch).select_from(joined)
        found = self._connection.execute(wanted.where(trees.c.space_id == space_id).order_by(repositories.c.name))
        return [KeptTree(space_id=space_id, repository=_repository(row), path=row.tree, branch=row.branch) for row in found]

    @override
    def forget_tree(self, tree: KeptTree) -> None:
        trees = schema.work_trees.c
        this = sa.and_(trees.space_id == tree.space_id, trees.repository_id == tree.repository.id)
        self._connection.execute(schema.work_trees.delete().where(this))

    @override
    def left_behind(self, host: str) -> list[int]:
        trees, spaces = schema.work_trees.c, schema.spaces.c
        joined = schema.work_trees.join(schema.spaces, spaces.id == trees.space_id)
        wanted = sa.select(trees.space_id).distinct().select_from(joined)
        found = wanted.where(trees.host == host, spaces.removed_at.is_not(None)).order_by(trees.space_id)
        return list(self._connection.execute(found).scalars())


class SqlContracts(Contracts):
    """Contracts in SQL; `store.work_port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def declare(self, run_id: int, schema_text: str, mode: ContractMode) -> None:
        self._connection.execute(schema.run_contracts.insert().values(run_id=run_id, schema=schema_text, mode=mode.value))

    @override
    def of_run(self, run_id: int) -> RunContract | None:
        return self.of_runs([run_id]).get(run_id)

    @override
    def of_runs(self, run_ids: Collection[int]) -> dict[int, RunContract]:
        contracts = schema.run_contracts
        rows = self._connection.execute(sa.select(contracts).where(contracts.c.run_id.in_(run_ids)))
        return {row.run_id: _contract(row) for row in rows}

    @override
    def reject(self, run_id: int) -> int:
        contracts = schema.run_contracts
        counted = contracts.update().where(contracts.c.run_id == run_id).values(rejections=contracts.c.rejections + 1)
        rejections: int = self._connection.execute(counted.returning(contracts.c.rejections)).scalar_one()
        return rejections

    @override
    def accept(self, run_id: int, output: Blob) -> bool:
        contracts = schema.run_contracts
        first = sa.and_(contracts.c.run_id == run_id, contracts.c.output_ref.is_(None))
        kept = {"output_ref": output.ref, "output_digest": output.digest, "output_size": output.size}
        return self._connection.execute(contracts.update().where(first).values(kept)).rowcount == 1


def _contract(row: Row[Any]) -> RunContract:
    output = None if row.output_ref is None else Blob(ref=row.output_ref, digest=row.output_digest, size=row.output_size)
    return RunContract(schema=row.schema, mode=ContractMode(row.mode), rejections=row.rejections, output=output)
