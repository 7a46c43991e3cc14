"""Runs in the store: opened with their first step, held by one worker at a time, written to by nobody else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from agentplat.domain.artifacts import blob_of
from agentplat.domain.chains import OpenedBy, Position, position_of
from agentplat.domain.errors import LeaseLost
from agentplat.domain.labels import parse_labels, texts
from agentplat.domain.runs import DriverKind, Run, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import ArtifactPublished, Closing, Opening, Resumed, StepKind, TakenOver, Waiting
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store

from tests.agentplat.records import person
from tests.agentplat.run_records import (
    ALL_DRIVERS,
    LONG_S,
    REVIEWER,
    agent_of,
    by_event,
    column,
    execute,
    fault_of,
    finished,
    leased,
    new_run,
    opened,
    stored,
)

TURN = TakenOver(attempt=2)


def _append(store: SqlStore, run: Run) -> Run:
    with store.writing() as work:
        return work.runs.append(run, [TURN], 2)


def _opening(store: SqlStore, run: Run) -> Opening:
    with store.reading() as work:
        [first] = work.runs.trail(run.id, size=1)
    read = first.read()
    assert isinstance(read, Opening)
    return read


@pytest.mark.promise("R-1", "R-3")
def test_a_person_opens_a_run_at_hop_0_of_a_chain_of_its_own(store: SqlStore) -> None:
    given = blob_of(b"Look at the logs.")
    run = opened(store, input=given)
    assert (run.state, run.hop, run.chain, run.steps, texts(run.labels)) == (
        RunState.QUEUED,
        0,
        run.id,
        1,
        ("area:acme/platform",),
    )
    assert _opening(store, run) == Opening(
        opened_by=OpenedBy.PERSON,
        agent="acme/platform:developer",
        version=1,
        on_behalf_of="acme:ana",
        labels=("area:acme/platform",),
        hop=0,
        chain=run.id,
        opener="acme:ana",
        input=given,
    )
    with store.reading() as work:
        assert work.runs.input(run.id) == (given, False)
        assert work.chains.size(run.id) == 1
    assert stored(store, run.id) == run
    assert fault_of(store, run.id) is None


@pytest.mark.promise("R-3")
def test_the_opening_step_of_a_run_that_an_event_opened_says_where_it_came_from(store: SqlStore) -> None:
    opened(store)
    source = finished(store, leased(store))
    agent_of(store, REVIEWER)
    given = by_event(source)
    run = opened(store, REVIEWER, **given)
    step = _opening(store, run)
    assert (step.opened_by, step.hop, step.chain, step.source_run) == (OpenedBy.EVENT, 1, source.id, source.id)
    assert (step.delivery, step.opener, step.on_behalf_of) == (given["delivery"], None, "acme:ana")
    assert position_of(run) == Position(hop=1, chain=source.id)


def test_a_delivery_opens_one_run_however_often_it_comes(store: SqlStore) -> None:
    source = opened(store)
    agent_of(store, REVIEWER)
    gate = threading.Barrier(4)

    def deliver(_: int) -> int | None:
        gate.wait(30)
        with store.writing() as work:
            run = work.runs.open(new_run(work, REVIEWER, **by_event(source)), 1)
            return None if run is None else run.id

    with ThreadPoolExecutor(4) as pool:
        runs = [run for run in pool.map(deliver, range(4)) if run is not None]
    assert len(runs) == 1
    with store.reading() as work:
        first = work.runs.delivered(source.id, "code", stored(store, runs[0]).agent_id)
        assert first is not None
        assert first.id == runs[0]
        assert len(work.runs.trail(runs[0])) == 1
    assert opened(store, REVIEWER, **by_event(source, "other")).id != runs[0]


def test_a_run_is_held_by_one_worker_until_its_lease_ends(store: SqlStore) -> None:
    run = opened(store)
    with store.reading() as work:
        assert work.runs.leasable(ALL_DRIVERS)
        assert not work.runs.leasable([DriverKind.MODEL, DriverKind.EXTERNAL])
    first = leased(store, "a", lease_s=0)
    assert (first.id, first.state, first.owner, first.attempts) == (run.id, RunState.RUNNING, "a", 1)
    second = leased(store, "b")
    assert (second.id, second.owner, second.attempts) == (run.id, "b", 2)
    with store.writing() as work:
        assert not work.runs.leasable(ALL_DRIVERS)
        assert work.runs.lease(ALL_DRIVERS, "c", LONG_S) is None
        assert not work.runs.renew(first, LONG_S)
        assert work.runs.renew(second, LONG_S)
        work.runs.release(first)
    assert stored(store, run.id).owner == "b"
    with store.writing() as work:
        work.runs.release(second)
    assert (stored(store, run.id).state, stored(store, run.id).attempts) == (RunState.QUEUED, 1)


@pytest.mark.promise("R-2")
def test_who_lost_the_lease_can_not_write(store: SqlStore) -> None:
    opened(store)
    first = leased(store, "a", lease_s=0)
    second = leased(store, "b")
    for late in (
        lambda: _append(store, first),
        lambda: finished(store, first),
    ):
        with pytest.raises(LeaseLost):
            late()
    second = _append(store, second)
    assert (second.steps, fault_of(store, second.id)) == (2, None)


@pytest.mark.promise("R-2")
def test_who_knows_an_older_end_of_the_trail_can_not_write(store: SqlStore) -> None:
    opened(store)
    run = leased(store)
    _append(store, run)
    with pytest.raises(LeaseLost):
        _append(store, run)
    with pytest.raises(LeaseLost):
        _append(store, replace(stored(store, run.id), head="0" * 64))
    assert (stored(store, run.id).steps, fault_of(store, run.id)) == (2, None)


@pytest.mark.promise("R-2")
def test_of_two_writers_at_once_one_is_refused(store: SqlStore) -> None:
    opened(store)
    run = leased(store)
    gate = threading.Barrier(4)

    def write(_: int) -> bool:
        gate.wait(30)
        try:
            _append(store, run)
        except LeaseLost:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(write, range(4))) == 1
    assert fault_of(store, run.id) is None


@pytest.mark.promise("R-1", "R-2")
@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED, RunState.CANCELLED])
def test_a_run_ends_with_its_closing_step_and_stays_as_it_ended(store: SqlStore, state: RunState) -> None:
    opened(store)
    with store.writing() as work:
        held = work.runs.lease(ALL_DRIVERS, "a", LONG_S)
        assert held is not None
        run = work.runs.close(held, Closing(state=state), 2)
    assert (run.state, run.owner, run.ended, run.steps, run.finished_at is not None) == (state, None, True, 2, True)
    with store.reading() as work:
        assert [step.kind for step in work.runs.trail(run.id)] == [StepKind.OPENING, StepKind.CLOSING]
    assert column(store, "dispatched_at", run.id) is None
    for known in (held, run):
        with pytest.raises(LeaseLost):
            _append(store, known)
    with store.writing() as work:
        assert work.runs.lease(ALL_DRIVERS, "b", LONG_S) is None
    assert fault_of(store, run.id) is None


@pytest.mark.promise("R-1")
def test_a_waiting_run_is_nobodys_until_it_is_resumed(store: SqlStore) -> None:
    opened(store)
    run = leased(store)
    with store.writing() as work:
        run = work.runs.wait(run, Waiting(waiting_for=WaitingFor.BUDGET, ceiling="tool_calls of acme"), 2)
    assert (run.state, run.waiting_for, run.owner) == (RunState.WAITING, WaitingFor.BUDGET, None)
    with store.writing() as work:
        assert work.runs.lease(ALL_DRIVERS, "b", LONG_S) is None
        run = work.runs.resume(run, Resumed(waited_for=WaitingFor.BUDGET), 3)
    assert (run.state, run.waiting_for) == (RunState.QUEUED, None)
    assert leased(store, "b").attempts == 1
    assert fault_of(store, run.id) is None


def test_two_workers_never_hold_the_same_run(store: SqlStore) -> None:
    runs = {opened(store).id for _ in range(12)}
    gate = threading.Barrier(4)
    with store.reading() as work:
        assert work.runs.leasable(ALL_DRIVERS)

    def take(owner: str) -> list[int]:
        gate.wait(30)
        taken = []
        while True:
            with store.writing() as work:
                run = work.runs.lease(ALL_DRIVERS, owner, LONG_S)
            if run is None:
                return taken
            taken.append(run.id)

    with ThreadPoolExecutor(4) as pool:
        taken = [run for part in pool.map(take, "abcd") for run in part]
    assert sorted(taken) == sorted(set(taken))
    with store.writing() as work:
        while (run := work.runs.lease(ALL_DRIVERS, "last", LONG_S)) is not None:
            taken.append(run.id)
    assert set(taken) == runs


def test_runs_are_listed_newest_first_within_the_scopes_asked_for(store: SqlStore) -> None:
    other = Ref("globex", "developer")
    ids = [opened(store).id, opened(store, other).id, opened(store).id]
    with store.reading() as work:
        assert [run.id for run in work.runs.page(["acme"], None, 10)] == [ids[2], ids[0]]
        assert [run.id for run in work.runs.page(["*"], ids[2], 1)] == [ids[1]]


def test_a_person_who_wants_a_run_cancelled_is_noted_once(store: SqlStore) -> None:
    run = opened(store)
    with store.writing() as work:
        work.runs.ask_to_cancel(run, person(work), 5)
        work.runs.ask_to_cancel(run, person(work, "bo"), 6)
    assert stored(store, run.id).cancel_asked_at == 5


def test_labels_join_the_runs_and_are_never_taken_away(store: SqlStore, database_url: str) -> None:
    run = opened(store)
    with store.writing() as work:
        run = work.runs.take_on(run, parse_labels(["untrusted", "area:acme/platform"]))
        run = work.runs.take_on(run, parse_labels(["secret"]))
    assert texts(stored(store, run.id).labels) == texts(run.labels) == ("area:acme/platform", "secret", "untrusted")
    for statement in ("DELETE FROM run_labels", "UPDATE run_labels SET label = 'x'"):
        with pytest.raises(sa.exc.IntegrityError, match="never changed"):
            execute(database_url, statement)


def test_artifacts_are_kept_by_reference_with_the_labels_they_were_published_with(store: SqlStore) -> None:
    run = opened(store)
    blob = blob_of(b"The token has expired.")
    with store.writing() as work:
        artifact = work.artifacts.publish(run, "cause", blob, run.labels, 4)
    with store.reading() as work:
        assert work.artifacts.of_run(run.id) == {"cause": artifact}
        assert work.artifacts.find(run.id, "cause") == artifact
        assert work.artifacts.find(run.id, blob.ref) is None
    assert (artifact.blob, texts(artifact.labels), artifact.erased_at) == (blob, ("area:acme/platform",), None)


def test_the_runs_of_a_chain_are_counted_up_to_their_budget(store: SqlStore) -> None:
    run = opened(store)
    gate = threading.Barrier(4)

    def take(_: int) -> int:
        gate.wait(30)
        taken = 0
        for _ in range(5):
            with store.writing() as work:
                taken += work.chains.take(run.id, 10)
        return taken

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, range(4))) == 9
    with store.reading() as work:
        assert work.chains.size(run.id) == 10


def test_the_limits_of_chains_are_those_of_the_database(store: SqlStore, database_url: str) -> None:
    with store.reading() as work:
        assert (work.chains.limits().hops, work.chains.limits().runs) == (8, 256)
    execute(database_url, "UPDATE platform_limits SET chain_hops = 3, chain_runs = 20")
    with store.reading() as work:
        assert (work.chains.limits().hops, work.chains.limits().runs) == (3, 20)


@pytest.mark.promise("R-2")
def test_published_artifacts_stand_in_the_trail_by_reference(store: SqlStore) -> None:
    opened(store)
    run = leased(store)
    blob = blob_of(b"x")
    step = ArtifactPublished(name="cause", ref=blob.ref, digest=blob.digest, source_run=run.id, labels=())
    with store.writing() as work:
        run = work.runs.append(run, [step, TURN], 2)
    with store.reading() as work:
        assert [found.read() for found in work.runs.trail(run.id, after=1)] == [step, TURN]


def test_what_an_older_worker_writes_is_found_and_has_no_hop(empty_url: str) -> None:
    migrate(empty_url, "0002")
    execute(
        empty_url,
        "INSERT INTO people (id, scope, name, created_at) VALUES (1, 'acme', 'ana', 1)",
        "INSERT INTO agents (id, scope, name) VALUES (1, 'acme', 'a')",
        f"INSERT INTO versions VALUES (1, 1, '{{}}', '{'0' * 64}', '{{\"emits\": [], \"listens\": []}}', 1, 1)",
        *(_older_run(run_id) for run_id in (1, 2, 3)),
        "UPDATE runs SET state = 'finished' WHERE id = 1",
    )
    migrate(empty_url)
    execute(empty_url, "UPDATE runs SET state = 'finished' WHERE id = 2", _older_run(4, 2))
    with closing(open_store(empty_url)) as store:
        marks = [column(store, "dispatched_at", run_id) for run_id in (1, 2, 3, 4)]
        ends = [stored(store, run_id).finished_at is not None for run_id in (1, 2, 3, 4)]
        places = [position_of(stored(store, run_id)) for run_id in (1, 2, 3, 4)]
    assert marks == [0, None, None, None]
    assert ends == [True, True, False, False]
    assert places == [*(Position(hop=0, chain=run_id) for run_id in (1, 2, 3)), None]


def _older_run(run_id: int, source: int | None = None) -> str:
    origin = "'person', NULL, NULL" if source is None else f"'event', {source}, 'code'"
    columns = "id, agent_id, number, driver, opened_by, source_run_id, event, on_behalf_of_id, opened_at, state"
    return f"INSERT INTO runs ({columns}) VALUES ({run_id}, 1, 1, 'scripted', {origin}, 1, 1, 'running')"
