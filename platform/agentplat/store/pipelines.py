"""Pipelines, their steps and the runs of those in SQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.pipeline_templates import NewPipeline
from agentplat.domain.pipelines import Pipeline, PipelineState, PipelineStep, StepState
from agentplat.domain.registry import Agent
from agentplat.domain.runs import ENDED
from agentplat.store import work_schema as schema
from agentplat.store.pipeline_port import Pipelines
from agentplat.store.proposals import in_scopes
from agentplat.store.registry import SqlRegistry
from agentplat.store.runtime_schema import runs

_RUNNING = sa.text("pipelines.state = 'running'")  # word for word the condition of the partial index
_ENDED = [state.value for state in sorted(ENDED)]


def _pipeline(row: Row[Any]) -> Pipeline:
    return Pipeline(
        id=row.id,
        project_id=row.project_id,
        proposal_id=row.proposal_id,
        space_id=row.space_id,
        state=PipelineState(row.state),
        on_behalf_of_id=row.on_behalf_of_id,
        source_run_id=row.source_run_id,
        opened_at=row.opened_at,
        finished_at=row.finished_at,
        reason=row.reason,
    )


class SqlPipelines(Pipelines):
    """Pipelines in SQL; `store.pipeline_port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _select(self) -> sa.Select[Any]:
        pipelines, templates, projects = schema.pipelines, schema.pipeline_templates, schema.projects
        joined = pipelines.join(templates, templates.c.id == pipelines.c.template_id)
        joined = joined.join(projects, projects.c.id == templates.c.project_id)
        return sa.select(*pipelines.c, templates.c.project_id, projects.c.proposal_id).select_from(joined)

    def _one(self, wanted: sa.ColumnElement[bool]) -> Pipeline | None:
        row = self._connection.execute(self._select().where(wanted)).one_or_none()
        return None if row is None else _pipeline(row)

    def _added(self, table: sa.Table, **values: Any) -> int:
        added: int = self._connection.execute(table.insert().values(values).returning(table.c.id)).scalar_one()
        return added

    @override
    def start(self, new: NewPipeline, at: int) -> Pipeline:
        project_id = self._added(
            schema.projects, workspace_id=new.workspace_id, proposal_id=new.proposal_id, name=new.project, created_at=at
        )
        team = [{"project_id": project_id, "role": role, "agent_id": agent.id} for role, agent in new.team.items()]
        self._connection.execute(schema.project_members.insert(), team)
        template_id = self._added(
            schema.pipeline_templates, project_id=project_id, body=new.template.text, digest=new.template.digest
        )
        pipeline_id = self._added(
            schema.pipelines,
            template_id=template_id,
            space_id=new.space_id,
            on_behalf_of_id=new.on_behalf_of.id,
            source_run_id=new.source_run_id,
            opened_at=at,
        )
        steps = [{"pipeline_id": pipeline_id, "key": step.key} for step in new.template.steps]
        self._connection.execute(schema.pipeline_steps.insert(), steps)
        found = self.find(pipeline_id)
        assert found is not None  # it was just stored
        return found

    @override
    def find(self, pipeline_id: int) -> Pipeline | None:
        return self._one(schema.pipelines.c.id == pipeline_id)

    @override
    def of_proposal(self, proposal_id: int) -> Pipeline | None:
        return self._one(schema.projects.c.proposal_id == proposal_id)

    @override
    def hold(self, pipeline_id: int) -> Pipeline | None:
        pipelines = schema.pipelines.c
        self._connection.execute(sa.select(pipelines.id).where(pipelines.id == pipeline_id).with_for_update())
        # Only now: what its last holder wrote is visible only to a later statement.
        return self.find(pipeline_id)

    @override
    def take(self, pipeline_id: int) -> Pipeline | None:
        pipelines = schema.pipelines.c
        free = sa.select(pipelines.id).where(pipelines.id == pipeline_id, _RUNNING).with_for_update(skip_locked=True)
        return None if self._connection.execute(free).first() is None else self.find(pipeline_id)

    @override
    def due(self, after: int, size: int) -> list[int]:
        pipelines, steps, attempts = schema.pipelines.c, schema.pipeline_steps.c, schema.pipeline_runs.c
        running = sa.and_(steps.pipeline_id == pipelines.id, steps.state == StepState.RUNNING.value)
        last = sa.and_(attempts.pipeline_id == steps.pipeline_id, attempts.key == steps.key, attempts.attempt == steps.attempts)
        ended = sa.and_(running, last, runs.c.id == attempts.run_id, runs.c.state.in_(_ENDED))
        something = sa.or_(sa.exists().where(ended), ~sa.exists().where(running))
        query = sa.select(pipelines.id).where(_RUNNING, pipelines.id > after, something).order_by(pipelines.id).limit(size)
        return list(self._connection.execute(query).scalars())

    @override
    def template(self, pipeline_id: int) -> str:
        pipelines, templates = schema.pipelines, schema.pipeline_templates
        joined = pipelines.join(templates, templates.c.id == pipelines.c.template_id)
        query = sa.select(templates.c.body).select_from(joined).where(pipelines.c.id == pipeline_id)
        text: str = self._connection.execute(query).scalar_one()
        return text

    def _project(self, pipeline_id: int) -> sa.ScalarSelect[Any]:
        pipelines, templates = schema.pipelines, schema.pipeline_templates
        joined = pipelines.join(templates, templates.c.id == pipelines.c.template_id)
        return sa.select(templates.c.project_id).select_from(joined).where(pipelines.c.id == pipeline_id).scalar_subquery()

    @override
    def team(self, pipeline_id: int) -> dict[str, Agent]:
        members = schema.project_members.c
        found = sa.select(members.role, members.agent_id).where(members.project_id == self._project(pipeline_id))
        registry = SqlRegistry(self._connection)
        return {row.role: registry.by_id(row.agent_id) for row in self._connection.execute(found.order_by(members.role)).all()}

    @override
    def project_name(self, pipeline_id: int) -> str:
        projects = schema.projects.c
        name: str = self._connection.execute(sa.select(projects.name).where(projects.id == self._project(pipeline_id))).scalar_one()
        return name

    @override
    def steps(self, pipeline_id: int) -> dict[str, PipelineStep]:
        steps, attempts = schema.pipeline_steps, schema.pipeline_runs.c
        last = sa.and_(
            attempts.pipeline_id == steps.c.pipeline_id, attempts.key == steps.c.key, attempts.attempt == steps.c.attempts
        )
        joined = steps.outerjoin(schema.pipeline_runs, last)
        query = sa.select(*steps.c, attempts.run_id).select_from(joined).where(steps.c.pipeline_id == pipeline_id)
        return {
            row.key: PipelineStep(
                key=row.key, state=StepState(row.state), attempts=row.attempts, run_id=row.run_id, reason=row.reason
            )
            for row in self._connection.execute(query)
        }

    @override
    def runs(self, pipeline_id: int) -> list[tuple[str, int, int]]:
        attempts = schema.pipeline_runs.c
        query = sa.select(attempts.key, attempts.attempt, attempts.run_id).where(attempts.pipeline_id == pipeline_id)
        return [(row.key, row.attempt, row.run_id) for row in self._connection.execute(query.order_by(attempts.run_id))]

    def _step(self, pipeline_id: int, key: str) -> sa.ColumnElement[bool]:
        steps = schema.pipeline_steps.c
        return sa.and_(steps.pipeline_id == pipeline_id, steps.key == key)

    @override
    def opened(self, pipeline_id: int, key: str, run_id: int) -> None:
        steps = schema.pipeline_steps
        values = {"state": StepState.RUNNING.value, "attempts": steps.c.attempts + 1, "reason": None}
        counted = steps.update().where(self._step(pipeline_id, key)).values(values).returning(steps.c.attempts)
        attempt = self._connection.execute(counted).scalar_one()
        kept = {"pipeline_id": pipeline_id, "key": key, "attempt": attempt, "run_id": run_id}
        self._connection.execute(schema.pipeline_runs.insert().values(kept))

    @override
    def move(self, pipeline_id: int, key: str, state: StepState, reason: str | None = None) -> None:
        moved = schema.pipeline_steps.update().where(self._step(pipeline_id, key))
        self._connection.execute(moved.values(state=state.value, reason=reason))

    @override
    def end(self, held: Pipeline, state: PipelineState, reason: str | None, at: int) -> Pipeline:
        pipelines = schema.pipelines
        ended = {"state": state.value, "reason": reason, "finished_at": at}
        self._connection.execute(pipelines.update().where(pipelines.c.id == held.id).values(ended))
        found = self.find(held.id)
        assert found is not None  # pipelines are never deleted
        return found

    @override
    def page(self, scopes: Collection[str], space_id: int | None, before: int | None, size: int) -> list[Pipeline]:
        pipelines = schema.pipelines.c
        wanted = sa.and_(
            in_scopes(pipelines.space_id, scopes),
            sa.true() if space_id is None else pipelines.space_id == space_id,
            sa.true() if before is None else pipelines.id < before,
        )
        found = self._connection.execute(self._select().where(wanted).order_by(pipelines.id.desc()).limit(size))
        return [_pipeline(row) for row in found]

    @override
    def of_runs(self, run_ids: Collection[int]) -> dict[int, int]:
        attempts = schema.pipeline_runs.c
        query = sa.select(attempts.run_id, attempts.pipeline_id).where(attempts.run_id.in_(run_ids))
        return {row.run_id: row.pipeline_id for row in self._connection.execute(query)}
