"""A workspace with a space, agents that follow scripts, and pipelines there that are moved and carried one step at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from agentplat.domain.access import Access
from agentplat.domain.canonical import canonical_json, digest
from agentplat.domain.labels import Labels, join, label_of
from agentplat.domain.modes import Mode
from agentplat.domain.pipelines import Pipeline, PipelineStep
from agentplat.domain.registry import Content, Emission
from agentplat.domain.runs import DriverKind, Run
from agentplat.domain.spaces import Space, Workplace
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.store.port import Store
from agentplat.store.sql import SqlStore
from agentplat.usecases.catalogue import Acting, build_acting
from agentplat.usecases.decide_proposal import Seen
from agentplat.usecases.propose import Proposed
from agentplat.usecases.run_pipelines import RunPipelines
from agentplat.worker import Worker

from tests.agentplat.proposals import proposal, sub_ticket
from tests.agentplat.records import person
from tests.agentplat.run_records import LONG_S, folder_content, new_run
from tests.agentplat.world import World, ref

SCOPE = "acme/platform"
WORKER, WRITER = f"{SCOPE}:worker", f"{SCOPE}:writer"
ROLES: Mapping[str, Any] = {"writer": WRITER, "worker": WORKER}
DIAMOND = [sub_ticket("a"), sub_ticket("b"), sub_ticket("c", needs=["a"]), sub_ticket("d", needs=["a", "b"])]


def finish(summary: str) -> dict[str, Any]:
    """A script's last action: it went well."""
    return {"finish": {"summary": summary}}


def submit(result: Any = "whole") -> dict[str, Any]:
    """A script's action: the output that a synthesis owes."""
    return {"call": "submit_output", "arguments": {"output": {"result": result}}}


def publish(store: Store, agent: str, *actions: Mapping[str, Any], emits: Sequence[str] = (), **spec: Any) -> None:
    """Publish the next version of an agent with this script, past the graph service."""
    with store.writing() as work:
        held = work.registry.hold(ref(agent))
        number = work.registry.last_number(held) + 1
        manifest = {"spec": {"driver": {"kind": "scripted", "actions": list(actions)}, **spec}, "number": number}
        found = Content(
            agent=ref(agent),
            manifest=manifest,
            digest=digest(canonical_json(manifest).encode()),
            emits=tuple(Emission(event=event, context=None, artifacts=()) for event in emits),
            listens=(),
        )
        work.registry.add(held, number, found, person(work), number)


@dataclass(frozen=True, kw_only=True)
class Office:
    """What a test works with. access: of somebody who may decide."""

    world: World
    folder: Path
    access: Access
    workspace: int
    space: Space

    @property
    def store(self) -> SqlStore:
        """The database."""
        return self.world.store

    @property
    def runner(self) -> RunPipelines:
        """What moves pipelines."""
        return RunPipelines(store=self.store, content=folder_content(self.folder))

    @property
    def acting(self) -> Acting:
        """What a worker needs."""
        return build_acting(self.store, folder_content(self.folder), LONG_S)

    def agents(self) -> None:
        """Publish the two agents of `ROLES`: each does well."""
        publish(self.store, WORKER, finish("worked"))
        publish(self.store, WRITER, submit(), finish("written"))

    def propose(self, values: Mapping[str, Any]) -> Proposed:
        """A proposal of the person."""
        return self.world.cases.orchestrating.propose(self.access, self.space.id, values)

    def approve(self, proposed: Proposed) -> Pipeline:
        """The pipeline of a proposal."""
        seen = Seen(revision=proposed.kept.revision, digest=proposed.digest)
        return self.world.cases.orchestrating.decide.approve(self.access, proposed.kept.id, seen).pipeline

    def started(self, sub_tickets: Sequence[Mapping[str, Any]] = DIAMOND, **more: Any) -> Pipeline:
        """The pipeline of a new proposal."""
        return self.approve(self.propose(proposal(sub_tickets, ROLES, **more)))

    def started_by(self, agent: str) -> Pipeline:
        """The pipeline of a new proposal with one sub-ticket, in which one agent does everything."""
        return self.approve(self.propose(proposal([sub_ticket("a")], {"worker": agent})))

    def carry(self) -> list[int]:
        """Carry every run that waits for a worker; which ones."""
        worker, carried = Worker(self.acting, [ScriptedDriver()], 0.01), []
        while (run := self.acting.lease([DriverKind.SCRIPTED], "worker")) is not None:
            worker._owner = "worker"
            worker._carry(run)
            carried.append(run.id)
        return carried

    def rounds(self, pipeline: Pipeline, most: int = 20) -> list[list[str]]:
        """Move the pipeline and carry its runs until nothing is to be done; the steps that were opened in each round."""
        found = []
        for _ in range(most):
            before = self.runs(pipeline)
            if self.runner(pipeline.id) is None:
                break
            new = [key for key, attempt, _ in self.runs(pipeline) if (key, attempt) not in {(k, n) for k, n, _ in before}]
            if new:
                found.append(sorted(new))
            if not self.carry():
                break
        return found

    def now(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline as it stands."""
        with self.store.reading() as work:
            found = work.pipelines.find(pipeline.id)
        assert found is not None
        return found

    def steps(self, pipeline: Pipeline) -> dict[str, PipelineStep]:
        """Its steps."""
        with self.store.reading() as work:
            return work.pipelines.steps(pipeline.id)

    def states(self, pipeline: Pipeline) -> dict[str, str]:
        """Where its steps stand."""
        return {key: step.state.value for key, step in self.steps(pipeline).items()}

    def runs(self, pipeline: Pipeline) -> list[tuple[str, int, int]]:
        """Its runs: key, attempt, id."""
        with self.store.reading() as work:
            return work.pipelines.runs(pipeline.id)

    def run(self, pipeline: Pipeline, key: str) -> Run:
        """The last run of a step."""
        run_id = self.steps(pipeline)[key].run_id
        assert run_id is not None
        with self.store.reading() as work:
            run = work.runs.find(run_id)
        assert run is not None
        return run

    def input(self, run: Run) -> Any:
        """What a run was given."""
        with self.store.reading() as work:
            given = work.runs.input(run.id)
        assert given is not None
        return json.loads(folder_content(self.folder).get(given[0]))

    def notices(self) -> list[str]:
        """What the platform said in the space."""
        with self.store.reading() as work:
            return [said.body for said in work.spaces.messages(self.space.id, 0, 1_000) if said.kind.value == "notice"]

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        with self.store._engine.connect() as connection:
            tables = sa.inspect(connection).get_table_names()
            return {name: connection.execute(sa.text(f"SELECT count(*) FROM {name}")).scalar_one() for name in sorted(tables)}

    def proposing_run(self, mode: Mode = Mode.ORCHESTRATE, labels: Labels = frozenset(), agent: str = WORKER, **given: Any) -> Run:
        """A run that works in the space and is held by this test."""
        with self.store.writing() as work:
            opened = work.runs.open(new_run(work, ref(agent), labels=join(label_of(ref(agent).scope), labels), **given), 1)
            assert opened is not None
            work.spaces.place(opened.id, Workplace(workspace_id=self.workspace, space_id=self.space.id, mode=mode))
            held = work.runs.lease([DriverKind.SCRIPTED], "test", LONG_S)
        assert held is not None
        assert held.id == opened.id
        return held


def office(world: World, folder: Path, scope: str = SCOPE, name: str = "office") -> Office:
    """An office of a scope, with somebody who may decide there."""
    access = world.person(f"{scope}:ana", f"author={scope}")
    assert access.person is not None
    with world.store.writing() as work:
        workspace = work.workspaces.add(scope, name, access.person, 1)
        assert workspace is not None
        space = work.spaces.add(workspace.id, "hall", Mode.ORCHESTRATE, access.person, 1)
        assert space is not None
    return Office(world=world, folder=folder, access=access, workspace=workspace.id, space=space)
