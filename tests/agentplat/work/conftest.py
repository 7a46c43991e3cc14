"""Offices on each kind of database, and on one where the kind does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from agentplat.store.sql import SqlStore, open_store

from tests.agentplat.work_records import Office


@pytest.fixture
def office(store: SqlStore, tmp_path: Path) -> Office:
    """An office on each kind of database."""
    return Office(store=store, folder=tmp_path)


@pytest.fixture
def desk(sqlite_url: str, tmp_path: Path) -> Iterator[Office]:
    """An office on SQLite."""
    with closing(open_store(sqlite_url)) as opened:
        yield Office(store=opened, folder=tmp_path)
