"""Connections to SQLite and PostgreSQL that keep the store's promises."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from agentplat.domain.errors import InvalidInput, Violation

WRITES: Final = "agentplat_writes"
"""Execution option of a connection whose transaction is going to write."""

PATIENCE_S: Final = 10
"""Longest wait for another writer, or for a connection, before the store counts as not answering; on PostgreSQL also how long a
transaction may do nothing, so that a stopped process keeps nobody from writing."""

_SOUND_WAL = (3, 51, 3)
"""The first SQLite whose write-ahead log is free of a corruption bug; older ones get the rollback journal."""

# Without these, a database host that vanishes would keep its callers waiting for as long as the system's TCP does: hours.
_LIVENESS: Mapping[str, Any] = {
    "connect_timeout": PATIENCE_S,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


_JOURNAL_WAIT_S = 0.01
"""Seconds between two tries to set up a connection to a file whose journal somebody else is changing."""


def sqlite_driver() -> ModuleType:
    """pysqlite3, whose SQLite is newer than the interpreter's, or the interpreter's own where there is no wheel of it."""
    try:
        return import_module("pysqlite3")
    except ModuleNotFoundError:
        return import_module("sqlite3")


def journal_mode(version: tuple[int, ...]) -> str:
    """The journal that is safe with this version of SQLite."""
    return "WAL" if version >= _SOUND_WAL else "DELETE"


def _set(connection: Any, pragma: str, busy: type[Exception]) -> None:
    """Set a pragma. Several that open a new file at once change its journal at once, and SQLite then does not wait by itself."""
    patience_ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}").close()
            return
        except busy:
            if time.monotonic() > patience_ends:
                raise
            threading.Event().wait(_JOURNAL_WAIT_S)


def _open_sqlite(url: sa.URL) -> Engine:
    driver = sqlite_driver()
    engine = sa.create_engine(
        url,
        module=driver,
        hide_parameters=True,
        pool_size=10,
        max_overflow=40,
        pool_timeout=PATIENCE_S,
        connect_args={"timeout": PATIENCE_S, "check_same_thread": False},
    )
    # EXTRA is FULL and, for a rollback journal, its folder: else a commit could be undone by a power cut just after it.
    pragmas = (f"journal_mode = {journal_mode(driver.sqlite_version_info)}", "synchronous = EXTRA", "foreign_keys = ON")

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # The driver would begin transactions by itself, and too late: only at the first write.
        connection.isolation_level = None
        for pragma in pragmas:
            _set(connection, pragma, driver.OperationalError)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer that began by reading could not become one after another writer's commit, so it asks for the lock at once.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _open_postgresql(url: sa.URL) -> Engine:
    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=40,
        pool_timeout=PATIENCE_S,
        connect_args={name: value for name, value in _LIVENESS.items() if name not in url.query},
    )
    names = ("lock_timeout", "idle_in_transaction_session_timeout")
    bounds = ", ".join(f"set_config('{name}', '{PATIENCE_S * 1000}', true)" for name in names)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES, False):
            connection.exec_driver_sql(f"SELECT {bounds}")

    return engine


def _refuse(reason: str) -> InvalidInput:
    remedy = "use sqlite:///FILE or postgresql://USER@HOST/NAME"
    return InvalidInput([Violation(field="database_url", reason=reason, remedy=remedy)])


def open_engine(url: str) -> Engine:
    """Connections to ``sqlite:///FILE`` or ``postgresql://…``. Raises InvalidInput for any other address."""
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except sa.exc.ArgumentError as error:
        # The address itself may hold a password, so it is not repeated.
        raise _refuse("is no address of a database") from error
    if backend == "sqlite" and parsed.database:
        return _open_sqlite(parsed)
    if backend in ("postgresql", "postgres"):
        return _open_postgresql(parsed)
    raise _refuse(f"begins with {parsed.drivername!r}, or names no file")
