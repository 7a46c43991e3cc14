"""The schema of the log: where migrations lead, what it refuses, and damage that is noticed."""

from __future__ import annotations

import sqlite3
import string
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import given, reject
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, create_engine, insert, inspect, make_url, text
from sqlalchemy.exc import IntegrityError

from graphsvc.domain.errors import InvalidInput, LogDamaged
from graphsvc.domain.model import EntryKind, LogEntry, declare
from graphsvc.domain.names import AgentRef, Scope, name_fault
from graphsvc.store.engines import sqlite_engine
from graphsvc.store.opening import migrate, open_store
from graphsvc.store.rows import entry_of, row_of
from graphsvc.store.schema import VERSION_TABLE, log, metadata
from tests.contracts.entries import agent, append, published, retired

ROW = {"revision": 1, "kind": "publish", "scope": "acme", "agent": "x", "number": 1, "declaration": "{}", "digest": "0" * 64}


@contextmanager
def engine_at(url: str) -> Iterator[Engine]:
    """The database as anybody may open it, past the store."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        yield engine
    finally:
        engine.dispose()


def run(url: str, statement: str, **values: object) -> None:
    with engine_at(url) as engine, engine.begin() as connection:
        assert connection.execute(text(statement), values).rowcount == 1


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_server_default": True})
    return list(compare_metadata(context, metadata))


@pytest.mark.promise("G-25")
def test_migrations_lead_from_an_empty_database_to_the_schema(url: str) -> None:
    with engine_at(url) as engine, engine.connect() as connection:
        assert differences(connection)
    migrate(url)
    with engine_at(url) as engine, engine.connect() as connection:
        assert differences(connection) == []
        found, wanted = inspect(engine), {str(check.name) for check in log.constraints if str(check.name) != "graphsvc_log_key"}
        assert {str(check["name"]) for check in found.get_check_constraints(log.name)} == wanted


def test_migrating_again_and_from_several_threads_changes_nothing(url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(migrate, url) for _ in range(4)]:
            done.result(120)
    with closing(open_store(url)) as store:
        append(store, published(1))
    migrate(url)
    with closing(open_store(url)) as store:
        assert store.head() == 1


def test_a_schema_made_by_a_later_version_is_used_as_it_is(url: str) -> None:
    migrate(url)
    run(url, f"UPDATE {VERSION_TABLE} SET version_num = 'later'")
    with closing(open_store(url)) as store:
        assert append(store, published(1))[0].revision == 1


@pytest.mark.promise("G-25")
@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},
        {"revision": 2},
        {"revision": 0, "number": 2},
        {"revision": 2, "number": 0},
        {"revision": 2, "kind": "rename"},
        {"revision": 2, "scope": ""},
        {"revision": 2, "agent": ""},
        {"revision": 2, "number": 2, "digest": ""},
        {"revision": 2, "number": 2, "scope": None},
        {"revision": 2, "number": 2, "declaration": None},
    ],
    ids=str,
)
def test_the_database_itself_refuses_what_no_log_may_hold(url: str, change: dict[str, object]) -> None:
    migrate(url)
    with engine_at(url) as engine:
        with engine.begin() as connection:
            connection.execute(insert(log), ROW)
        with pytest.raises(IntegrityError), engine.begin() as connection:
            connection.execute(insert(log), {**ROW, **change})


DAMAGE = {
    "kind": "retire",
    "scope": "acme",
    "agent": "reviewer",
    "number": 7,
    "declaration": '{"emits":[],"listens":[]}',
    "digest": "0" * 64,
}


@pytest.mark.promise("G-25")
@pytest.mark.parametrize("column", DAMAGE)
def test_a_changed_column_is_noticed(url: str, column: str) -> None:
    with closing(open_store(url)) as store:
        append(store, *(published(number, emits=["a"], listens=["b"]) for number in (1, 2, 3)))
        run(url, f"UPDATE {log.name} SET {column} = :value WHERE revision = 2", value=DAMAGE[column])
        reading = store.read(0)
        assert next(store.read(2)).number == 3
        with pytest.raises(LogDamaged, match="entry 2 of the log is not what was written"):
            list(reading)


@pytest.mark.promise("G-25")
def test_a_changed_version_is_noticed_when_it_is_looked_up(url: str) -> None:
    with closing(open_store(url)) as store:
        append(store, published(1))
        run(url, f"UPDATE {log.name} SET declaration = '{{}}'")
        with pytest.raises(LogDamaged, match="entry 1"):
            store.find(agent(), 1)


@pytest.mark.promise("G-25")
@pytest.mark.parametrize("lost", [1, 2, 1_000, 1_001])
def test_a_lost_entry_is_noticed(url: str, lost: int) -> None:
    with closing(open_store(url)) as store:
        append(store, *(published(number) for number in range(1, 1_003)))
        run(url, f"DELETE FROM {log.name} WHERE revision = :lost", lost=lost)
        with pytest.raises(LogDamaged, match=f"entry {lost} of the log is missing"):
            list(store.read(0))
        assert [entry.revision for entry in store.read(lost)] == list(range(lost + 1, 1_003))


@pytest.mark.promise("G-25")
def test_entries_that_changed_places_are_noticed(url: str) -> None:
    with closing(open_store(url)) as store:
        append(store, published(1, agent("a")), published(1, agent("b")))
        for there, here in ((1, 3), (2, 1), (3, 2)):
            run(url, f"UPDATE {log.name} SET revision = :here WHERE revision = :there", here=here, there=there)
        with pytest.raises(LogDamaged, match="entry 1"):
            list(store.read(0))


@pytest.mark.promise("G-25")
def test_a_text_that_is_none_is_noticed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    with closing(open_store(url)) as store:
        append(store, published(1))
        run(url, f"UPDATE {log.name} SET agent = CAST(x'64ff65' AS TEXT)")
        with pytest.raises(LogDamaged, match="damaged"):
            list(store.read(0))


@pytest.mark.promise("G-25")
def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    with closing(open_store(f"sqlite:///{file}")) as store:
        append(store, *(published(number) for number in range(1, 1_001)))
    content = bytearray(file.read_bytes())
    content[4096 * 3 : 4096 * 8] = bytes(4096 * 5)
    file.write_bytes(content)
    with closing(open_store(f"sqlite:///{file}")) as store, pytest.raises(LogDamaged):
        list(store.read(0))


def test_a_file_that_is_no_database_is_told_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_text("not a database\n" * 1_000, encoding="utf-8")
    with pytest.raises(LogDamaged) as refusal:
        open_store(f"sqlite:///{tmp_path / 'log.db'}")
    assert str(refusal.value) == "the database of the log is damaged, or is not one"


alphabet = st.characters(exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"])
names = st.text(alphabet, min_size=1, max_size=40).filter(lambda name: name_fault(name) is None)
parts = names.filter(lambda name: not set(name) & set("/:") and name != "*")
agents = st.builds(AgentRef, st.one_of(st.just(Scope()), st.builds(Scope, parts), st.builds(Scope, parts, parts)), names)
contracts = st.fixed_dictionaries({"event": names, "context": st.none() | names, "artifacts": st.lists(names, max_size=5)})
emits = st.lists(names | contracts, max_size=8)


@pytest.mark.promise("G-25")
@given(st.sampled_from(EntryKind), agents, st.integers(1, 2**31 - 1), emits, st.lists(names, max_size=8))
def test_any_entry_comes_back_from_its_row(
    kind: EntryKind, who: AgentRef, number: int, out: list[object], heard: list[str]
) -> None:
    try:
        declaration = declare(out, heard)
    except InvalidInput:  # A name twice.
        reject()
    entry = LogEntry(number, kind, who, number, declaration)
    assert entry_of(row_of(entry)) == entry


def test_a_retirement_takes_the_least_room(url: str) -> None:
    with closing(open_store(url)) as store:
        append(store, retired(1))
    with engine_at(url) as engine, engine.connect() as connection:
        row = connection.execute(log.select()).one()
    assert row.declaration == '{"emits":[],"listens":[]}'
    assert set(row.digest) <= set(string.hexdigits)


@pytest.mark.promise("G-26")
@pytest.mark.parametrize("of_the_interpreter", [False, True])
def test_commits_to_a_file_are_synced_and_only_a_sound_sqlite_keeps_a_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_the_interpreter: bool
) -> None:
    if of_the_interpreter:
        monkeypatch.setitem(sys.modules, "pysqlite3", None)
    engine = sqlite_engine(make_url(f"sqlite:///{tmp_path / 'log.db'}"), patience_s=1.5)
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        version, synchronous, journal, busy_ms = (
            cursor.execute(query).fetchone()[0]
            for query in ("SELECT sqlite_version()", "PRAGMA synchronous", "PRAGMA journal_mode", "PRAGMA busy_timeout")
        )
    engine.dispose()
    if of_the_interpreter:
        assert version == sqlite3.sqlite_version
    sound = tuple(map(int, version.split("."))) >= (3, 51, 3)
    assert (synchronous, journal, busy_ms) == (3, "wal" if sound else "delete", 1_500)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "is not a URL"),
        ("log.db", "is not a URL"),
        ("memory", "is not a URL"),
        ("postgresql://graph:sesame@host:port/graph", "is not a URL"),
        ("mysql://graph:sesame@host/graph", "names no kind of store"),
        ("postgres://graph:sesame@host/graph", "names no kind of store"),
        ("postgresql+psycopg2://graph:sesame@host/graph", "names no kind of store"),
        ("sqlite+aiosqlite:///log.db", "names no kind of store"),
        ("sqlite:", "is not a URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite://host/log.db", "names no file"),
        ("sqlite:///log.db?mode=ro", "has options"),
        ("postgresql://graph:sesame@host/graph?colour=red", "has an option that PostgreSQL does not know"),
    ],
)
def test_a_url_that_names_no_store_is_refused_without_being_repeated(
    url: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=reason) as refusal:
        open_store(url)
    [violation] = refusal.value.violations
    assert violation.field == "store"
    assert "sqlite:///path/to/file" in violation.remedy
    assert "sesame" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []
