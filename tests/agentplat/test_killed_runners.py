"""Runners of pipelines killed at every moment, two at once: another one goes on, and each attempt has exactly one run (D-16)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from agentplat.domain.pipelines import Pipeline, PipelineState
from agentplat.domain.runs import RunState

from tests.agentplat.offices import Office, office
from tests.agentplat.processes import END_S, environment
from tests.agentplat.run_records import fault_of
from tests.agentplat.world import World

pytestmark = pytest.mark.promise("D-16")

STEPS = ["a", "b", "c", "d", "research", "synthesis"]
MOMENTS = 15
"""A pipeline of six steps in four rounds has at least so many: for each step its input is kept, and each round is committed."""


@pytest.fixture
def hall(everywhere: World, tmp_path: Path) -> Office:
    opened = office(everywhere, tmp_path)
    opened.agents()
    return opened


def _carried(hall: Office, plan: list[list[list[int]]]) -> tuple[list[Pipeline], list[list[str]]]:
    """Pipelines whose runners lived and died by the plan, and where those died."""
    url = hall.store._engine.url.render_as_string(hide_password=False)
    done = subprocess.run(
        [sys.executable, "-m", "tests.agentplat.mortal_runners", url, str(hall.folder), str(hall.space.id), json.dumps(plan)],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=END_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    with hall.store.reading() as work:
        pipelines = [work.pipelines.find(one["pipeline"]) for one in found]
    return [pipeline for pipeline in pipelines if pipeline is not None], [one["died"] for one in found]


def _assert_whole(hall: Office, pipeline: Pipeline) -> None:
    """Every step had one run, which finished and was given what those before it came to."""
    now = hall.now(pipeline)
    assert (now.state, now.reason) == (PipelineState.FINISHED, None)
    runs = {key: run_id for key, attempt, run_id in hall.runs(pipeline) if attempt == 1}
    assert sorted(runs) == STEPS
    assert len(hall.runs(pipeline)) == len(STEPS)
    for key in STEPS:
        run = hall.run(pipeline, key)
        assert run.state is RunState.FINISHED
        assert fault_of(hall.store, run.id) is None
    given = [(output["step"], output["run"]) for output in hall.input(hall.run(pipeline, "synthesis"))["outputs"]]
    assert given == [(key, runs[key]) for key in ("c", "d")]


def _assert_nothing_besides(hall: Office, pipelines: list[Pipeline]) -> None:
    """No run was opened that no attempt has, and each pipeline's end was told once."""
    with hall.store._engine.connect() as connection:
        opened = connection.execute(sa.text("SELECT count(*) FROM runs WHERE opened_by = 'pipeline'")).scalar_one()
        stray = "SELECT count(*) FROM runs WHERE opened_by = 'pipeline' AND id NOT IN (SELECT run_id FROM pipeline_runs)"
        assert connection.execute(sa.text(stray)).scalar_one() == 0
    assert opened == len(STEPS) * len(pipelines)
    ends = [told for told in hall.notices() if told.endswith("finished.")]
    assert ends == [f"Pipeline {pipeline.id} finished." for pipeline in pipelines]


def test_a_runner_killed_at_any_moment_leaves_a_pipeline_that_another_one_carries_on(hall: Office) -> None:
    plan = [[[first, first + 1] for first in range(1, 6)], [[1, 2]] * 3, [[3, 3], [4, 4], [2, 5]], [[5, 1], [1, 5], [6, 2]]]
    pipelines, died = _carried(hall, plan)
    for pipeline in pipelines:
        _assert_whole(hall, pipeline)
    _assert_nothing_besides(hall, pipelines)
    assert {"before commit", "after commit", "bytes kept"} <= {moment for lives in died for moment in lives}


def test_each_moment_of_a_pipeline_may_be_the_last_of_a_runner(hall: Office) -> None:
    pipelines, died = _carried(hall, [[[moment, moment]] for moment in range(1, MOMENTS + 1)])
    for pipeline in pipelines:
        _assert_whole(hall, pipeline)
    _assert_nothing_besides(hall, pipelines)
    assert all(any(lives) for lives in died[: MOMENTS // 2])
