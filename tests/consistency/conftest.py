"""A fresh store of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from graphsvc.store.opening import MEMORY, open_store
from graphsvc.store.port import Store
from tests.consistency.ways import PATIENCE_S
from tests.postgres import postgres_server, postgres_url

__all__ = ["fresh_store", "postgres_server", "postgres_url"]


@pytest.fixture
def fresh_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    """Opens an empty store by its kind: memory, sqlite or postgres. Each kind may be opened once, memory as often as needed."""

    def url(kind: str) -> str:
        match kind:
            case "memory":
                return MEMORY
            case "sqlite":
                return f"sqlite:///{tmp_path / 'graph.db'}"
            case _:
                return str(request.getfixturevalue("postgres_url"))

    with ExitStack() as stores:
        yield lambda kind: stores.enter_context(closing(open_store(url(kind), patience_s=PATIENCE_S)))
