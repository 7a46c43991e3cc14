"""How long the pages of Studio take over HTTP, in a workspace with many runs, tickets and agents, on SQLite.

`agentplat up` serves as it would anywhere. The agents are published by the command line; runs with their steps and costs, tickets
and messages are stored through the store and the use cases, which takes less long than living them. Then each page is fetched
one time after the other by somebody who is signed in, as a browser does, with everything that follows a redirect.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import sqlalchemy as sa
from agentplat.content.folder import FolderContent
from agentplat.domain.access import Access, Grant, Person, Role
from agentplat.domain.budgets import Unit
from agentplat.domain.chains import OpenedBy
from agentplat.domain.labels import label_of
from agentplat.domain.runs import DriverKind, NewRun, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Body, BudgetReserved, BudgetSettled, Closing, GateRuling, Ruling, Waiting
from agentplat.store import runtime_schema
from agentplat.store.port import Work
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.together import build_together
from measuring import cpu_s, machine, tell

ROOT = Path(__file__).resolve().parent.parent
SCOPE = "acme/platform"
TARGET_MS = 200.0
_AT_ONCE, _IN_A_FILE = 500, 100
_STEP_MS = 800


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of everything there is."""

    runs: int
    tickets: int
    agents: int
    messages: int


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, int]]:
    """`agentplat up` on this folder; its address, and the number of its process."""
    command = [sys.executable, "-m", "agentplat", "up", "--data-dir", folder, "--format", "json", "--log-level", "error"]
    path = f"{ROOT}{os.pathsep}{ROOT / 'platform'}"
    process = subprocess.Popen(
        [*map(str, command), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    try:
        assert process.stdout
        yield f"http://{json.loads(process.stdout.readline())['address']}", process.pid
    finally:
        process.terminate()
        process.wait()


def publish(url: str, folder: Path, agents: int) -> None:
    """Publish the agents by the command line: most start the next one, every tenth leads back to the one nine before it."""
    documents = []
    for i in range(agents):
        heard = [f"done.{i - 1}"] + ([f"done.{i + 9}"] if i % 10 == 0 and i + 9 < agents else [])
        metadata = {"name": f"agent-{i:03}", "company": "acme", "area": "platform"}
        spec = {"driver": {"kind": "external"}, "emits": [f"done.{i}"], "listens": heard}
        documents.append(json.dumps({"apiVersion": "agentplat/v1", "kind": "Agent", "metadata": metadata, "spec": spec}))
    path = f"{ROOT}{os.pathsep}{ROOT / 'platform'}"
    for first in range(0, agents, _IN_A_FILE):
        (folder / "agents.yaml").write_text("\n---\n".join(documents[first : first + _IN_A_FILE]), encoding="utf-8")
        command = ["publish", folder / "agents.yaml", "--server", url, "--token-file", folder / "admin.token"]
        subprocess.run(
            [sys.executable, "-m", "agentplat", *map(str, command)],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )


def somebody(store: SqlStore) -> Access:
    """The first admin."""
    with store.reading() as work:
        [person] = [found for found in work.people.page(["*"], None, 10) if work.people.grants(found)]
    return Access(person, frozenset({Grant(Role.ADMIN, "*")}))


def _run(work: Work, number: int, sizes: Sizes, who: Person, at: int) -> None:
    """Store one run with its steps: one in fifty waits for a budget, one in thirty failed, all others finished."""
    agent = work.registry.find(Ref(SCOPE, f"agent-{number % sizes.agents:03}"))
    assert agent is not None
    assert agent.current is not None
    new = NewRun(
        agent=agent,
        number=agent.current,
        driver=DriverKind.EXTERNAL,
        opened_by=OpenedBy.PERSON,
        opener=who,
        on_behalf_of=who,
        labels=label_of(SCOPE),
    )
    run = work.runs.open(new, at)
    assert run is not None
    bodies: list[Body] = []
    for call in range(1, 6):
        amounts = {Unit.TOOL_CALLS.value: 1}
        bodies += [
            GateRuling(call=call, ruling=Ruling.ALLOW, rule="free"),
            BudgetReserved(call=call, amounts=amounts),
            BudgetSettled(call=call, amounts=amounts),
        ]
    run = work.runs.append(run, bodies, at + _STEP_MS)
    if number % 50 == 0:
        work.runs.wait(run, Waiting(waiting_for=WaitingFor.BUDGET, ceiling=f"tool calls of {SCOPE}"), at + 2 * _STEP_MS)
        return
    state = RunState.FAILED if number % 30 == 0 else RunState.FINISHED
    work.runs.close(run, Closing(state=state, reason=None), at + number % 60_000 + 2 * _STEP_MS)


def fill(store: SqlStore, folder: Path, sizes: Sizes) -> tuple[int, int]:
    """Store runs, tickets and messages; the workspace and the space."""
    access, together = somebody(store), build_together(store, FolderContent(folder / "content"), None)
    assert access.person is not None
    now, engine = time.time_ns() // 1_000_000, store._engine
    for first in range(0, sizes.runs, _AT_ONCE):
        with store.writing() as work:
            for number in range(first, min(first + _AT_ONCE, sizes.runs)):
                _run(work, number, sizes, access.person, now - (sizes.runs - number) * 120_000)
            # Nothing of it is to be dispatched: that would open thousands of runs more.
            marked = sa.text("UPDATE runs SET dispatched_at = finished_at WHERE state = 'finished' AND dispatched_at IS NULL")
            work._connection.execute(marked)
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM budgets WHERE holder = 'run'"))
        spent = "SELECT 'run', CAST(id AS TEXT), '{}', 0, {} FROM runs"
        for unit, amount in ((Unit.TOOL_CALLS, "5"), (Unit.MONEY, "id * 37"), (Unit.TOKENS, "id * 11")):
            connection.execute(
                sa.text(f"INSERT INTO budgets (holder, key, unit, reserved, spent) {spent.format(unit.value, amount)}")
            )
        table = runtime_schema.budgets
        connection.execute(
            table.insert().values(holder="scope", key=SCOPE, unit=Unit.TOOL_CALLS.value, ceiling=sizes.runs, spent=sizes.runs)
        )
    workspace = together.workspaces.create(access, SCOPE, "bench")
    space = together.spaces.create(access, workspace.id, "hall")
    for number in range(sizes.tickets):
        together.tickets.create(access, workspace.id, f"Ticket {number}", "What is to be done.\n" * 5)
    for number in range(sizes.messages):
        together.converse.post(access, workspace.id, space.id, f"Message {number} about #{number % sizes.tickets + 1}")
    return workspace.id, space.id


def sign_in(client: httpx.Client, token: str) -> None:
    """Sign in as a browser does."""
    found = re.search(r'name="seal" value="([^"]+)"', client.get("/sign-in").text)
    assert found
    answer = client.post("/sign-in", data={"seal": found.group(1), "token": token, "next": "/"})
    assert answer.status_code == httpx.codes.SEE_OTHER, answer.text


def measure(client: httpx.Client, pid: int, pages: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of each page: the median, the longest, and the processor time of the server, after one that is not counted.

    The processor time is what others on the machine change least; what the server does beside the pages is in it.
    """
    figures = {}
    for page in pages:
        answer, took = client.get(page, follow_redirects=True).raise_for_status(), []
        worked = cpu_s(pid)
        for _ in range(rounds):
            began = time.perf_counter()
            answer = client.get(page, follow_redirects=True)
            took.append((time.perf_counter() - began) * 1_000)
            answer.raise_for_status()
        figures[page] = {
            "median_ms": round(statistics.median(took), 1),
            "longest_ms": round(max(took), 1),
            "cpu_ms": round((cpu_s(pid) - worked) * 1_000 / rounds, 1),
            "bytes": len(answer.content),
        }
    return figures


def main() -> None:
    """Measure and print one JSON object. Exit status 1: a page takes longer than it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("runs", 10_000), ("tickets", 1_000), ("agents", 300), ("messages", 500), ("rounds", 15)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    sizes = Sizes(runs=asked.runs, tickets=asked.tickets, agents=asked.agents, messages=asked.messages)
    ran = machine()
    with TemporaryDirectory() as name, server(Path(name)) as (url, pid):
        folder = Path(name)
        publish(url, folder, sizes.agents)
        store = open_store(f"sqlite:///{folder / 'agentplat.db'}")
        workspace, space = fill(store, folder, sizes)
        store.close()
        place = f"/workspaces/{workspace}"
        agent = f"/agents/acme%2Fplatform%3Aagent-{sizes.agents // 2:03}"
        pages = [
            *("/inbox", "/workspaces", "/agents", agent, f"{agent}/versions/1", f"/graph?scope={SCOPE}", "/runs"),
            *(f"/runs/{sizes.runs // 2}", "/monitoring/live", "/monitoring/insights", "/monitoring/insights?period=30d"),
            *(f"{place}/{part}" for part in ("inbox", "spaces", f"spaces/{space}", "tickets", "tickets/500")),
            *(f"{place}/observability", f"{place}/observability/insights"),
        ]
        with httpx.Client(base_url=url, timeout=60) as client:
            sign_in(client, (folder / "admin.token").read_text(encoding="utf-8").strip())
            figures = measure(client, pid, pages, asked.rounds)
    tell({"machine": ran, "sizes": vars(sizes), "target_ms": TARGET_MS, "pages": figures})
    if any(page["median_ms"] > TARGET_MS for page in figures.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
