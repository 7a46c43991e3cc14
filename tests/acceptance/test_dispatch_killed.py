"""Eight writers finish runs at once and commit them late while two dispatchers are killed: none is lost, none doubled.

DISPATCH_RUNS=20000 in the environment gives the number of finished runs; by default there are fewer, for CI's time.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event

import pytest
import sqlalchemy as sa
from agentplat.domain.chains import OutcomeKind
from agentplat.domain.deliveries import Account, Reconciliation
from agentplat.domain.scopes import Ref
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store

from tests.acceptance.finishing.designs import WRONG
from tests.acceptance.finishing.writers import EVENT, create_finishes, finish, own_runs
from tests.acceptance.lives import Life, Zygote, zygote
from tests.agentplat.conftest import empty_database
from tests.agentplat.run_records import DEVELOPER, agent_of
from tests.agentplat.world import wait_until

WRITERS, DISPATCHERS = 8, 2
RUNS = int(os.environ.get("DISPATCH_RUNS", "400"))
RUNS_OF_WRONG_DESIGNS = 640
LISTENERS = [Ref("acme/platform", name) for name in ("first", "second")]
FOREVER_S, MOST_LIFE_S = (7_200, 4.0) if RUNS > 5_000 else (300, 0.3)
DELAY_S = {"sqlite": 0.001, "postgres": 0.02}


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest) -> str:
    return _migrated(empty_database(kind, request))


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with closing(_stocked(url)) as opened:
        yield opened


@pytest.fixture(scope="module")
def mother(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """What all processes of these tests are forked from."""
    with zygote(tmp_path_factory.mktemp("zygote")) as found:
        yield found


def _migrated(url: str) -> str:
    migrate(url)
    return url


def _stocked(url: str) -> SqlStore:
    """A store with an agent that emits and two that hear it."""
    store = open_store(url)
    create_finishes(store)
    agent_of(store, DEVELOPER, (EVENT,))
    for listener in LISTENERS:
        agent_of(store, listener, (), (EVENT,))
    return store


def _writers(mother: Zygote, url: str, runs: int, delay_s: float) -> list[Life]:
    """Writers that share the runs among them."""
    share = ("--count", runs // WRITERS, "--most-delay-s", delay_s)
    return [mother.start("tests.acceptance.finishing", "write", url, "--seed", seed, *share) for seed in range(WRITERS)]


def _wait_long(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + FOREVER_S
    while not holds():
        assert time.monotonic() < end, f"in {FOREVER_S} s it did not end"


def _count(store: SqlStore, what: str) -> int:
    with store._engine.connect() as connection:
        return int(connection.execute(sa.text(f"SELECT count(*) FROM {what}")).scalar_one())


def _account(store: SqlStore) -> Reconciliation:
    with store.reading() as work:
        return work.deliveries.reconcile(["*"], 0, 2**62)


@pytest.mark.promise("R-13", "R-14", "R-15", "R-16")
def test_every_finished_run_is_dispatched_and_every_delivery_opens_one_run(
    kind: str, url: str, store: SqlStore, mother: Zygote
) -> None:
    chance, pause = random.Random(7), Event()
    command = ("agentplat", "dispatch", "run", "--database-url", url, "--poll-interval-s", "0.01", "--log-level", "error")
    finished, kills = RUNS // WRITERS * WRITERS, [0] * DISPATCHERS
    writers = _writers(mother, url, finished, DELAY_S[kind])
    lives = [mother.start(*command) for _ in range(DISPATCHERS)]

    def handled_and_killed_meanwhile() -> bool:
        # At least a few times each, though the work may be done before.
        if min(kills) >= 3 and _account(store).counts == {Account.DISPATCHED: finished}:
            return True
        pause.wait(chance.random() * MOST_LIFE_S)
        one = chance.randrange(DISPATCHERS)
        lives[one].kill()
        kills[one] += 1
        lives[one] = mother.start(*command)
        return False

    _wait_long(handled_and_killed_meanwhile)
    assert [mother.wait(writer.pid) for writer in writers] == [0] * WRITERS
    for life in lives:
        life.stop()
    account = _account(store)
    assert account.proved
    assert (account.finished, account.counts) == (finished, {Account.DISPATCHED: finished})
    assert account.outcomes == {OutcomeKind.OPENED: finished * len(LISTENERS)}
    assert _count(store, "runs WHERE opened_by = 'event'") == finished * len(LISTENERS)
    deliveries = "SELECT DISTINCT source_run_id, event, agent_id FROM runs WHERE opened_by = 'event'"
    assert _count(store, f"({deliveries}) AS deliveries") == finished * len(LISTENERS)
    assert _count(store, "runs WHERE dispatch_attempts > 0") == 0


@pytest.mark.promise("R-13", "R-14")
@pytest.mark.parametrize("design", WRONG)
def test_the_same_writers_make_wrong_designs_lose_runs(design: str, postgres_url: str, mother: Zygote) -> None:
    url = _migrated(postgres_url)
    with closing(_stocked(url)) as store:
        dispatcher = mother.start("tests.acceptance.finishing", "dispatch", url, "--design", design)
        for writer in _writers(mother, url, RUNS_OF_WRONG_DESIGNS, DELAY_S["postgres"]):
            assert mother.wait(writer.pid) == 0
        last = _one_more(store)
        wait_until(lambda: _count(store, f"runs WHERE id = {last} AND dispatched_at IS NOT NULL") == 1, "the cursor comes there")
        dispatcher.kill()
        account = _account(store)
        assert not account.proved
        assert account.counts[Account.WAITING] > 0, account


def _one_more(store: SqlStore) -> int:
    """A run that finished after all others: once a cursor is there, what it has not seen is lost."""
    run = next(own_runs(store, "last"))
    finish(store, run, random.Random(1), 0.0)
    return run.id
