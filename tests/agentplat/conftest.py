"""The databases that the platform's tests run on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store

from tests.agentplat.world import World, world
from tests.postgres import postgres_server, postgres_url  # noqa: F401 as fixtures

DATABASES = ["sqlite", "sqlite-of-the-interpreter", "postgres"]


def empty_database(kind: str, request: pytest.FixtureRequest) -> str:
    """The URL of a database of this kind that has no tables."""
    if kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    if kind == "sqlite-of-the-interpreter":
        # What a machine without a wheel of pysqlite3 looks like to `import`.
        request.getfixturevalue("monkeypatch").setitem(sys.modules, "pysqlite3", None)
    folder: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{folder / 'agentplat.db'}"


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind without tables."""
    return empty_database(request.param, request)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of each kind."""
    url = empty_database(request.param, request)
    migrate(url)
    return url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A migrated SQLite database, for what does not depend on the kind."""
    url = f"sqlite:///{tmp_path / 'agentplat.db'}"
    migrate(url)
    return url


@pytest.fixture
def store(database_url: str) -> Iterator[SqlStore]:
    """A store on each kind of database."""
    with closing(open_store(database_url)) as opened:
        yield opened


@pytest.fixture
def acme(sqlite_url: str, tmp_path: Path) -> Iterator[World]:
    """A world whose graph service answers."""
    with world(sqlite_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def everywhere(database_url: str, tmp_path: Path) -> Iterator[World]:
    """A world on each kind of database, whose graph service does not answer yet."""
    with world(database_url, tmp_path, up=False) as opened:
        yield opened
