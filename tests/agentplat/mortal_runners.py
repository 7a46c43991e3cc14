"""Runners of pipelines that are killed at chosen moments: ``python -m tests.agentplat.mortal_runners URL FOLDER SPACE PLAN``.

PLAN is JSON: for each pipeline, which is opened in the space when its turn comes, a list of pairs of moments. At each pair two
runners begin at once, each a process of its own that is killed at its moment, if it comes to it; behind the last pair, two live
until the pipeline has ended. A worker of its own carries the runs all the while. Moments are counted from 1: before and after each
commit, and after bytes were kept. Answers one JSON value: for each pipeline its id and where its runners died.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from agentplat.content.folder import FolderContent
from agentplat.domain.pipeline_templates import template_of
from agentplat.domain.pipelines import NewPipeline, PipelineState
from agentplat.domain.proposal_reading import read_proposal
from agentplat.domain.tickets import Author
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.pipeline_runner import PipelineRunner
from agentplat.store.port import Store
from agentplat.store.sql import open_store
from agentplat.usecases.catalogue import build_acting
from agentplat.usecases.run_pipelines import RunPipelines
from agentplat.worker import Worker

from tests.agentplat.mortal_workers import Fate, MortalContent, MortalStore
from tests.agentplat.offices import DIAMOND, ROLES
from tests.agentplat.proposals import proposal
from tests.agentplat.run_records import LONG_S
from tests.agentplat.world import ref, wait_until


def _open(url: str, space_id: int) -> int:
    """A pipeline that somebody approved."""
    store = open_store(url)
    try:
        with store.writing() as work:
            space, [person] = work.spaces.find(space_id), work.people.page(["*"], None, 1)
            assert space is not None
            proposed = read_proposal(proposal(DIAMOND, ROLES, research="worker"))
            kept = work.proposals.add(space_id, proposed, Author(person_id=person.id), 1)
            work.proposals.approve(kept, person, 1)
            team = {role.name: work.registry.find(ref(str(role.agent))) for role in proposed.roles}
            new = NewPipeline(
                proposal_id=kept.id,
                workspace_id=space.workspace_id,
                space_id=space_id,
                project="killed",
                team={role: agent for role, agent in team.items() if agent is not None},
                template=template_of(proposed),
                on_behalf_of=person,
                source_run_id=None,
            )
            return work.pipelines.start(new, 1).id
    finally:
        store.close()


def _ended(store: Store, pipeline_id: int) -> bool:
    with store.reading() as work:
        pipeline = work.pipelines.find(pipeline_id)
    assert pipeline is not None
    return pipeline.state is not PipelineState.RUNNING


def _carry_runs(url: str, folder: Path) -> None:
    """Carry runs until this process is killed."""
    worker = Worker(build_acting(open_store(url), FolderContent(folder / "content"), LONG_S), [ScriptedDriver()], 0.01)
    worker.start()
    threading.Event().wait()


def _live(url: str, folder: Path, pipeline_id: int, fate: Fate) -> None:
    """Move pipelines until this one has ended, if fate lets us."""
    inner = open_store(url)
    store, content = MortalStore(inner, fate), MortalContent(FolderContent(folder / "content"), fate)
    runner = PipelineRunner(RunPipelines(store=store, content=content), 0.005)
    runner.start()
    wait_until(lambda: _ended(inner, pipeline_id), "the pipeline ends")
    assert runner.stop(60)
    inner.close()


def _forked(act: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return child


def _lives(url: str, folder: Path, pipeline_id: int, moments: list[int]) -> list[str]:
    """Let two runners live at once. Where each died, empty for one that came to the end."""
    begun = []
    for moment in moments:
        output, told = os.pipe()
        child = _forked(lambda moment=moment, told=told: _live(url, folder, pipeline_id, Fate(moment, told)))  # type: ignore[misc]
        os.close(told)
        begun.append((child, output))
    found = []
    for child, output in begun:
        with os.fdopen(output, encoding="utf-8") as lines:
            last = lines.read()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code == (-signal.SIGKILL if last else 0), f"pipeline {pipeline_id}, moments {moments}: {code}, {last}"
        found.append(last)
    return found


@contextmanager
def _worker(url: str, folder: Path) -> Iterator[None]:
    child = _forked(lambda: _carry_runs(url, folder))
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    url, folder, space, plan = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
    found = []
    with _worker(url, folder):
        for pairs in plan:
            pipeline_id = _open(url, space)
            died = [one for moments in (*pairs, [0, 0]) for one in _lives(url, folder, pipeline_id, moments)]
            found.append({"pipeline": pipeline_id, "died": died})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
