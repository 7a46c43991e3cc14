"""An upgrade while workers of the version before go on: the chains they carry are not counted, and end with them (R-9, O-8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from threading import Event

import pytest
from agentplat.domain.chains import OutcomeKind
from agentplat.domain.deliveries import Account
from agentplat.domain.runs import Run
from agentplat.domain.steps import WithheldWhy
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store

from tests.acceptance.lives import zygote
from tests.acceptance.older.worker import OlderWorker
from tests.agentplat.chains import Bench, two_agent_loop
from tests.agentplat.conftest import empty_database
from tests.agentplat.records import found
from tests.agentplat.run_records import DEVELOPER, REVIEWER, execute, fault_of, leased, opened, stored

PATIENCE_S = 120
OLD, OLD_UNDISPATCHED, NEW = "old closes and dispatches", "old closes and is gone", "new closes"
WAYS = list(product((OLD, OLD_UNDISPATCHED, NEW), repeat=3))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of the version before, with a loop of two agents."""
    found_url = empty_database(request.param, request)
    migrate(found_url, "0002")
    with closing(open_store(found_url)) as before:
        two_agent_loop(before, DEVELOPER, REVIEWER)
    return found_url


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with closing(open_store(url)) as opened_store:
        yield opened_store


def carry(bench: Bench, older: OlderWorker, run: Run, way: str) -> None:
    """One run to its end, and whatever leaves it."""
    if way == NEW:
        held = leased(bench.store)
        assert held.id == run.id
        bench.finish(held)
    else:
        assert older.lease() == run.id
        older.finish(run.id)
        if way == OLD:
            older.dispatch(run.id)
    bench.sweep()


def following(bench: Bench, run: Run) -> Run | None:
    """The run that this one's event opened."""
    after = [one for one in bench.all_runs() if one.source_run_id == run.id]
    assert len(after) <= 1
    return after[0] if after else None


@pytest.mark.promise("R-9", "O-8")
@pytest.mark.parametrize("opener", ["old", "new"])
def test_old_and_new_workers_carry_a_chain_together_in_every_order(opener: str, url: str, store: SqlStore, tmp_path: Path) -> None:
    migrate(url)
    bench = Bench(store=store, folder=tmp_path)
    with closing(OlderWorker(url)) as older:
        for ways in WAYS:
            developer = found(store, DEVELOPER).id
            run: Run | None = stored(store, older.open_for_a_person(developer)) if opener == "old" else opened(store)
            known = True
            for hop, way in enumerate(ways):
                assert run is not None
                assert run.hop == (hop if known and (hop or opener == "new") else None)
                carry(bench, older, run, way)
                closing_step = bench.closing(run)
                # The line that the chain is unknown is there only if a new worker closed the run.
                told = closing_step.withheld.why if closing_step.withheld is not None else None
                assert told == (WithheldWhy.CHAIN_UNKNOWN if way == NEW and not known else None), ways
                assert fault_of(store, run.id) is None
                kinds, next_run = [one.kind for one in bench.outcomes(run)], following(bench, run)
                if way != OLD and not known:
                    # Withheld all the same, with or without the line.
                    assert (kinds, next_run) == ([OutcomeKind.CHAIN_UNKNOWN], None), ways
                    break
                assert next_run is not None
                assert kinds == [OutcomeKind.OPENED if known else OutcomeKind.CHAIN_UNKNOWN], ways
                known, run = known and way != OLD, next_run
            execute(url, "UPDATE runs SET state = 'cancelled' WHERE state = 'queued'")


@pytest.mark.promise("R-9", "O-8")
def test_a_loop_that_runs_under_an_old_worker_goes_on_uncounted_and_ends_soon_after_the_worker(
    url: str, store: SqlStore, tmp_path: Path
) -> None:
    quick = ("--database-url", url, "--poll-interval-s", "0.02", "--log-level", "error")
    with closing(OlderWorker(url)) as person:
        person.open_for_a_person(found(store, DEVELOPER).id)
    bench = Bench(store=store, folder=tmp_path)
    with zygote(tmp_path) as mother:
        older = mother.start("tests.acceptance.older", url)
        _until(lambda: _finished(store) >= 4)
        # The schema comes while the old worker writes; it goes on as before.
        migrate(url)
        before = _finished(store)
        _until(lambda: _finished(store) >= before + 12)
        dispatcher = mother.start("agentplat", "dispatch", "run", *quick)
        _until(lambda: _finished(store) >= before + 24)
        older.kill()
        execute(url, "UPDATE runs SET lease_until = 0 WHERE state = 'running'")
        worker = mother.start("agentplat", "worker", *quick, "--content", tmp_path / "content")
        _until(lambda: _settled(store))
        worker.stop()
        dispatcher.stop()
    runs = bench.all_runs()
    assert len(runs) > 9
    # The first run that the new version met alone was the last.
    assert [run.hop for run in runs] == [None] * len(runs)
    assert [one.kind for one in bench.outcomes(runs[-1])] == [OutcomeKind.CHAIN_UNKNOWN]
    with store.reading() as work:
        account = work.deliveries.reconcile(["*"], 0, 2**62)
    assert account.counts.keys() <= {Account.BEFORE, Account.DISPATCHED}
    assert account.counts[Account.BEFORE] >= 3
    assert [fault_of(store, run.id) for run in runs] == [None] * len(runs)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        Event().wait(0.02)


def _finished(store: SqlStore) -> int:
    """How many runs finished; it reads both schemas."""
    with store._engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM runs WHERE state = 'finished'").scalar_one())


def _settled(store: SqlStore) -> bool:
    with store.reading() as work:
        return all(run.ended for run in work.runs.page(["*"], None, 10_000)) and work.deliveries.backlog(["*"]).waiting == 0
