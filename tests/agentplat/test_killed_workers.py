"""Workers killed at every moment of a run: another one goes on, the run ends the same, and nothing is done twice (R-4)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.runs import RunState
from agentplat.domain.steps import Body, Closing, ResultKind, TakenOver, ToolCall, ToolResult
from agentplat.domain.tickets import Status
from agentplat.store.port import Store
from agentplat.usecases.call_tool import UNKNOWN
from agentplat.usecases.lease_run import GIVEN_UP

from tests.agentplat.mortal_workers import GONE, KEEP, LOOK, PAY
from tests.agentplat.processes import END_S, environment
from tests.agentplat.run_records import fault_of, folder_content, stored
from tests.agentplat.world import World

pytestmark = pytest.mark.promise("R-4")

DEVELOPER = "acme/platform:developer"
ACTIONS = [
    {"call": LOOK, "arguments": {"n": 1}},
    {"call": PAY, "arguments": {"n": 2}},
    {"call": KEEP, "arguments": {"n": 3}},
    {"call": GONE, "arguments": {"n": 4}},
    {"finish": {"summary": "Paid.", "artifacts": {"receipt": "No. 2"}}},
]


@dataclass(frozen=True)
class Life:
    """What became of a run. died: the moments at which its workers were killed."""

    run: int
    died: list[str]
    lived: int


def _lives(everywhere: World, folder: Path, plan: Sequence[Sequence[int]]) -> list[Life]:
    """Let workers live and die; each in a process of its own."""
    url = everywhere.store._engine.url.render_as_string(hide_password=False)
    done = subprocess.run(
        [sys.executable, "-m", "tests.agentplat.mortal_workers", url, str(folder), json.dumps(plan)],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=END_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Life(**found) for found in json.loads(done.stdout.splitlines()[-1])]


@pytest.fixture
def publisher(everywhere: World) -> World:
    """A world with the agent whose runs are carried."""
    ana = everywhere.person("acme:ana", "author=acme/platform")
    everywhere.publish(ana, DEVELOPER, ["paid"], driver={"kind": "scripted", "actions": ACTIONS}, tools=[LOOK, PAY, KEEP])
    with everywhere.store.writing() as work:
        assert work.workspaces.add("acme/platform", "team", None, 1) is not None
    return everywhere


def _trail(store: Store, run_id: int) -> list[Body]:
    assert fault_of(store, run_id) is None
    with store.reading() as work:
        return [step.read() for step in work.runs.trail(run_id)]


def _artifacts(store: Store, folder: Path, run_id: int) -> dict[str, Any]:
    with store.reading() as work:
        found = work.artifacts.of_run(run_id)
    return {name: (folder_content(folder).get(artifact.blob), artifact.labels) for name, artifact in found.items()}


def _effects(folder: Path) -> Counter[tuple[int, str]]:
    lines = (folder / "tally").read_text(encoding="utf-8").splitlines()
    return Counter((int(line.split()[0]), line.split()[1]) for line in lines)


def _tickets(store: Store, run_id: int) -> int:
    with store.reading() as work:
        return sum(ticket.made_in_run_id == run_id for ticket in work.tickets.page(1, list(Status), None, 10_000))


def _assert_ended_the_same(world: World, folder: Path, lives: Sequence[Life], whole: Life) -> None:
    wanted = _artifacts(world.store, folder, whole.run)
    effects = _effects(folder)
    for life in lives:
        run, trail = stored(world.store, life.run), _trail(world.store, life.run)
        assert run.state is RunState.FINISHED
        assert trail[-1] == Closing(state=RunState.FINISHED, published=("paid",))
        assert _artifacts(world.store, folder, life.run) == wanted
        assert [body.tool for body in trail if isinstance(body, ToolCall)] == [LOOK, PAY, KEEP, GONE]
        look, pay, keep, gone = [body for body in trail if isinstance(body, ToolResult)]
        assert (look.result, gone.result) == (ResultKind.DONE, ResultKind.REFUSED)
        # What is done in the transaction that keeps the answer is never in doubt.
        assert (keep.result, keep.reason, _tickets(world.store, life.run)) == (ResultKind.DONE, None, 1)
        # Whoever was killed between the step that says that it will pay and the one that says that it did, left it unknown.
        assert (pay.result, pay.reason) in ((ResultKind.DONE, None), (ResultKind.FAILED, UNKNOWN))
        assert effects[life.run, PAY] <= 1
        if pay.result is ResultKind.DONE:
            assert effects[life.run, PAY] == 1
        # A look whose result was never kept is repeated, once for each worker that died with it, and no other look is.
        assert 1 <= effects[life.run, LOOK] <= 1 + len(life.died)
        # Only whoever held the run can have been followed: a worker killed before its lease was stored left no trace.
        assert [body.attempt for body in trail if isinstance(body, TakenOver)] == list(range(2, run.attempts + 1))


def test_a_run_ends_the_same_at_whichever_moment_its_worker_was_killed(publisher: World, tmp_path: Path) -> None:
    [whole] = _lives(publisher, tmp_path, [[]])
    assert whole.lived > 12
    lives = _lives(publisher, tmp_path, [[moment] for moment in range(1, whole.lived + 1)])
    died = {life.died[0] for life in lives}
    assert died == {
        "before commit",
        "after commit",
        "bytes kept",
        "before look",
        "after look",
        "before pay",
        "after pay",
        "in keep",
    }
    _assert_ended_the_same(publisher, tmp_path, lives, whole)
    unknown = [life.died[0] for life in lives if _pay_of(publisher, life) is ResultKind.FAILED]
    # The step before, the moments around the effect, the bytes of the result, and the result before its commit.
    assert unknown == ["after commit", "before pay", "after pay", "bytes kept", "before commit"]
    repeated = [life.died[0] for life in lives if _effects(tmp_path)[life.run, LOOK] == 2]
    assert repeated == ["after look", "bytes kept", "before commit"]


def _pay_of(world: World, life: Life) -> ResultKind:
    results = [body for body in _trail(world.store, life.run) if isinstance(body, ToolResult)]
    return results[1].result


def test_a_run_whose_workers_are_killed_twice_ends_the_same(publisher: World, tmp_path: Path) -> None:
    [whole] = _lives(publisher, tmp_path, [[]])
    pairs = [[first, second] for first in range(2, whole.lived + 1, 3) for second in range(2, 8, 2)]
    lives = _lives(publisher, tmp_path, [pair for pair in pairs if pair[0] + pair[1] < whole.lived])
    assert all(len(life.died) == 2 for life in lives)
    _assert_ended_the_same(publisher, tmp_path, lives, whole)


def test_a_run_that_three_workers_died_of_is_given_up_and_says_so(publisher: World, tmp_path: Path) -> None:
    # The second moment comes after the lease was stored, at which each of them dies.
    [life] = _lives(publisher, tmp_path, [[2, 2, 2]])
    run, trail = stored(publisher.store, life.run), _trail(publisher.store, life.run)
    assert (run.state, run.attempts) == (RunState.FAILED, 4)
    assert trail[-1] == Closing(state=RunState.FAILED, reason=GIVEN_UP)
    assert [body.attempt for body in trail if isinstance(body, TakenOver)] == [2, 3]
    assert "3 attempts" in GIVEN_UP
    assert not (tmp_path / "tally").exists()
