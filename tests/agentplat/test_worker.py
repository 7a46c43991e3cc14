"""A worker as a process of its own carries runs from their opening to their end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.artifacts import FINAL_ANSWER
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound
from agentplat.domain.labels import texts
from agentplat.domain.runs import Run, RunState
from agentplat.domain.steps import Body, Closing, GateRuling, Opening, ResultKind, Ruling, StepKind, ToolCall, ToolResult
from agentplat.usecases.finish_run import MOST_ARTIFACTS
from agentplat.usecases.open_run import MOST_INPUT_BYTES, OpenRun
from agentplat.usecases.verify_trail import VerifyTrail

from tests.agentplat.processes import END_S, environment
from tests.agentplat.run_records import folder_content, stored
from tests.agentplat.world import World, ref, wait_until

DEVELOPER = "acme/platform:developer"
FINISH = {"summary": "Triaged.", "artifacts": {"cause": "The token has expired.", "final_answer": "something else", "empty": ""}}


def script(*actions: Mapping[str, Any]) -> dict[str, Any]:
    return {"driver": {"kind": "scripted", "actions": list(actions)}}


@contextmanager
def worker_process(acme: World, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker that has told that it is ready, and ends in order."""
    url = acme.store._engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "agentplat", "worker", "--database-url", url, "--content", str(folder / "content")]
    with (
        (folder / "worker.log").open("a", encoding="utf-8") as log,
        subprocess.Popen(
            [*command, "--poll-interval-s", "0.02"], env=environment(), stdout=subprocess.PIPE, stderr=log, encoding="utf-8"
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "agentplat takes runs\n"
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(END_S) == 0
        finally:
            if process.poll() is None:
                process.kill()


def _steps(acme: World, run: Run) -> list[Body]:
    _, trail, fault = VerifyTrail(store=acme.store)(acme.person("acme:ana", "viewer=acme"), run.id)
    assert fault is None
    return [step.read() for step in trail]


def _ended(acme: World, run: Run) -> Run:
    wait_until(lambda: stored(acme.store, run.id).ended, "the run ends")
    return stored(acme.store, run.id)


@pytest.mark.promise("R-1", "R-2", "R-3")
def test_a_person_opens_a_run_and_a_worker_carries_it_to_its_end(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    content = folder_content(tmp_path)
    acme.publish(ana, DEVELOPER, ["incident.triaged"], **script({"call": "delete_everything"}, {"finish": FINISH}))
    open_run = OpenRun(store=acme.store, content=content)
    run = open_run(ana, ref(DEVELOPER), "Look at the alert.")
    assert run.state is RunState.QUEUED
    with worker_process(acme, tmp_path):
        run = _ended(acme, run)
    assert (run.state, run.attempts) == (RunState.FINISHED, 1)
    opening, call, ruling, result, *published, closing = _steps(acme, run)
    assert isinstance(opening, Opening)
    assert (opening.opener, opening.on_behalf_of, opening.version, opening.hop) == ("acme:ana", "acme:ana", 1, 0)
    assert opening.input is not None
    assert content.get(opening.input) == b"Look at the alert."
    assert isinstance(ruling, GateRuling)
    assert (ruling.ruling, ruling.rule) == (Ruling.BLOCK, "capability")
    assert closing == Closing(state=RunState.FINISHED, published=("incident.triaged",), dropped=(FINAL_ANSWER,))
    with acme.store.reading() as work:
        artifacts = work.artifacts.of_run(run.id)
        trail = "".join(step.body for step in work.runs.trail(run.id))
    kept = {name: content.get(artifact.blob).decode() for name, artifact in artifacts.items()}
    assert kept == {"cause": "The token has expired.", "empty": "", FINAL_ANSWER: "Triaged."}
    assert {texts(artifact.labels) for artifact in artifacts.values()} == {("area:acme/platform",)}
    assert len(published) == 3
    for secret in ("expired", "alert", "something else", "Triaged"):
        assert secret not in trail
    assert (call, result) == (
        ToolCall(call=1, tool="delete_everything", arguments=content.put(b"{}")),
        ToolResult(call=1, result=ResultKind.REFUSED, reason="this run has no tool 'delete_everything'"),
    )


@pytest.mark.promise("R-1")
def test_a_run_that_its_script_fails_or_whose_answer_is_wrong_is_failed_and_says_why(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    open_run = OpenRun(store=acme.store, content=folder_content(tmp_path))
    runs = []
    too_many = {f"part {i}": "x" for i in range(MOST_ARTIFACTS + 1)}
    for action in ({"fail": "There is no token."}, {"finish": {"summary": "s", "artifacts": too_many}}):
        acme.publish(ana, DEVELOPER, ["done"], **script(action))
        runs.append(open_run(ana, ref(DEVELOPER)))
    with worker_process(acme, tmp_path):
        ended = [_ended(acme, run) for run in runs]
    assert [run.state for run in ended] == [RunState.FAILED] * 2
    reasons = []
    for run in ended:
        closing = _steps(acme, run)[-1]
        assert isinstance(closing, Closing)
        assert closing.published == ()
        reasons.append(closing.reason or "")
    assert reasons[0] == "There is no token."
    assert reasons[1] == f"artifacts: are too many; publish at most {MOST_ARTIFACTS}"
    with acme.store.reading() as work:
        assert work.artifacts.of_run(runs[1].id) == {}


def test_a_version_whose_script_cannot_be_carried_out_is_not_published(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    with pytest.raises(InvalidInput) as refusal:
        acme.publish(ana, DEVELOPER, **script({"jump": 1}, {"finish": {}}))
    assert [(v.field, v.place) for v in refusal.value.violations] == [
        ("spec.driver.actions[0]", "test.yaml:1"),
        ("spec.driver.actions[1].finish.summary", "test.yaml:1"),
    ]
    acme.publish(ana, DEVELOPER, driver={"kind": "external", "actions": [{"jump": 1}]})


def test_a_run_executes_the_version_that_was_published_when_it_was_opened(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    open_run = OpenRun(store=acme.store, content=folder_content(tmp_path))
    acme.publish(ana, DEVELOPER, ["old"], **script({"finish": {"summary": "old"}}))
    run = open_run(ana, ref(DEVELOPER))
    acme.publish(ana, DEVELOPER, ["new"], **script({"finish": {"summary": "new"}}))
    with worker_process(acme, tmp_path):
        run = _ended(acme, run)
    closing = _steps(acme, run)[-1]
    assert closing == Closing(state=RunState.FINISHED, published=("old",))
    assert run.number == 1


@pytest.mark.promise("R-1")
def test_who_may_not_publish_an_agent_can_not_open_its_runs(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    acme.publish(ana, DEVELOPER)
    open_run = OpenRun(store=acme.store, content=folder_content(tmp_path))
    with pytest.raises(AccessDenied):
        open_run(acme.person("acme:bo", "viewer=acme"), ref(DEVELOPER))
    stranger = acme.person("globex:eve", "author=globex")
    with pytest.raises(NotFound):
        open_run(stranger, ref(DEVELOPER))
    with pytest.raises(NotFound):
        open_run(ana, ref("acme/platform:nobody"))
    with pytest.raises(InvalidInput, match="input"):
        open_run(ana, ref(DEVELOPER), "x" * (MOST_INPUT_BYTES + 1))
    acme.cases.retire_agent(ana, ref(DEVELOPER))
    with pytest.raises(Conflict, match="no published version"):
        open_run(ana, ref(DEVELOPER))
    assert not (tmp_path / "content").exists()
    with acme.store.reading() as work:
        assert work.runs.page(["*"], None, 10) == []
    with pytest.raises(NotFound):
        VerifyTrail(store=acme.store)(stranger, 1)


@pytest.mark.promise("R-2")
def test_a_step_that_was_changed_in_the_database_is_found(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    acme.publish(ana, DEVELOPER, **script({"call": "look"}, {"finish": {"summary": "s"}}))
    run = OpenRun(store=acme.store, content=folder_content(tmp_path))(ana, ref(DEVELOPER))
    with worker_process(acme, tmp_path):
        _ended(acme, run)
    with acme.store._engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER keep_steps_update")
        connection.exec_driver_sql("UPDATE steps SET body = replace(body, 'block', 'allow') WHERE kind = 'gate_ruling'")
    _, trail, fault = VerifyTrail(store=acme.store)(ana, run.id)
    assert fault is not None
    assert trail[fault.number - 1].kind is StepKind.GATE_RULING
