"""A store from its URL, and its schema brought up to date."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError

from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.store.engines import PATIENCE_S, WRITING, postgres_engine, sqlite_engine
from graphsvc.store.failures import failures_told
from graphsvc.store.memory import MemoryStore
from graphsvc.store.port import Store
from graphsvc.store.schema import VERSION_TABLE
from graphsvc.store.sql import SqlStore

MEMORY = "memory:"

_MIGRATIONS = Path(__file__).parent / "migrations"

# Alembic hands its context to the migration scripts through module variables.
_one_migration_at_a_time = Lock()


def open_store(url: str, *, patience_s: float = PATIENCE_S) -> Store:
    """The store behind ``memory:``, ``sqlite:///path`` or ``postgresql://user@host/database``, its schema brought up to date.

    patience_s: how many seconds a writer waits for its turn, and for how many a PostgreSQL writer that has it may do nothing.
    Raises InvalidInput for any other URL, StoreUnavailable and LogDamaged. No message repeats the URL, which may hold a password.
    """
    if url == MEMORY:
        return MemoryStore(patience_s=patience_s)
    engine = _engine(url, patience_s)
    try:
        _bring_up_to_date(engine)
    except BaseException:
        engine.dispose()
        raise
    return SqlStore(engine)


def migrate(url: str) -> None:
    """Bring the schema behind a URL up to date. Raises like `open_store`."""
    open_store(url).close()


def _engine(text: str, patience_s: float) -> Engine:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Without the cause: it may repeat the URL.
        raise _refused("is not a URL of a store") from None
    if url.drivername == "sqlite":
        return sqlite_engine(_sqlite_url(url), patience_s)
    if url.drivername == "postgresql":
        return postgres_engine(_postgres_url(url), patience_s)
    raise _refused("names no kind of store that there is")


def _sqlite_url(url: URL) -> URL:
    if url.host or url.username or url.port or not url.database or url.database == ":memory:":
        raise _refused("names no file")
    if url.query:
        raise _refused("has options, which an SQLite file does not take")
    return url


def _postgres_url(url: URL) -> URL:
    try:
        make_conninfo("", **dict.fromkeys(url.query, ""))
    except psycopg.ProgrammingError:
        raise _refused("has an option that PostgreSQL does not know") from None
    return url.set(drivername="postgresql+psycopg")


def _refused(reason: str) -> InvalidInput:
    remedy = "use 'memory:', 'sqlite:///path/to/file' or 'postgresql://user:password@host:port/database'"
    return InvalidInput([Violation(field="store", reason=reason, remedy=remedy)])


def _bring_up_to_date(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with failures_told():
        with engine.connect() as connection:
            # Looked up first without the lock: a replica can start while another writes.
            if _is_up_to_date(connection, scripts):
                return
        with (
            _one_migration_at_a_time,
            engine.connect().execution_options(**{WRITING: True}) as connection,
            connection.begin(),
        ):
            if not _is_up_to_date(connection, scripts):
                config.attributes["connection"] = connection
                command.upgrade(config, "head")


def _is_up_to_date(connection: Connection, scripts: ScriptDirectory) -> bool:
    version = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    # A version that is not known here was made by a later program, whose schema this one may still read and write (O-8).
    return version is not None and (version == scripts.get_current_head() or version not in known)
