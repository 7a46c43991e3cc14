"""What workers do with runs that were begun by others, are to be cancelled, waited, or cannot be gone on with (R-4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agentplat.domain.access import Access
from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import AccessDenied, Conflict, LeaseLost, NotFound, RunFailed, Unauthenticated
from agentplat.domain.runs import DriverKind, Run, RunState, WaitingFor
from agentplat.domain.steps import (
    Body,
    Closing,
    GateRuling,
    ResultKind,
    Resumed,
    Ruling,
    StepKind,
    TakenOver,
    ToolCall,
    ToolResult,
    Waiting,
)
from agentplat.drivers.port import Driver, Hands, Task
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.usecases.catalogue import Acting
from agentplat.worker import Worker
from typing_extensions import override

from tests.agentplat.mortal_workers import LOOK, PAY, Fate, acting, tally_tools
from tests.agentplat.run_records import LONG_S, execute, fault_of, folder_content, leased, stored
from tests.agentplat.world import PATIENCE_S, World, ref, wait_until

pytestmark = pytest.mark.promise("R-4")

DEVELOPER = "acme/platform:developer"
ACTIONS = [{"call": PAY, "arguments": {"n": 1}}, {"finish": {"summary": "Paid."}}]


@pytest.fixture
def ana(everywhere: World) -> Access:
    """Who publishes the agent and opens its runs."""
    who = everywhere.person("acme:ana", "author=acme/platform")
    everywhere.publish(who, DEVELOPER, ["paid"], driver={"kind": "scripted", "actions": ACTIONS}, tools=[LOOK, PAY])
    return who


def use_cases(world: World, folder: Path, lease_s: float = LONG_S) -> Acting:
    return acting(world.store, folder_content(folder), tally_tools(folder, Fate(0, -1)), lease_s)


@contextmanager
def working(using: Acting, *drivers: Driver) -> Iterator[Worker]:
    worker = Worker(using, drivers or [ScriptedDriver()], 0.01)
    worker.start()
    try:
        yield worker
    finally:
        assert worker.stop(PATIENCE_S)


def ended(world: World, run: Run) -> Run:
    wait_until(lambda: stored(world.store, run.id).ended, "the run ends")
    return stored(world.store, run.id)


def trail(world: World, run: Run) -> list[Body]:
    assert fault_of(world.store, run.id) is None
    with world.store.reading() as work:
        return [step.read() for step in work.runs.trail(run.id)]


def url_of(world: World) -> str:
    return world.store._engine.url.render_as_string(hide_password=False)


def paid(folder: Path) -> int:
    tally = folder / "tally"
    return len(tally.read_text(encoding="utf-8").splitlines()) if tally.exists() else 0


class Held(Driver):
    """A driver that stops in the middle of its run until it is let go, then calls a tool."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.failures: list[Exception] = []

    @property
    def kind(self) -> DriverKind:
        return DriverKind.SCRIPTED

    @override
    def drive(self, task: Task, hands: Hands) -> Answer:
        self.reached.set()
        assert self.go_on.wait(PATIENCE_S)
        try:
            hands.call(PAY, {"n": 1})
        except Exception as error:
            self.failures.append(error)
            raise
        return Answer(summary="Paid.")


def test_a_queued_run_is_cancelled_at_once_and_its_trail_says_by_whom(everywhere: World, ana: Access) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    cancelled = everywhere.cases.cancel_run(ana, run.id)
    assert (cancelled.state, cancelled.finished_at is not None) == (RunState.CANCELLED, True)
    assert trail(everywhere, run)[-1] == Closing(state=RunState.CANCELLED, by="acme:ana")
    assert everywhere.cases.cancel_run(ana, run.id) == cancelled
    with everywhere.store.reading() as work:
        assert not work.runs.leasable(list(DriverKind))


def test_a_run_that_a_worker_holds_is_cancelled_before_its_next_call(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run, driver = everywhere.cases.open_run(ana, ref(DEVELOPER)), Held()
    with working(use_cases(everywhere, tmp_path), driver):
        assert driver.reached.wait(PATIENCE_S)
        asked = everywhere.cases.cancel_run(ana, run.id)
        assert (asked.state, asked.cancel_asked_at is not None) == (RunState.RUNNING, True)
        driver.go_on.set()
        assert ended(everywhere, run).state is RunState.CANCELLED
    assert paid(tmp_path) == 0
    assert [type(body) for body in trail(everywhere, run)[1:]] == [Closing]


def test_a_run_to_be_cancelled_whose_worker_died_is_cancelled_by_the_next(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    leased(everywhere.store, "dead", lease_s=0)
    everywhere.cases.cancel_run(ana, run.id)
    with working(use_cases(everywhere, tmp_path)):
        assert ended(everywhere, run).state is RunState.CANCELLED
    assert paid(tmp_path) == 0


def test_only_who_may_publish_the_agent_cancels_its_runs(everywhere: World, ana: Access) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    with pytest.raises(AccessDenied):
        everywhere.cases.cancel_run(everywhere.person("acme:bo", "viewer=acme"), run.id)
    for stranger in (everywhere.person("globex:eve", "author=globex"), everywhere.person("acme:fin", "author=acme/finance")):
        with pytest.raises(NotFound):
            everywhere.cases.cancel_run(stranger, run.id)
    with pytest.raises(NotFound):
        everywhere.cases.cancel_run(ana, run.id + 1)
    with pytest.raises(Unauthenticated):
        everywhere.cases.cancel_run(Access(None, ana.grants), run.id)
    assert stored(everywhere.store, run.id).state is RunState.QUEUED


def test_a_run_that_has_finished_is_not_cancelled(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    with working(use_cases(everywhere, tmp_path)):
        ended(everywhere, run)
    with pytest.raises(Conflict, match="finished already"):
        everywhere.cases.cancel_run(ana, run.id)
    assert stored(everywhere.store, run.id).cancel_asked_at is None


def test_a_worker_that_was_taken_for_dead_can_do_nothing_more(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run, driver = everywhere.cases.open_run(ana, ref(DEVELOPER)), Held()
    with working(use_cases(everywhere, tmp_path), driver):
        assert driver.reached.wait(PATIENCE_S)
        execute(url_of(everywhere), f"UPDATE runs SET lease_until = 0 WHERE id = {run.id}")
        with working(use_cases(everywhere, tmp_path)):
            assert ended(everywhere, run).state is RunState.FINISHED
        driver.go_on.set()
        wait_until(lambda: bool(driver.failures), "the first worker finds out")
    assert isinstance(driver.failures[0], LeaseLost)
    assert paid(tmp_path) == 1
    assert [body for body in trail(everywhere, run) if isinstance(body, TakenOver)] == [TakenOver(attempt=2)]


def test_a_lease_is_renewed_as_long_as_its_worker_lives(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run, driver = everywhere.cases.open_run(ana, ref(DEVELOPER)), Held()

    def until() -> int:
        with everywhere.store._engine.connect() as connection:
            return int(connection.exec_driver_sql(f"SELECT lease_until FROM runs WHERE id = {run.id}").scalar_one())

    with working(use_cases(everywhere, tmp_path, lease_s=0.3), driver):
        assert driver.reached.wait(PATIENCE_S)
        first = until()
        wait_until(lambda: until() >= first + 300, "the lease was renewed for longer than it once was")
        driver.go_on.set()
        assert ended(everywhere, run).state is RunState.FINISHED


def test_a_worker_that_has_to_end_gives_its_run_back_in_order(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run, driver = everywhere.cases.open_run(ana, ref(DEVELOPER)), Held()
    worker = Worker(use_cases(everywhere, tmp_path), [driver], 0.01)
    worker.start()
    assert driver.reached.wait(PATIENCE_S)
    assert not worker.stop(0)
    given = stored(everywhere.store, run.id)
    assert (given.state, given.owner, given.attempts) == (RunState.QUEUED, None, 0)
    driver.go_on.set()
    assert worker.stop(PATIENCE_S)
    with working(use_cases(everywhere, tmp_path)):
        assert ended(everywhere, run).state is RunState.FINISHED
    assert (paid(tmp_path), isinstance(driver.failures[0], LeaseLost)) == (1, True)


def test_a_run_that_waited_goes_on_with_the_call_that_it_waited_with(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    held = leased(everywhere.store)
    call = ToolCall(call=1, tool=PAY, arguments=folder_content(tmp_path).put(b'{"n":1}'))
    with everywhere.store.writing() as work:
        held = work.runs.append(held, [call, GateRuling(call=1, ruling=Ruling.NEEDS_APPROVAL, rule="autonomy")], 2)
        waiting = work.runs.wait(held, Waiting(waiting_for=WaitingFor.APPROVAL, call=1), 3)
    using = use_cases(everywhere, tmp_path)
    assert using.lease([DriverKind.SCRIPTED], "w") is None
    with everywhere.store.writing() as work:
        work.runs.resume(waiting, Resumed(waited_for=WaitingFor.APPROVAL), 4)
    with working(using):
        assert ended(everywhere, run).state is RunState.FINISHED
    # It pays although that is no read: the trail says that nothing of it was begun.
    assert paid(tmp_path) == 1
    results = [body for body in trail(everywhere, run) if isinstance(body, ToolResult)]
    assert [(body.call, body.result) for body in results] == [(1, ResultKind.DONE)]


def test_what_a_past_call_gave_is_told_to_the_driver_that_takes_the_run_up_again(
    everywhere: World, ana: Access, tmp_path: Path
) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    held, content = leased(everywhere.store, lease_s=0), folder_content(tmp_path)
    asked = ToolCall(call=1, tool=PAY, arguments=content.put(b'{"n":1}'))
    told = ToolResult(call=1, result=ResultKind.DONE, content=content.put(b"paid before"))
    with everywhere.store.writing() as work:
        work.runs.append(held, [asked, GateRuling(call=1, ruling=Ruling.ALLOW, rule="capability"), told], 2)
    heard: list[str] = []

    class Asks(Held):
        @override
        def drive(self, task: Task, hands: Hands) -> Answer:
            heard.extend(hands.call(PAY, {"n": n}).text for n in (1, 2))
            return Answer(summary="Paid.")

    with working(use_cases(everywhere, tmp_path), Asks()):
        assert ended(everywhere, run).state is RunState.FINISHED
    assert (heard, paid(tmp_path)) == (["paid before", "pay gave 2"], 1)


def test_a_driver_that_does_something_else_than_the_trail_has_fails_its_run(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    held = leased(everywhere.store, lease_s=0)
    with everywhere.store.writing() as work:
        work.runs.append(held, [ToolCall(call=1, tool=LOOK, arguments=folder_content(tmp_path).put(b'{"n":1}'))], 2)
    with working(use_cases(everywhere, tmp_path)):
        assert ended(everywhere, run).state is RunState.FAILED
    closing = trail(everywhere, run)[-1]
    assert isinstance(closing, Closing)
    assert closing.reason == "call 1 of this run was another one when it was first made"
    assert paid(tmp_path) == 0


def test_nothing_follows_from_a_trail_that_was_changed(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))
    with everywhere.store.reading() as work:
        [opening] = work.runs.trail(run.id)
    sqlite = everywhere.store._engine.dialect.name == "sqlite"
    drop = "DROP TRIGGER keep_steps_update" if sqlite else "ALTER TABLE steps DISABLE TRIGGER USER"
    execute(url_of(everywhere), drop, f"UPDATE steps SET at = at + 1 WHERE run_id = {run.id}")
    with working(use_cases(everywhere, tmp_path)):
        assert ended(everywhere, run).state is RunState.FAILED
    _, steps, fault = everywhere.cases.verify_trail(ana, run.id)
    assert fault is not None
    assert (fault.number, opening.kind, steps[-1].kind) == (1, StepKind.OPENING, StepKind.CLOSING)
    closing = steps[-1].read()
    assert isinstance(closing, Closing)
    assert closing.reason == "its trail is damaged: step 1 was changed after it was written"
    assert paid(tmp_path) == 0


def test_a_run_whose_input_is_damaged_fails_and_says_so(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER), "Pay the bill.")
    [file] = [path for path in (tmp_path / "content").rglob("*") if path.is_file()]
    file.write_bytes(b"Pay me.")
    with working(use_cases(everywhere, tmp_path)):
        assert ended(everywhere, run).state is RunState.FAILED
    closing = trail(everywhere, run)[-1]
    assert isinstance(closing, Closing)
    assert "lost or damaged" in (closing.reason or "")
    assert paid(tmp_path) == 0


def test_a_fault_of_ours_in_one_run_does_not_end_the_work_on_others(everywhere: World, ana: Access, tmp_path: Path) -> None:
    faulty, fine = (everywhere.cases.open_run(ana, ref(DEVELOPER)) for _ in range(2))

    class Faulty(Held):
        @override
        def drive(self, task: Task, hands: Hands) -> Answer:
            if task.run.id == faulty.id:
                raise ZeroDivisionError
            return ScriptedDriver().drive(task, hands)

    with working(use_cases(everywhere, tmp_path), Faulty()):
        assert ended(everywhere, fine).state is RunState.FINISHED
        assert stored(everywhere.store, faulty.id).state is RunState.RUNNING


def test_a_script_that_says_that_it_fails_is_no_reason_to_try_again(everywhere: World, ana: Access, tmp_path: Path) -> None:
    run = everywhere.cases.open_run(ana, ref(DEVELOPER))

    class Fails(Held):
        @override
        def drive(self, task: Task, hands: Hands) -> Answer:
            raise RunFailed("There is no token.")

    with working(use_cases(everywhere, tmp_path), Fails()):
        assert ended(everywhere, run).attempts == 1
