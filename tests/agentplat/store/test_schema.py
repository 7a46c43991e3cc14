"""The schema of the platform's database: where migrations lead, and what it refuses whoever writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from agentplat.domain.errors import InvalidInput, SchemaOutdated, StoreUnavailable
from agentplat.domain.outbox import EntryKind
from agentplat.domain.scopes import Ref
from agentplat.store import work_schema
from agentplat.store.engine import journal_mode, open_engine, sqlite_driver
from agentplat.store.migrating import VERSION_TABLE, migrate
from agentplat.store.sql import open_store
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.agentplat.records import content, found, person, published

DEVELOPER = Ref("acme/platform", "developer")
METADATA = work_schema.workspaces.metadata


def test_migrations_arrive_at_the_tables_of_the_code(empty_url: str) -> None:
    migrate(empty_url)
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        checks = {
            table.name: {check["name"] for check in sa.inspect(connection).get_check_constraints(table.name)}
            for table in METADATA.sorted_tables
        }
    engine.dispose()
    wanted = {
        table.name: {str(rule.name) for rule in table.constraints if isinstance(rule, sa.CheckConstraint)}
        for table in METADATA.sorted_tables
    }
    assert checks == wanted


def test_migrating_again_and_from_many_sides_at_once_changes_nothing(empty_url: str) -> None:
    gate = threading.Barrier(4)

    def run(_: int) -> str:
        gate.wait(30)
        return migrate(empty_url)

    with ThreadPoolExecutor(4) as pool:
        revisions = set(pool.map(run, range(4)))
    assert len(revisions) == 1
    with closing(open_store(empty_url)) as store:
        store.check()


def test_a_database_without_the_schema_is_not_served(empty_url: str) -> None:
    with closing(open_store(empty_url)) as store, pytest.raises(SchemaOutdated):
        store.check()


@pytest.mark.promise("P-3")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE versions SET manifest = '{}'",
        "DELETE FROM versions",
        "UPDATE emissions SET artifacts = '[]'",
        "DELETE FROM emissions",
        "UPDATE acts SET act = 'nothing'",
        "DELETE FROM acts",
    ],
)
def test_the_database_itself_keeps_versions_and_acts_as_they_were(database_url: str, statement: str) -> None:
    with closing(open_store(database_url)) as store:
        published(store, DEVELOPER, 1, ("code",))
        with store.writing() as work:
            work.acts.record(1, None, "publish", DEVELOPER, {})
    engine = open_engine(database_url)
    with engine.connect() as connection, pytest.raises(sa.exc.IntegrityError, match="never changed"):
        connection.exec_driver_sql(statement)
    engine.dispose()


def _second_publication(url: str) -> None:
    with closing(open_store(url)) as store, store.writing() as work:
        agent = work.registry.hold(DEVELOPER)
        work.outbox.append(agent, EntryKind.PUBLISH, 1, person(work), "test", 0)


def _version_zero(url: str) -> None:
    with closing(open_store(url)) as store, store.writing() as work:
        work.registry.add(work.registry.hold(DEVELOPER), 0, content(DEVELOPER), person(work), 1)


def _same_number_again(url: str) -> None:
    with closing(open_store(url)) as store, store.writing() as work:
        work.registry.add(work.registry.hold(DEVELOPER), 1, content(DEVELOPER, note="other"), person(work), 1)


def _statement(text: str) -> Callable[[str], None]:
    def act(url: str) -> None:
        engine = open_engine(url)
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql(text)
        finally:
            engine.dispose()

    return act


@pytest.mark.parametrize(
    "act",
    [
        _second_publication,
        _version_zero,
        _same_number_again,
        _statement("UPDATE published SET number = 7"),
        _statement("INSERT INTO published (agent_id, number) SELECT agent_id, number FROM published"),
        _statement("UPDATE reports SET state = 'verified'"),
        _statement("UPDATE reports SET state = 'guessed', body = '{}'"),
        _statement("UPDATE outbox SET state = 'set_aside', reason = NULL"),
        _statement("UPDATE outbox SET state = 'lost'"),
        _statement("UPDATE outbox SET position = 0"),
        _statement("INSERT INTO grants (person_id, role, scope) SELECT id, 'owner', '*' FROM people"),
        _statement("UPDATE agents SET name = ''"),
    ],
)
def test_what_must_never_be_false_is_refused_by_the_database(database_url: str, act: Callable[[str], None]) -> None:
    with closing(open_store(database_url)) as store:
        published(store, DEVELOPER, 1)
        with pytest.raises(sa.exc.IntegrityError):
            act(database_url)
        assert found(store, DEVELOPER).current == 1


def test_sqlite_gets_the_journal_that_its_version_keeps_whole(tmp_path: Path) -> None:
    assert [journal_mode(version) for version in ((3, 40, 1), (3, 51, 2), (3, 51, 3), (3, 53, 0))] == [
        "DELETE",
        "DELETE",
        "WAL",
        "WAL",
    ]
    url = f"sqlite:///{tmp_path / 'a.db'}"
    migrate(url)
    engine = open_engine(url)
    with engine.connect() as connection:
        journal, synchronous, foreign_keys = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("journal_mode", "synchronous", "foreign_keys")
        )
    engine.dispose()
    assert (journal.upper(), synchronous, foreign_keys) == (journal_mode(sqlite_driver().sqlite_version_info), 3, 1)


@pytest.mark.parametrize("url", ["mysql://ana:secret@host/name", "sqlite://", "nonsense", "postgresql:/ana:secret@half"])
def test_an_address_of_another_kind_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_store(url)
    [violation] = refusal.value.violations
    assert violation.field == "database_url"
    assert "secret" not in str(violation)


def test_a_database_that_does_not_answer_is_told_apart_from_a_fault(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path / 'no' / 'folder' / 'a.db'}")) as store:
        with pytest.raises(StoreUnavailable), store.reading() as work:
            work.registry.find(DEVELOPER)
        with pytest.raises(StoreUnavailable):
            store.check()
