"""The store on SQLAlchemy: transactions, and the way to a database whose schema is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from typing_extensions import override

from agentplat.domain.errors import SchemaOutdated, StoreUnavailable
from agentplat.store.approvals import SqlApprovals
from agentplat.store.artifacts import SqlArtifacts
from agentplat.store.budgets import SqlBudgets
from agentplat.store.chains import SqlChains
from agentplat.store.deliveries import SqlDeliveries
from agentplat.store.engine import WRITES, open_engine
from agentplat.store.insights import SqlInsights
from agentplat.store.migrating import schema_is_current
from agentplat.store.outbox import SqlOutbox
from agentplat.store.people import SqlActs, SqlPeople
from agentplat.store.pipelines import SqlPipelines
from agentplat.store.port import Store, Work
from agentplat.store.proposals import SqlProposals
from agentplat.store.registry import SqlRegistry
from agentplat.store.runs import SqlRuns
from agentplat.store.spaces import SqlSpaces
from agentplat.store.tickets import SqlTickets
from agentplat.store.workspaces import SqlContracts, SqlWorkspaces


class SqlWork(Work):
    """Work in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    @override
    def registry(self) -> SqlRegistry:
        return SqlRegistry(self._connection)

    @cached_property
    @override
    def outbox(self) -> SqlOutbox:
        return SqlOutbox(self._connection)

    @cached_property
    @override
    def people(self) -> SqlPeople:
        return SqlPeople(self._connection)

    @cached_property
    @override
    def acts(self) -> SqlActs:
        return SqlActs(self._connection)

    @cached_property
    @override
    def runs(self) -> SqlRuns:
        return SqlRuns(self._connection)

    @cached_property
    @override
    def artifacts(self) -> SqlArtifacts:
        return SqlArtifacts(self._connection)

    @cached_property
    @override
    def approvals(self) -> SqlApprovals:
        return SqlApprovals(self._connection)

    @cached_property
    @override
    def budgets(self) -> SqlBudgets:
        return SqlBudgets(self._connection)

    @cached_property
    @override
    def chains(self) -> SqlChains:
        return SqlChains(self._connection)

    @cached_property
    @override
    def deliveries(self) -> SqlDeliveries:
        return SqlDeliveries(self._connection)

    @cached_property
    @override
    def insights(self) -> SqlInsights:
        return SqlInsights(self._connection)

    @cached_property
    @override
    def workspaces(self) -> SqlWorkspaces:
        return SqlWorkspaces(self._connection)

    @cached_property
    @override
    def tickets(self) -> SqlTickets:
        return SqlTickets(self._connection)

    @cached_property
    @override
    def spaces(self) -> SqlSpaces:
        return SqlSpaces(self._connection)

    @cached_property
    @override
    def contracts(self) -> SqlContracts:
        return SqlContracts(self._connection)

    @cached_property
    @override
    def proposals(self) -> SqlProposals:
        return SqlProposals(self._connection)

    @cached_property
    @override
    def pipelines(self) -> SqlPipelines:
        return SqlPipelines(self._connection)


class SqlStore(Store):
    """Store in SQL; `store.port` says what each method does."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def _transaction(self, writes: bool) -> Iterator[SqlWork]:
        try:
            with self._engine.connect().execution_options(**{WRITES: writes}) as connection, connection.begin():
                yield SqlWork(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
            raise StoreUnavailable from error

    @contextmanager
    @override
    def reading(self) -> Iterator[SqlWork]:
        with self._transaction(writes=False) as work:
            yield work

    @contextmanager
    @override
    def writing(self) -> Iterator[SqlWork]:
        with self._transaction(writes=True) as work:
            yield work

    @override
    def check(self) -> None:
        try:
            with self._engine.connect() as connection:
                current = schema_is_current(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
            raise StoreUnavailable from error
        if not current:
            raise SchemaOutdated

    @override
    def close(self) -> None:
        self._engine.dispose()


def open_store(url: str) -> SqlStore:
    """A store at ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``. Raises InvalidInput for any other address."""
    return SqlStore(open_engine(url))
