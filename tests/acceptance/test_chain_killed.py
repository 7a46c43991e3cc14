"""Chains under real workers and dispatchers that are killed while deliveries come twice and in another order."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from agentplat.domain.chains import ChainLimits, OutcomeKind, Position
from agentplat.domain.runs import RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Opening
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store

from tests.acceptance.lives import Life, Zygote, zygote
from tests.agentplat.chains import Bench, two_agent_loop
from tests.agentplat.conftest import empty_database
from tests.agentplat.run_records import DEVELOPER, REVIEWER, agent_of, execute, fault_of, new_run, opened
from tests.agentplat.world import wait_until

PATIENCE_S = 240


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    found = empty_database(request.param, request)
    migrate(found)
    return found


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with closing(open_store(url)) as opened_store:
        yield opened_store


@pytest.fixture(scope="module")
def mother(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """What all processes of these tests are forked from."""
    with zygote(tmp_path_factory.mktemp("zygote")) as found:
        yield found


def commands(url: str, folder: Path) -> list[Sequence[object]]:
    """Two workers and two dispatchers."""
    quick = ("--database-url", url, "--poll-interval-s", "0.02", "--log-level", "error")
    worker = ("worker", *quick, "--content", folder / "content", "--run-lease-s", "0.5")
    dispatcher = ("dispatch", "run", *quick)
    return [worker, worker, dispatcher, dispatcher]


def settled(store: SqlStore) -> bool:
    """Whether every run has ended and every finished one was dispatched."""
    with store.reading() as work:
        runs = work.runs.page(["*"], None, 1_000)
        return all(run.ended for run in runs) and work.deliveries.backlog(["*"]).waiting == 0


def deliver_again(store: SqlStore, url: str, chance: random.Random) -> None:
    """Deliver what was delivered before once more, in any order: from the store, and by taking marks away from the dispatcher."""
    with store.reading() as work:
        runs = work.runs.page(["*"], None, 1_000)
        openings = [work.runs.trail(run.id)[0].read() for run in runs if run.source_run_id is not None]
    chance.shuffle(openings)
    for opening in openings:
        assert isinstance(opening, Opening)
        assert opening.delivery is not None
        assert opening.hop is not None
        assert opening.chain is not None
        scope, _, name = opening.agent.partition(":")
        again = {"opened_by": opening.opened_by, "opener": None, "source_run_id": opening.source_run, "delivery": opening.delivery}
        # Whoever counted deliveries would come to another hop.
        place = Position(hop=opening.hop + 1, chain=opening.chain)
        with store.writing() as work:
            assert work.runs.open(new_run(work, Ref(scope, name), position=place, **again), 1) is None
    dispatched = [run.id for run in runs if run.state is RunState.FINISHED]
    if dispatched:
        execute(url, f"UPDATE runs SET dispatched_at = NULL WHERE id = {chance.choice(dispatched)}")


@pytest.mark.promise("R-6", "R-7", "R-13", "R-15")
def test_a_loop_of_two_agents_makes_the_same_nine_runs_whatever_is_killed_and_delivered_twice(
    url: str, store: SqlStore, tmp_path: Path, mother: Zygote
) -> None:
    two_agent_loop(store, DEVELOPER, REVIEWER)
    chance, pause = random.Random(3), Event()
    starts = commands(url, tmp_path)
    lives: list[Life] = [mother.start("agentplat", *start) for start in starts]
    first = opened(store)
    kills, end = 0, time.monotonic() + PATIENCE_S
    while kills < 12 or not settled(store):
        assert time.monotonic() < end
        pause.wait(chance.random() * 0.4)
        deliver_again(store, url, chance)
        one = chance.randrange(len(starts))
        lives[one].kill()
        kills += 1
        lives[one] = mother.start("agentplat", *starts[one])
    wait_until(lambda: settled(store), "all is dispatched")
    for life in lives:
        life.stop()
    bench = Bench(store=store, folder=tmp_path)
    runs = bench.all_runs()
    assert [run.hop for run in runs] == list(range(9))
    assert {run.chain for run in runs} == {first.id}
    assert {run.state for run in runs} == {RunState.FINISHED}
    assert [[one.kind for one in bench.outcomes(run)] for run in runs] == [[OutcomeKind.OPENED]] * 8 + [[OutcomeKind.HOP_LIMIT]]
    withheld = bench.closing(runs[-1]).withheld
    assert withheld is not None
    assert (withheld.chain, withheld.limit, withheld.events) == (first.id, 8, ("there",))
    assert [fault_of(store, run.id) for run in runs] == [None] * 9
    with store.reading() as work:
        assert work.chains.size(first.id) == 9
        assert work.deliveries.reconcile(["*"], 0, 2**62).proved


@pytest.mark.promise("R-12", "R-16")
def test_agents_that_all_hear_each_other_stop_at_the_chains_budget_under_many_processes(
    url: str, store: SqlStore, tmp_path: Path, mother: Zygote
) -> None:
    names, budget = [f"a{i}" for i in range(11)], 60
    for name in names:
        agent_of(store, Ref("acme", name), (f"by {name}",), tuple(f"by {other}" for other in names if other != name))
    with store.writing() as work:
        work.chains.set_limits(ChainLimits(hops=8, runs=budget))
    lives = [mother.start("agentplat", *start) for start in commands(url, tmp_path)]
    first = opened(store, Ref("acme", "a0"))
    end = time.monotonic() + PATIENCE_S
    while not settled(store):
        assert time.monotonic() < end
        Event().wait(0.05)
    for life in lives:
        life.stop()
    bench = Bench(store=store, folder=tmp_path)
    runs = bench.all_runs()
    assert len(runs) == budget
    kinds = [one.kind for run in runs for one in bench.outcomes(run)]
    assert len(kinds) == budget * 10
    assert kinds.count(OutcomeKind.OPENED) == budget - 1
    assert set(kinds) == {OutcomeKind.OPENED, OutcomeKind.CHAIN_RUNS_SPENT}
    with store.reading() as work:
        assert work.chains.size(first.id) == budget
