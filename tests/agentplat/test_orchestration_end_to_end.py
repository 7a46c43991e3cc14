"""A run proposes, a person approves, a pipeline runs: `agentplat up` and its commands, with the worker killed on the way."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.spaces import Workplace
from agentplat.domain.tickets import Status
from agentplat.store.port import Work
from agentplat.store.sql import SqlStore, open_store

from tests.agentplat.offices import finish, submit
from tests.agentplat.processes import Done, Server, command, up
from tests.agentplat.proposals import proposal, sub_ticket
from tests.agentplat.run_records import new_run
from tests.agentplat.world import manifest, ref, wait_until

SCOPE = "acme/platform"
ROLES: dict[str, Any] = {
    "writer": f"{SCOPE}:writer",
    "newcomer": json.loads(manifest(f"{SCOPE}:newcomer", driver={"kind": "scripted", "actions": [finish("drafted")]})),
}
PROPOSAL = proposal(
    [sub_ticket("a", "newcomer"), sub_ticket("b", "newcomer"), sub_ticket("c", "newcomer", ["a", "b"], retries=3)],
    ROLES,
    "newcomer",
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """All processes on one data folder, with three published agents."""
    folder = tmp_path_factory.mktemp("up")
    with up(folder, "--poll-interval-s", "0.05", "--run-lease-s", "1") as found:
        scripts: dict[str, list[Any]] = {
            "writer": [submit("written"), finish("written")],
            "planner": [{"call": "propose_orchestration", "arguments": {"proposal": PROPOSAL}}, finish("proposed")],
        }
        drivers = {name: {"kind": "scripted", "actions": actions} for name, actions in scripts.items()}
        for name, driver in {**drivers, "waiter": {"kind": "external"}}.items():
            file = folder / f"{name}.yaml"
            file.write_text(manifest(f"{SCOPE}:{name}", driver=driver), encoding="utf-8")
            assert ask(found, "publish", file, cwd=folder).status == 0
        yield found


@pytest.fixture(scope="module")
def store(running: Server) -> Iterator[SqlStore]:
    """The database of the running processes."""
    database = Path(running.ready["token_file"]).parent / "agentplat.db"
    with closing(open_store(f"sqlite:///{database}")) as opened:
        yield opened


def ask(running: Server, *arguments: object, cwd: Path) -> Done:
    return command(*arguments, "--server", running.url, "--token-file", running.ready["token_file"], cwd=cwd)


def answers(running: Server, *arguments: object, cwd: Path) -> list[Any]:
    done = ask(running, *arguments, "--format", "json", cwd=cwd)
    assert (done.status, done.err) == (0, "")
    return done.answers


def _space(work: Work, name: str) -> tuple[int, int]:
    [admin] = [person for person in work.people.page(["*"], None, 10) if work.people.grants(person)]
    workspace = work.workspaces.add(SCOPE, name, admin, 1)
    assert workspace is not None
    space = work.spaces.add(workspace.id, "hall", Mode.ORCHESTRATE, admin, 1)
    assert space is not None
    return workspace.id, space.id


def _planned(store: SqlStore, name: str) -> tuple[Run, int]:
    """A run of the planner in a new space, for the worker to take."""
    with store.writing() as work:
        workspace, space = _space(work, name)
        run = work.runs.open(new_run(work, ref(f"{SCOPE}:planner")), 1)
        assert run is not None
        work.spaces.place(run.id, Workplace(workspace_id=workspace, space_id=space, mode=Mode.ORCHESTRATE))
    return run, space


def _kill_worker(running: Server) -> None:
    """Kill the worker of `up`, as the system would that has no memory left."""
    for child in psutil.Process(running.process.pid).children():
        if "worker" in child.cmdline():
            os.kill(child.pid, signal.SIGKILL)


@pytest.mark.promise("D-14", "D-15", "D-16", "O-2")
def test_what_a_run_proposed_and_a_person_approved_runs_to_its_end_although_the_worker_is_killed(
    running: Server, store: SqlStore, tmp_path: Path
) -> None:
    run, space = _planned(store, "first")
    wait_until(lambda: bool(answers(running, "proposal", "list", "--space", space, cwd=tmp_path)), "the run proposes")
    [listed] = answers(running, "proposal", "list", "--space", space, cwd=tmp_path)
    [shown] = answers(running, "proposal", "show", listed["proposal"], cwd=tmp_path)
    assert (shown["state"], shown["run"], shown["person"]) == ("proposed", run.id, None)
    decide = ("proposal", "approve", listed["proposal"], "--revision", 1, "--digest")
    stale = ask(running, *decide, "0" * 64, cwd=tmp_path)
    assert (stale.status, "another digest than what was seen" in stale.err) == (2, True)
    [approved] = answers(running, *decide, shown["digest"], cwd=tmp_path)
    assert [hire["agent"] for hire in approved["hires"]] == [f"{SCOPE}:newcomer"]

    def now() -> Any:
        return answers(running, "pipeline", "show", approved["pipeline"], cwd=tmp_path)[0]

    wait_until(lambda: any(step["runs"] for step in now()["steps"]), "the pipeline begins")
    _kill_worker(running)
    wait_until(lambda: now()["state"] != "running", "the pipeline ends")
    ended = now()
    assert (ended["state"], ended["reason"], ended["source_run"]) == ("finished", None, run.id)
    assert [step["state"] for step in ended["steps"]] == ["finished"] * 5
    with store.reading() as work:
        opened = [work.runs.find(run_id) for step in ended["steps"] for run_id in step["runs"]]
        assert all(found is not None and (found.hop, found.chain) == (0, run.id) for found in opened)
        assert len(opened) == sum(step["attempts"] for step in ended["steps"])
        assert not [ticket for workspace in (1, 2) for ticket in work.tickets.page(workspace, list(Status), None, 10)]
    assert "finished" in ask(running, "pipeline", "list", cwd=tmp_path).out
    assert "synthesis  finished" in ask(running, "pipeline", "show", approved["pipeline"], cwd=tmp_path).out


@pytest.mark.promise("D-15", "D-16", "O-2")
def test_people_propose_revise_decline_and_cancel_from_the_command_line(running: Server, store: SqlStore, tmp_path: Path) -> None:
    with store.writing() as work:
        _, space = _space(work, "second")
    values = proposal([sub_ticket("a", "writer")], {"writer": f"{SCOPE}:writer"})
    (tmp_path / "offer.json").write_text(json.dumps(values), encoding="utf-8")
    [made] = answers(running, "proposal", "make", "offer.json", "--space", space, cwd=tmp_path)
    [revised] = answers(running, "proposal", "revise", made["proposal"], "offer.json", cwd=tmp_path)
    assert (revised["revision"], revised["digest"]) == (2, made["digest"])
    seen = ("--revision", 2, "--digest", revised["digest"])
    [declined] = answers(running, "proposal", "decline", made["proposal"], *seen, "--reason", "too dear", cwd=tmp_path)
    assert (declined["state"], declined["reason"]) == ("declined", "too dear")
    (tmp_path / "wrong.json").write_text("{", encoding="utf-8")
    wrong = ask(running, "proposal", "make", "wrong.json", "--space", space, cwd=tmp_path)
    assert (wrong.status, wrong.err.startswith("error: file: cannot be read")) == (2, True)
    values = proposal([sub_ticket("a", "waiter")], {"waiter": f"{SCOPE}:waiter"})
    (tmp_path / "slow.json").write_text(json.dumps(values), encoding="utf-8")
    [made] = answers(running, "proposal", "make", "slow.json", "--space", space, cwd=tmp_path)
    seen = ("--revision", 1, "--digest", made["digest"])
    pipeline = answers(running, "proposal", "approve", made["proposal"], *seen, cwd=tmp_path)[0]["pipeline"]

    def runs() -> list[int]:
        return [run for step in answers(running, "pipeline", "show", pipeline, cwd=tmp_path)[0]["steps"] for run in step["runs"]]

    # Nobody drives the program's run, so that it waits for as long as it may.
    wait_until(lambda: bool(runs()), "the pipeline begins")
    cancelled = ask(running, "pipeline", "cancel", pipeline, "--reason", "enough", cwd=tmp_path)
    assert (cancelled.status, "cancelled: enough" in cancelled.out) == (0, True)
    [run] = runs()
    assert answers(running, "run", "show", run, cwd=tmp_path)[0]["state"] == "cancelled"
