"""A fresh store of each kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from graphsvc.store.opening import MEMORY, open_store
from graphsvc.store.port import Store
from tests.consistency.ways import PATIENCE_S
from tests.postgres import Postgres, postgres_server

__all__ = ["fresh_schema", "fresh_store", "postgres_server"]

_numbers = itertools.count(1)


@pytest.fixture
def fresh_schema(postgres_server: Postgres) -> Iterator[str]:
    """The URL of an empty schema of its own. Making a database for each of so many small worlds would take most of their time."""
    name = f"world_{next(_numbers)}"
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        yield f"{postgres_server.url()}&options=-csearch_path%3D{name}"
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def fresh_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    """Opens an empty store by its kind: memory, sqlite or postgres. A test opens each once, memory as often as it likes."""

    def url(kind: str) -> str:
        match kind:
            case "memory":
                return MEMORY
            case "sqlite":
                return f"sqlite:///{tmp_path / 'graph.db'}"
            case _:
                return str(request.getfixturevalue("fresh_schema"))

    with ExitStack() as stores:
        yield lambda kind: stores.enter_context(closing(open_store(url(kind), patience_s=PATIENCE_S)))
