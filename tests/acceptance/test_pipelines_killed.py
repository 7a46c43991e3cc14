"""Two real workers are killed again and again while pipelines run: each ends, and each attempt has one run (D-16)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
import sqlalchemy as sa
from agentplat.domain.pipelines import PipelineState
from agentplat.store.migrating import migrate

from tests.acceptance.lives import Zygote, zygote
from tests.agentplat.conftest import empty_database
from tests.agentplat.offices import Office, office
from tests.agentplat.proposals import sub_ticket
from tests.agentplat.world import wait_until, world

PIPELINES, KILLS, MOST_LIFE_S = 3, 6, 0.4


@pytest.fixture(params=["sqlite", "postgres"])
def hall(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    url = empty_database(request.param, request)
    migrate(url)
    with world(url, tmp_path, up=False) as opened:
        found = office(opened, tmp_path)
        found.agents()
        yield found


@pytest.fixture(scope="module")
def mother(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """What all processes of these tests are forked from."""
    with zygote(tmp_path_factory.mktemp("zygote")) as found:
        yield found


@pytest.mark.promise("D-16")
def test_pipelines_end_well_whichever_worker_is_killed_and_no_attempt_has_two_runs(hall: Office, mother: Zygote) -> None:
    # A run that its workers were killed in three times is given up, and its step then tried again.
    parts = [sub_ticket("a", retries=3), sub_ticket("b", retries=3), sub_ticket("c", needs=["a", "b"], retries=3)]
    pipelines = [hall.started(parts, research="worker") for _ in range(PIPELINES)]
    url = hall.store._engine.url.render_as_string(hide_password=False)
    command = ("agentplat", "worker", "--database-url", url, "--content", hall.folder / "content", "--poll-interval-s", "0.02")
    chance, pause = random.Random(11), Event()
    lives = [mother.start(*command, "--run-lease-s", "0.5", "--log-level", "error") for _ in range(2)]
    for kill in range(KILLS):
        pause.wait(chance.random() * MOST_LIFE_S)
        lives[kill % 2].kill()
        lives[kill % 2] = mother.start(*command, "--run-lease-s", "0.5", "--log-level", "error")
    wait_until(lambda: all(hall.now(pipeline).state is not PipelineState.RUNNING for pipeline in pipelines), "all have ended")
    for life in lives:
        life.stop()
    assert {(hall.now(pipeline).state, hall.now(pipeline).reason) for pipeline in pipelines} == {(PipelineState.FINISHED, None)}
    for pipeline in pipelines:
        attempts = [(key, attempt) for key, attempt, _ in hall.runs(pipeline)]
        assert len(set(attempts)) == len(attempts)
        assert {key for key, _ in attempts} == {"research", "a", "b", "c", "synthesis"}
        assert {key: step.attempts for key, step in hall.steps(pipeline).items()} == dict(sorted(attempts))
    with hall.store._engine.connect() as connection:
        stray = "SELECT count(*) FROM runs WHERE opened_by = 'pipeline' AND id NOT IN (SELECT run_id FROM pipeline_runs)"
        assert connection.execute(sa.text(stray)).scalar_one() == 0
    assert len([told for told in hall.notices() if told.endswith("finished.")]) == PIPELINES
