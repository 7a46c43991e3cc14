"""Connections to SQLite and PostgreSQL: all that the two do differently is here.

A transaction begun under the execution option WRITING holds the log's single write lock, over all processes, until it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event

WRITING: Final = "graphsvc_writing"

PATIENCE_S: Final = 30.0
"""Seconds that a writer waits for its turn, and on PostgreSQL seconds for which one that has its turn may do nothing."""

# SQLite versions before this one may damage a database when its write-ahead log starts again while it is being copied back.
_SAFE_WRITE_AHEAD_LOG = (3, 51, 3)

_WRITE_LOCK = 0x6772_6170_6873_7663
"""The key of PostgreSQL's advisory lock: "graphsvc" in ASCII."""

# Without these, a database host that vanishes would keep its callers waiting for as long as the system's TCP does: hours.
_POSTGRES_LIVENESS: Mapping[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def sqlite_driver() -> ModuleType:
    """pysqlite3, whose SQLite is newer than the interpreter's, or the interpreter's where there is no wheel of it."""
    try:
        return import_module("pysqlite3")
    except ModuleNotFoundError:
        return import_module("sqlite3")


def sqlite_engine(url: URL, patience_s: float) -> Engine:
    """Durable connections to an SQLite file: each commit is on the disk before it returns."""
    driver = sqlite_driver()
    journal = "WAL" if driver.sqlite_version_info >= _SAFE_WRITE_AHEAD_LOG else "DELETE"
    engine = create_engine(url, module=driver, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # The driver's own idea of when a transaction begins is switched off; `begin` below decides.
        connection.isolation_level = None
        # EXTRA is FULL and, for a rollback journal, its folder: else a commit could be undone by a power cut just after it.
        for pragma in (f"busy_timeout = {int(patience_s * 1000)}", f"journal_mode = {journal}", "synchronous = EXTRA"):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get(WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def postgres_engine(url: URL, patience_s: float) -> Engine:
    """Connections to PostgreSQL that are tried before they are used, so that a server which was away is no trouble afterwards.

    Read committed: the newest revision must be looked up in a snapshot taken after the write lock was got.
    """
    liveness = {name: value for name, value in _POSTGRES_LIVENESS.items() if name not in url.query}
    engine = create_engine(url, connect_args=liveness, pool_pre_ping=True, isolation_level="READ COMMITTED", hide_parameters=True)
    patience_ms = int(patience_s * 1000)
    # A replica that was stopped or cut off while it held the lock must not keep all others from publishing.
    bounds = ", ".join(
        f"set_config('{name}', '{patience_ms}', true)" for name in ("lock_timeout", "idle_in_transaction_session_timeout")
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITING, False):
            connection.exec_driver_sql(f"SELECT {bounds}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})")

    return engine
