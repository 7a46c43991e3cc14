"""The same publication gives the same bytes in every process (G-11)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.graphsvc.folding import EVERYBODY
from tests.oracle import Agent, agent, may_read, report
from tests.postgres import postgres_server, postgres_url  # noqa: F401 as fixtures
from tests.properties import judging

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300
PROCESSES = 10
PLATFORM, TOOLS = "acme/platform", "globex/tools"
READERS = (EVERYBODY, ("acme", TOOLS), (PLATFORM, TOOLS))


def catalogue() -> list[Agent]:
    rng = random.Random(7)
    scopes = ("acme", PLATFORM, "acme/finance", "globex", TOOLS, "*")
    names = ("developer", "reviewer", "tester", "מפתח", "revisão", "Zed", "10", "9")
    events = [f"event {i}" for i in range(14)]
    refs = rng.sample([(name, scope) for name in names for scope in scopes], 18)
    return [agent(name, rng.sample(events, 2), rng.sample(events, 2), scope) for name, scope in refs]


def record(one: Agent) -> dict[str, Any]:
    return {"scope": one.scope, "name": one.name, "hears": sorted(one.hears), "emits": sorted(one.emits)}


def arrival(agents: list[Agent], number: int) -> list[Agent]:
    """An order of the agents: those that some reader may not read come in one of two orders, whatever stands in between."""
    always_readable = [one for one in agents if one.scope in (PLATFORM, TOOLS)]
    others = [one for one in agents if one not in always_readable][:: 1 if number % 2 else -1]
    for one in always_readable:
        others.insert(random.Random(f"{number} {one.ref}").randrange(len(others) + 1), one)
    return others


def ask(url: str, number: int, agents: list[Agent]) -> list[dict[str, Any]]:
    asked = {
        "store": url,
        "kernel": ("jit", "reference")[number // 2 % 2],
        "publish": [record(one) for one in arrival(agents, number)],
        "check": [record(one) for one in agents],
        "readers": READERS,
    }
    done = subprocess.run(
        [sys.executable, "-m", judging.__name__],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]), "PYTHONHASHSEED": str(number)},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.promise("G-11", "G-15")
def test_ten_processes_with_their_own_hash_seed_arrival_order_kernel_and_store_say_the_same(
    tmp_path: Path,
    postgres_url: str,  # noqa: F811 the fixture
) -> None:
    agents = catalogue()
    stores = [postgres_url, *(f"sqlite:///{tmp_path / f'{number}.db'}" for number in range(1, 4))]
    urls = stores + ["memory:"] * (PROCESSES - len(stores))
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(ask, urls, range(PROCESSES), [agents] * PROCESSES))

    loops = 0
    for at, (one, scopes) in enumerate((one, scopes) for one in agents for scopes in READERS):
        said = defaultdict(set)
        for number in range(PROCESSES):
            hidden = tuple(other.ref for other in arrival(agents, number) if other != one and not may_read(scopes, other.scope))
            said[hidden].add(json.dumps(answers[number][at], ensure_ascii=False))
        assert all(len(texts) == 1 for texts in said.values()), (one.ref, scopes)
        assert len(said) == (1 if scopes == EVERYBODY else 2)
        if scopes == EVERYBODY:
            expected = report(agents, one)
            assert answers[0][at]["loops"] == expected["loops"]
            loops += len(expected["loops"])
    assert loops > 30


def test_the_arrival_orders_differ() -> None:
    assert len({tuple(arrival(catalogue(), number)) for number in range(PROCESSES)}) == PROCESSES
