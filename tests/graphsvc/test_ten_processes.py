"""The same publication from ten real processes that differ in everything that must not matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from graphsvc.store.opening import MEMORY
from tests.postgres import Postgres, postgres_server, postgres_url  # noqa: F401 as fixtures

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300
HIDDEN_ORDERS = 3


class Run(NamedTuple):
    """How one process differs from the others."""

    url: str
    kernel: str
    order: int
    hidden_order: int
    hash_seed: int

    def answer(self) -> dict[str, Any]:
        """What the process prints."""
        arguments = (self.url, self.kernel, str(self.order), str(self.hidden_order))
        ended = subprocess.run(
            [sys.executable, "-m", "tests.graphsvc.one_of_ten", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(self.hash_seed)},
            capture_output=True,
            timeout=WAIT_S,
        )
        assert ended.returncode == 0, ended.stderr.decode()
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer


@pytest.fixture
def two_databases(postgres_url: str, postgres_server: Postgres) -> Iterator[list[str]]:  # noqa: F811 as fixtures
    """The URLs of two empty databases."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE second_of_ten")
        yield [postgres_url, postgres_server.url("second_of_ten")]
        connection.execute("DROP DATABASE second_of_ten WITH (FORCE)")


@pytest.mark.promise("G-11", "G-15", "G-25")
def test_ten_processes_give_one_digest_and_with_hidden_agents_one_for_each_order_of_those(
    two_databases: list[str], tmp_path: Path
) -> None:
    stores = [MEMORY] * 4 + [f"sqlite:///{tmp_path / f'{i}.db'}" for i in range(4)] + two_databases
    runs = [Run(url, ("reference", "jit")[i % 2], i, i % HIDDEN_ORDERS, 1_000 + i) for i, url in enumerate(stores)]
    # As many at a time as a small machine has room for.
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(Run.answer, runs))
    assert len({answer["words"] for answer in answers}) == len(runs), "the hash seeds took effect"
    assert {answer["loops"] for answer in answers} == {40}
    assert all(answer["hidden"] > 1 for answer in answers)
    assert len({answer["everything"] for answer in answers}) == 1
    by_order = defaultdict(set)
    for run, answer in zip(runs, answers, strict=True):
        by_order[run.hidden_order].add(answer["acme"])
    assert [len(by_order[order]) for order in range(HIDDEN_ORDERS)] == [1] * HIDDEN_ORDERS
    assert len(set.union(*by_order.values())) == HIDDEN_ORDERS
