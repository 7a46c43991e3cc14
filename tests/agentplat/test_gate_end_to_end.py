"""Approvals and ceilings over worker processes: a run waits with nobody holding it, and another process carries it on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agentplat.domain.budgets import Unit
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.steps import GateRuling, ToolCall, ToolResult
from agentplat.usecases.open_run import OpenRun

from tests.agentplat.processes import END_S, environment
from tests.agentplat.run_records import fault_of, folder_content, stored
from tests.agentplat.tool_records import Shop
from tests.agentplat.workers import worker
from tests.agentplat.world import World, ref, wait_until

DEVELOPER = "acme/platform:developer"
FINISH = {"finish": {"summary": "done"}}


@contextmanager
def tool_worker(acme: World, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker with the tests' tool; killed at the end, in whatever it does."""
    url = acme.store._engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.agentplat.tool_worker", url, str(folder / "content"), str(folder / "done")]
    with (
        (folder / "worker.log").open("a", encoding="utf-8") as log,
        subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=log, encoding="utf-8") as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
            process.wait(END_S)


def _until(acme: World, run: Run, state: RunState) -> Run:
    wait_until(lambda: stored(acme.store, run.id).state is state, f"run {run.id} is {state}")
    return stored(acme.store, run.id)


def _opened(acme: World, folder: Path, *actions: object, **spec: object) -> tuple[Shop, Run]:
    root = acme.person("acme:ana", "author=*", "viewer=*", "approver=*", "admin=*")
    acme.publish(root, DEVELOPER, driver={"kind": "scripted", "actions": [*actions, FINISH]}, **spec)
    content = folder_content(folder)
    return Shop(store=acme.store, content=content, tools={}), OpenRun(store=acme.store, content=content)(root, ref(DEVELOPER))


@pytest.mark.promise("A-12", "A-14")
def test_what_a_person_approved_is_done_once_by_another_process_than_the_one_that_asked(acme: World, tmp_path: Path) -> None:
    actions = [{"call": "append", "arguments": {"text": text}} for text in ("one", "one", "two")]
    shop, run = _opened(acme, tmp_path, *actions, tools=["append"])
    approver = acme.person("acme:ana", "approver=*")
    approvals = acme.cases.governing.approvals
    done = tmp_path / "done"
    for asked in ("one", "two"):
        with tool_worker(acme, tmp_path):
            assert _until(acme, run, RunState.WAITING).waiting_for is WaitingFor.APPROVAL
        assert asked not in (done.read_text(encoding="utf-8").split() if done.exists() else [])
        [question] = approvals.page(approver, undecided=True, before=None, size=10)
        shown = approvals.one(approver, question.approval.id)
        assert shown.order is not None
        assert shown.order["arguments"] == {"text": asked}
        approvals.decide(approver, question.approval.id, question.approval.digest, granted=True)
    with tool_worker(acme, tmp_path):
        run = _until(acme, run, RunState.FINISHED)
    assert done.read_text(encoding="utf-8") == "one\ntwo\n"
    steps = shop.trail(run)
    rulings = [(step.call, step.ruling.value) for step in steps if isinstance(step, GateRuling)]
    assert rulings == [(1, "needs_approval"), (1, "allow"), (2, "duplicate"), (3, "needs_approval"), (3, "allow")]
    assert [step.call for step in steps if isinstance(step, ToolCall)] == [1, 2, 3]
    assert [step.call for step in steps if isinstance(step, ToolResult)] == [1, 2, 3]
    assert fault_of(acme.store, run.id) is None


@pytest.mark.promise("A-15", "A-16")
def test_a_run_at_its_ceiling_waits_and_a_worker_carries_it_on_when_it_is_raised(acme: World, tmp_path: Path) -> None:
    read = {"call": "read_artifact", "arguments": {"name": "x"}}
    root = acme.person("acme:root", "author=*", "viewer=*", "admin=*")
    acme.publish(root, "acme/platform:source", [{"event": "found", "artifacts": ["x"]}], **_script({"finish": _answer()}))
    acme.publish(root, DEVELOPER, [], ["found"], **_script(read, read, read, FINISH), budget={"tool_calls": 2})
    content = folder_content(tmp_path)
    shop = Shop(store=acme.store, content=content, tools={})
    source = OpenRun(store=acme.store, content=content)(root, ref("acme/platform:source"))
    with worker(acme.store, tmp_path):
        started = shop.start(_until(acme, source, RunState.FINISHED), "found", ref(DEVELOPER))
        assert isinstance(started, Run)
        assert _until(acme, started, RunState.WAITING).waiting_for is WaitingFor.BUDGET
        budgets = acme.cases.governing.budgets
        budgets.set(root, started.id, Unit.TOOL_CALLS, 3)
        budgets.resume(root, started.id)
        run = _until(acme, started, RunState.FINISHED)
    steps = shop.trail(run)
    assert [step.call for step in steps if isinstance(step, ToolResult)] == [1, 2, 3]
    assert [step.ruling.value for step in steps if isinstance(step, GateRuling)] == ["allow", "allow", "block", "allow"]
    assert fault_of(acme.store, run.id) is None


def _script(*actions: object) -> dict[str, object]:
    return {"driver": {"kind": "scripted", "actions": list(actions)}}


def _answer() -> dict[str, object]:
    return {"summary": "s", "artifacts": {"x": "content"}}
