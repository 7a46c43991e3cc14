"""Pipelines on real databases: what is opened when, what a step is given, how it is tried again, and how all of it ends (D-16)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.artifacts import FINAL_ANSWER
from agentplat.domain.budgets import Unit, pipeline_holder
from agentplat.domain.chains import ChainLimits, OpenedBy, Position
from agentplat.domain.contracts import ContractMode
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound
from agentplat.domain.labels import parse_labels, texts
from agentplat.domain.modes import Mode
from agentplat.domain.pipelines import PipelineState
from agentplat.domain.runs import DriverKind, RunState
from agentplat.domain.tickets import Author
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.pipeline_runner import PipelineRunner
from agentplat.usecases.propose import propose
from agentplat.usecases.workrooms import room_of
from agentplat.worker import Worker

from tests.agentplat.offices import DIAMOND, ROLES, SCOPE, WORKER, WRITER, Office, finish, office, publish, submit
from tests.agentplat.proposals import RESULT, proposal, sub_ticket
from tests.agentplat.run_records import folder_content, stored
from tests.agentplat.world import World, ref, wait_until

pytestmark = pytest.mark.promise("D-16")


@pytest.fixture
def hall(everywhere: World, tmp_path: Path) -> Office:
    opened = office(everywhere, tmp_path)
    opened.agents()
    return opened


def test_steps_are_opened_as_what_they_need_finishes_side_by_side_where_they_can(hall: Office) -> None:
    pipeline = hall.started(research="worker")
    assert hall.rounds(pipeline) == [["research"], ["a", "b"], ["c", "d"], ["synthesis"]]
    assert hall.now(pipeline).state is PipelineState.FINISHED
    assert set(hall.states(pipeline).values()) == {"finished"}
    assert [attempt for _, attempt, _ in hall.runs(pipeline)] == [1] * 6
    assert hall.notices()[-1] == f"Pipeline {pipeline.id} finished."
    with hall.store.reading() as work:
        assert work.pipelines.due(0, 10) == []
    assert hall.runner(pipeline.id) is None


def test_a_step_begins_as_soon_as_its_own_dependencies_have_finished_whatever_else_runs(hall: Office) -> None:
    pipeline = hall.started()
    hall.runner(pipeline.id)
    run = hall.acting.lease([DriverKind.SCRIPTED], "worker")
    assert run is not None
    assert run.id == hall.run(pipeline, "a").id
    Worker(hall.acting, [ScriptedDriver()], 0.01)._carry(run)
    hall.runner(pipeline.id)
    assert hall.states(pipeline) == {"a": "finished", "b": "running", "c": "running", "d": "waiting", "synthesis": "waiting"}


def test_a_run_of_a_step_gets_the_goal_its_part_and_what_the_steps_before_it_came_to(hall: Office) -> None:
    pipeline = hall.started([sub_ticket("a"), sub_ticket("b", "writer", ["a"], output_schema=RESULT)])
    hall.rounds(pipeline)
    a, b, last = (hall.run(pipeline, key) for key in ("a", "b", "synthesis"))
    with hall.store.reading() as work:
        answer = work.artifacts.find(a.id, FINAL_ANSWER)
        contract = work.contracts.of_run(b.id)
        place = work.spaces.workplace(b.id)
    assert answer is not None
    assert contract is not None
    assert contract.output is not None
    assert contract.mode is ContractMode.STRICT
    assert place is not None
    assert (place.space_id, place.mode, place.ticket_id) == (hall.space.id, Mode.CHAT, None)
    assert hall.input(a)["outputs"] == []
    assert hall.input(b) == {
        "goal": "Ship the report.",
        "step": {"key": "b", "kind": "promptAgent", "title": "Part b", "description": "Do b."},
        "outputs": [{"step": "a", "run": a.id, "digest": answer.blob.digest, "text": "worked"}],
    }
    [given] = hall.input(last)["outputs"]
    assert given == {"step": "b", "run": b.id, "digest": contract.output.digest, "text": '{"result":"whole"}'}


def test_research_only_reads_and_the_other_steps_work(hall: Office) -> None:
    pipeline = hall.started([sub_ticket("a")], research="worker")
    hall.rounds(pipeline)
    with hall.store.reading() as work:
        places = {key: work.spaces.workplace(run_id) for key, _, run_id in work.pipelines.runs(pipeline.id)}
    assert {key: place.mode for key, place in places.items() if place is not None} == {
        "research": Mode.PLAN,
        "a": Mode.CHAT,
        "synthesis": Mode.CHAT,
    }


def test_steps_of_a_persons_proposal_begin_chains_and_those_of_a_runs_stay_at_its_hop(hall: Office) -> None:
    pipeline = hall.started([sub_ticket("a")])
    hall.rounds(pipeline)
    run = hall.run(pipeline, "a")
    assert (run.opened_by, run.hop, run.chain, run.source_run_id) == (OpenedBy.PIPELINE, 0, run.id, None)
    first = hall.proposing_run()
    second = hall.proposing_run(
        opened_by=OpenedBy.MENTION, opener=None, source_run_id=first.id, position=Position(hop=5, chain=first.id)
    )
    proposed = _proposed_by(hall, second.id)
    pipeline = hall.approve(proposed)
    assert pipeline.source_run_id == second.id
    hall.rounds(pipeline)
    for key in ("a", "synthesis"):
        run = hall.run(pipeline, key)
        assert (run.opened_by, run.hop, run.chain, run.source_run_id) == (OpenedBy.PIPELINE, 5, first.id, second.id)
    with hall.store.reading() as work:
        assert work.chains.size(first.id) == 3


def _proposed_by(hall: Office, run_id: int, revises: int | None = None) -> Any:
    with hall.store.writing() as work:
        room = room_of(work, hall.space.id)
        assert room is not None
        return propose(work, room, Author(run_id=run_id), proposal([sub_ticket("a")], ROLES), revises)


def test_a_person_who_revises_what_a_run_proposed_does_not_begin_its_chain_anew(hall: Office) -> None:
    source = hall.proposing_run()
    first = _proposed_by(hall, source.id)
    again = proposal([sub_ticket("b")], ROLES)
    revised = hall.world.cases.orchestrating.propose.revise(hall.access, first.kept.id, again)
    assert hall.approve(revised).source_run_id == source.id


def test_a_chain_without_runs_left_fails_the_step_and_says_so(hall: Office) -> None:
    with hall.store.writing() as work:
        work.chains.set_limits(ChainLimits(hops=8, runs=2))
    source = hall.proposing_run()
    pipeline = hall.approve(_proposed_by(hall, source.id))
    assert hall.rounds(pipeline) == [["a"]]
    assert hall.states(pipeline) == {"a": "finished", "synthesis": "failed"}
    assert "has spent its budget of 2 runs" in str(hall.now(pipeline).reason)


def test_labels_of_all_that_a_step_builds_on_come_along_and_the_barrier_holds(hall: Office) -> None:
    publish(hall.store, "acme/platform:carrier", finish("carried"))
    pipeline = hall.started([sub_ticket("a"), sub_ticket("b", needs=["a"])])
    hall.runner(pipeline.id)
    run = hall.run(pipeline, "a")
    with hall.store.writing() as work:
        work.runs.take_on(run, parse_labels(["untrusted", "personal"]))
    hall.carry()
    hall.runner(pipeline.id)
    assert texts(hall.run(pipeline, "b").labels) == ("area:acme/platform", "personal", "untrusted")
    with hall.store.writing() as work:
        work.runs.take_on(hall.run(pipeline, "b"), parse_labels(["area:acme/finance"]))
    hall.carry()
    hall.runner(pipeline.id)
    assert hall.states(pipeline) == {"a": "finished", "b": "finished", "synthesis": "failed"}
    reason = str(hall.now(pipeline).reason)
    assert "the barrier keeps what the step builds on from acme/platform" in reason
    assert "finance" not in reason


def test_a_step_is_tried_again_as_often_as_its_template_says_each_time_with_one_run(hall: Office) -> None:
    publish(hall.store, WORKER, {"fail": "not today"})
    pipeline = hall.started([sub_ticket("a", retries=2), sub_ticket("b", needs=["a"]), sub_ticket("c", "writer")])
    assert hall.rounds(pipeline) == [["a", "c"], ["a"], ["a"]]
    assert hall.states(pipeline) == {"a": "failed", "b": "skipped", "c": "finished", "synthesis": "skipped"}
    now = hall.now(pipeline)
    last = hall.run(pipeline, "a")
    assert (now.state, now.reason) == (PipelineState.FAILED, f"the step a failed: run {last.id} failed: not today")
    assert hall.steps(pipeline)["b"].reason == "the step a did not finish"
    assert hall.notices()[-1] == f"Pipeline {pipeline.id} failed: {now.reason}"


def test_a_step_that_failed_once_may_succeed_the_second_time(hall: Office) -> None:
    publish(hall.store, WORKER, {"fail": "not today"})
    pipeline = hall.started([sub_ticket("a")])
    hall.runner(pipeline.id)
    hall.carry()
    publish(hall.store, WORKER, finish("after all"))
    hall.rounds(pipeline)
    assert hall.now(pipeline).state is PipelineState.FINISHED
    assert [(key, attempt) for key, attempt, _ in hall.runs(pipeline)] == [("a", 1), ("a", 2), ("synthesis", 1)]
    assert hall.input(hall.run(pipeline, "synthesis"))["outputs"][0]["text"] == "after all"


def test_a_synthesis_without_an_output_that_fits_fails_the_pipeline(hall: Office) -> None:
    publish(hall.store, WRITER, *[submit(3)] * 3, finish("no"))
    pipeline = hall.started([sub_ticket("a")], synthesis={**proposal([], ROLES)["synthesis"], "retries": 0})
    hall.rounds(pipeline)
    assert hall.states(pipeline) == {"a": "finished", "synthesis": "failed"}
    assert "rejected 3 times" in str(hall.now(pipeline).reason)


def test_a_run_that_somebody_cancelled_is_not_tried_again(hall: Office) -> None:
    pipeline = hall.started([sub_ticket("a", retries=3)])
    hall.runner(pipeline.id)
    hall.world.cases.cancel_run(hall.access, hall.run(pipeline, "a").id)
    hall.rounds(pipeline)
    assert hall.states(pipeline) == {"a": "failed", "synthesis": "skipped"}
    assert [attempt for _, attempt, _ in hall.runs(pipeline)] == [1]


@pytest.mark.parametrize("why", ["paused", "retired", "removed"])
def test_a_step_that_can_not_begin_fails_with_the_reason_and_opens_nothing(hall: Office, why: str) -> None:
    pipeline = hall.started([sub_ticket("a", "writer"), sub_ticket("b", "worker", ["a"])])
    hall.runner(pipeline.id)
    hall.carry()
    with hall.store.writing() as work:
        agent = work.registry.find(ref(WORKER))
        assert agent is not None
        if why == "paused":
            work.registry.pause(agent, True)
        elif why == "retired":
            work.registry.retire(agent)
        else:
            work.spaces.remove(hall.space, 1)
    hall.runner(pipeline.id)
    told = {"paused": "worker is paused", "retired": "worker has no published version", "removed": "the space was removed"}
    assert hall.states(pipeline) == {"a": "finished", "b": "failed", "synthesis": "skipped"}
    assert hall.now(pipeline).reason == f"the step b failed: {told[why]}"
    assert [key for key, _, _ in hall.runs(pipeline)] == ["a"]


def test_an_output_that_was_erased_or_is_too_large_fails_what_builds_on_it(hall: Office) -> None:
    publish(hall.store, WORKER, finish("x" * 300_000))
    large, erased = hall.started([sub_ticket("a")]), hall.started([sub_ticket("a")])
    for pipeline in (large, erased):
        hall.runner(pipeline.id)
    hall.carry()
    admin = hall.world.person("acme/platform:admin", f"admin={SCOPE}")
    hall.world.cases.governing.erase(admin, hall.run(erased, "a").id, FINAL_ANSWER, "asked for")
    publish(hall.store, WORKER, finish("other"))
    hall.runner(erased.id)
    assert hall.now(erased).reason == "the step synthesis failed: what the step a came to was erased"
    hall.runner(large.id)
    assert "at most 262144 are given to a run" in str(hall.now(large).reason)


def test_content_that_is_lost_fails_what_builds_on_it(hall: Office) -> None:
    pipeline = hall.started([sub_ticket("a")])
    hall.runner(pipeline.id)
    hall.carry()
    with hall.store.reading() as work:
        answer = work.artifacts.find(hall.run(pipeline, "a").id, FINAL_ANSWER)
    assert answer is not None
    folder_content(hall.folder).erase(answer.blob)
    hall.runner(pipeline.id)
    assert hall.now(pipeline).reason == "the step synthesis failed: what the step a came to is lost or damaged"


def test_cancelling_a_pipeline_cancels_its_runs_and_opens_no_more(hall: Office) -> None:
    pipeline = hall.started()
    hall.runner(pipeline.id)
    held = hall.acting.lease([DriverKind.SCRIPTED], "worker")
    assert held is not None
    cancelled = hall.world.cases.orchestrating.cancel(hall.access, pipeline.id, "no longer needed")
    assert (cancelled.state, cancelled.reason) == (PipelineState.CANCELLED, "no longer needed")
    assert set(hall.states(pipeline).values()) == {"cancelled"}
    a, b = (stored(hall.store, hall.run(pipeline, key).id) for key in ("a", "b"))
    states = {run.id: run.state for run in (a, b)}
    assert states.pop(held.id) is RunState.RUNNING
    assert list(states.values()) == [RunState.CANCELLED]
    assert stored(hall.store, held.id).cancel_asked_at is not None
    assert hall.runner(pipeline.id) is None
    worker = Worker(hall.acting, [ScriptedDriver()], 0.01)
    worker._carry(held)
    assert stored(hall.store, held.id).state is RunState.CANCELLED
    assert hall.notices()[-1] == f"Pipeline {pipeline.id} was cancelled: no longer needed"
    assert hall.world.cases.orchestrating.cancel(hall.access, pipeline.id, "again").reason == "no longer needed"


def test_what_has_ended_is_not_cancelled_and_nobody_cancels_what_is_not_theirs(hall: Office) -> None:
    pipeline = hall.started([sub_ticket("a")])
    cancel = hall.world.cases.orchestrating.cancel
    viewer = hall.world.person("acme/platform:lea", f"viewer={SCOPE}")
    stranger = hall.world.person("globex:eve", "admin=globex")
    with pytest.raises(AccessDenied):
        cancel(viewer, pipeline.id, "x")
    for access, number in ((stranger, pipeline.id), (hall.access, 1_000)):
        with pytest.raises(NotFound):
            cancel(access, number, "x")
    with pytest.raises(InvalidInput):
        cancel(hall.access, pipeline.id, " ")
    hall.rounds(pipeline)
    with pytest.raises(Conflict, match="is finished already"):
        cancel(hall.access, pipeline.id, "x")


def test_many_who_move_and_cancel_at_once_open_one_run_for_each_attempt(hall: Office) -> None:
    pipelines = [hall.started([sub_ticket("a"), sub_ticket("b")]) for _ in range(3)]
    gate = threading.Barrier(8)

    def move(turn: int) -> None:
        gate.wait(30)
        for pipeline in pipelines[turn % 3 :] + pipelines[: turn % 3]:
            hall.runner(pipeline.id)
        if turn == 7:
            hall.world.cases.orchestrating.cancel(hall.access, pipelines[0].id, "enough")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(move, range(8)))
    for pipeline in pipelines[1:]:
        assert [(key, attempt) for key, attempt, _ in hall.runs(pipeline)] == [("a", 1), ("b", 1)]
    assert hall.now(pipelines[0]).state is PipelineState.CANCELLED
    with hall.store.reading() as work:
        opened = [run for run in work.runs.page(["*"], None, 100) if run.opened_by is OpenedBy.PIPELINE]
    assert len(opened) == sum(len(hall.runs(pipeline)) for pipeline in pipelines)


@pytest.mark.promise("A-15", "D-16")
def test_steps_side_by_side_never_take_more_than_the_budget_that_was_approved(hall: Office) -> None:
    # Each submits four times, and every time counts, although only the first can be accepted.
    publish(hall.store, WORKER, *[submit()] * 4, finish("x"))
    keys = [f"s{i}" for i in range(8)]
    parts = [sub_ticket(key, output_schema=RESULT) for key in keys]
    pipeline = hall.started(parts, budget={"tool_calls": 10, "tokens": 5})
    hall.runner(pipeline.id)
    workers = [Worker(hall.acting, [ScriptedDriver()], 0.01) for _ in range(4)]
    for worker in workers:
        worker.start()
    still = {RunState.QUEUED, RunState.RUNNING}
    wait_until(lambda: not any(hall.run(pipeline, key).state in still for key in keys), "every run has ended or waits")
    for worker in workers:
        assert worker.stop(60)
    with hall.store.reading() as work:
        found = {budget.unit: budget for budget in work.budgets.of([pipeline_holder(pipeline.id)])}
        waiting = [work.runs.trail(hall.run(pipeline, key).id)[-1].read() for key in keys]
    calls = found[Unit.TOOL_CALLS]
    assert (calls.ceiling, calls.spent, calls.reserved) == (10, 10, 0)
    stopped = [step for step in waiting if getattr(step, "ceiling", None) == f"tool calls of pipeline {pipeline.id}"]
    assert stopped
    assert found[Unit.TOKENS].ceiling == 5


def test_a_runner_moves_all_that_is_due_and_one_that_can_not_be_moved_holds_up_no_other(hall: Office) -> None:
    broken, fine = hall.started([sub_ticket("a")]), hall.started(DIAMOND)
    inner = hall.runner

    class Broken:
        def due(self, after: int = 0) -> list[int]:
            return inner.due(after)

        def __call__(self, pipeline_id: int) -> Any:
            assert pipeline_id != broken.id
            return inner(pipeline_id)

        def give_up(self, pipeline_id: int) -> None:
            inner.give_up(pipeline_id)

    runner, worker = PipelineRunner(Broken(), 0.01), Worker(hall.acting, [ScriptedDriver()], 0.01)  # type: ignore[arg-type]
    runner.start()
    worker.start()
    wait_until(lambda: hall.now(fine).state is PipelineState.FINISHED, "the other one finishes")
    assert hall.now(broken).state is PipelineState.RUNNING
    assert runner.stop(60)
    assert worker.stop(60)
    inner.give_up(broken.id)
    assert hall.now(broken).state is PipelineState.FAILED
    assert set(hall.states(broken).values()) == {"cancelled"}
