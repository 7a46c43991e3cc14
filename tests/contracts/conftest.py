"""The stores that the contract is held against."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graphsvc.store.opening import MEMORY, open_store
from graphsvc.store.port import Store
from tests.postgres import postgres_server, postgres_url  # noqa: F401 as fixtures

DATABASES = ["sqlite", "sqlite-of-the-interpreter", "postgres"]


def _url(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "memory":
        return MEMORY
    if kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    if kind == "sqlite-of-the-interpreter":
        # What a machine without a wheel of pysqlite3 looks like to `import`.
        request.getfixturevalue("monkeypatch").setitem(sys.modules, "pysqlite3", None)
    folder: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{folder / 'log.db'}"


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    return _url(request.param, request)


@pytest.fixture(params=["memory", *DATABASES])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty store of each kind."""
    with closing(open_store(_url(request.param, request))) as opened:
        yield opened
