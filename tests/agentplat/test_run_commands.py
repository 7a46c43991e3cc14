"""agentplat run and trail against both processes and their worker, as somebody at a terminal uses them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.agentplat.processes import Done, Server, command, up
from tests.agentplat.world import manifest, wait_until

DEVELOPER = "acme/platform:developer"
ACTIONS = [{"call": "delete_everything"}, {"finish": {"summary": "Mended.", "artifacts": {"patch": "+1"}}}]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Both processes and the worker, on one data folder."""
    folder = tmp_path_factory.mktemp("up")
    with up(folder, "--poll-interval-s", "0.05", "--run-lease-s", "1") as found:
        file = folder / "developer.yaml"
        file.write_text(manifest(DEVELOPER, ["code"], driver={"kind": "scripted", "actions": ACTIONS}), encoding="utf-8")
        assert ask(found, "publish", file, cwd=folder).status == 0
        yield found


def ask(running: Server, *arguments: object, cwd: Path) -> Done:
    return command(*arguments, "--server", running.url, "--token-file", running.ready["token_file"], cwd=cwd)


def ended(running: Server, run: int, cwd: Path) -> dict[str, Any]:
    """The run, once it has ended."""

    def now() -> dict[str, Any]:
        found: dict[str, Any] = ask(running, "run", "show", run, "--format", "json", cwd=cwd).answers[0]
        return found

    wait_until(lambda: now()["finished_at"] is not None, "the run ends")
    return now()


def opened(running: Server, cwd: Path, *more: object, agent: str = DEVELOPER) -> int:
    done = ask(running, "run", "open", agent, *more, "--format", "json", cwd=cwd)
    assert (done.status, done.err) == (0, "")
    return int(done.answers[0]["run"])


@pytest.mark.promise("R-1", "O-2")
def test_a_run_is_opened_carried_by_the_worker_of_up_and_shown(running: Server, tmp_path: Path) -> None:
    (tmp_path / "task.txt").write_text("Mend the build.", encoding="utf-8")
    run = opened(running, tmp_path, "--input-file", "task.txt")
    assert ended(running, run, tmp_path)["state"] == "finished"
    assert ask(running, "run", "show", run, cwd=tmp_path).out == f"Run {run} of {DEVELOPER}, version 1: finished\n"
    assert ask(running, "run", "show", run, "--language", "pt", cwd=tmp_path).out.endswith("versão 1: finalizada\n")
    listed = ask(running, "run", "list", "--limit", 1000, "--format", "json", cwd=tmp_path)
    assert run in [found["run"] for found in listed.answers]
    assert ask(running, "run", "list", "--before", run, "--limit", 1, cwd=tmp_path).status == 0


@pytest.mark.promise("R-2", "O-2")
def test_a_trail_is_shown_verified_and_exported(running: Server, tmp_path: Path) -> None:
    run = opened(running, tmp_path, "--input", "secret words")
    steps = ended(running, run, tmp_path)["steps"]
    done = ask(running, "trail", "show", run, cwd=tmp_path)
    texts = [line.strip().split("  ", 2)[2] for line in done.out.splitlines()]
    assert texts == [
        f"Opened by *:admin for {DEVELOPER}, version 1",
        "Call 1: delete_everything",
        "The Gate stops call 1 (rule capability): this run has no tool 'delete_everything'",
        "Call 1 is refused: this run has no tool 'delete_everything'",
        "Published the artifact final_answer",
        "Published the artifact patch",
        "Finished; events published: code",
    ]
    intact = ask(running, "trail", "verify", run, cwd=tmp_path)
    assert (intact.status, intact.out) == (0, f"The trail of run {run} is as it was written; steps: {steps}\n")
    exported = ask(running, "trail", "export", run, "--out", "trail.jsonl", "--format", "json", cwd=tmp_path)
    assert exported.answers == [{"run": run, "steps": steps, "file": "trail.jsonl"}]
    text = (tmp_path / "trail.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["previous"] for line in lines[1:]] == [line["hash"] for line in lines[:-1]]
    assert "secret" not in text
    again = ask(running, "trail", "export", run, "--out", "trail.jsonl", cwd=tmp_path)
    assert (again.status, "out: cannot be written: File exists" in again.err) == (2, True)
    shown = ask(running, "trail", "show", run, "--format", "json", cwd=tmp_path).answers
    assert [{name: value for name, value in step.items() if name != "text"} for step in shown] == lines


@pytest.mark.promise("R-2", "O-2")
def test_a_changed_trail_ends_verification_with_findings(running: Server, tmp_path: Path) -> None:
    run = opened(running, tmp_path)
    ended(running, run, tmp_path)
    database = Path(running.ready["token_file"]).parent / "agentplat.db"
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        [trigger] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'keep_steps_update'").fetchone()
        connection.execute("DROP TRIGGER keep_steps_update")
        connection.execute("UPDATE steps SET at = at + 1 WHERE run_id = ? AND number = 2", (run,))
        connection.execute(trigger)
    found = ask(running, "trail", "verify", run, "--language", "pt", cwd=tmp_path)
    text = f"A trilha da run {run} está danificada no passo 2: foi alterado depois de escrito\n"
    assert (found.status, found.out) == (1, text)
    assert ask(running, "trail", "verify", run, "--format", "json", cwd=tmp_path).answers[0]["fault"]["number"] == 2


@pytest.mark.promise("R-1", "O-2")
def test_a_run_that_nobody_carries_yet_is_cancelled(running: Server, tmp_path: Path) -> None:
    file = tmp_path / "outside.yaml"
    file.write_text(manifest("acme:outside", driver={"kind": "external"}), encoding="utf-8")
    assert ask(running, "publish", file, cwd=tmp_path).status == 0
    run = opened(running, tmp_path, agent="acme:outside")
    assert ask(running, "run", "cancel", run, cwd=tmp_path).out == f"Run {run} of acme:outside, version 1: cancelled\n"
    assert ask(running, "trail", "show", run, cwd=tmp_path).out.splitlines()[-1].endswith("Cancelled by *:admin")


@pytest.mark.promise("O-2")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "show", 10**9], "there is no such thing, or it is outside your access"),
        (["run", "cancel", 10**9], "there is no such thing"),
        (["trail", "show", 10**9], "there is no such thing"),
        (["trail", "verify", 10**9], "there is no such thing"),
        (["trail", "export", 10**9, "--out", "x"], "there is no such thing"),
        (["run", "open", "acme:nobody"], "there is no such thing"),
        (["run", "open", DEVELOPER, "--input-file", "missing"], "input-file: cannot be read"),
        (["run", "open", DEVELOPER, "--input", "a", "--input-file", "b"], "give one of --input and --input-file"),
        (["run", "show", 0], "greater than or equal to 1"),
    ],
)
def test_wrong_use_ends_with_status_2(running: Server, tmp_path: Path, arguments: list[object], told: str) -> None:
    done = ask(running, *arguments, cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert not (tmp_path / "x").exists()


@pytest.mark.promise("R-4")
def test_a_worker_of_up_that_was_killed_is_started_again_and_takes_runs(running: Server, tmp_path: Path) -> None:
    def worker() -> psutil.Process | None:
        found = [child for child in psutil.Process(running.process.pid).children() if "worker" in child.cmdline()]
        return found[0] if found else None

    first = worker()
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    run = opened(running, tmp_path)
    assert ended(running, run, tmp_path)["state"] == "finished"
    second = worker()
    assert second is not None
    assert second.pid != first.pid
    assert ("a child ended", "the worker") in [(line.get("event"), line.get("child")) for line in running.log()]
