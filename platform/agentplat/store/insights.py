"""Runs looked at together, in SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from typing_extensions import override

from agentplat.domain.budgets import HolderKind, Unit
from agentplat.domain.insights import LoggedRun, Progress, RunFilter, Totals
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.store import runtime_schema as schema
from agentplat.store.port import Insights
from agentplat.store.registry import below
from agentplat.store.runs import SqlRuns
from agentplat.store.schema import agents

_WAITING = sa.text("runs.state = 'waiting'")
_LEASABLE = sa.text("runs.state IN ('queued', 'running')")
_Wanted = sa.ColumnElement[bool] | sa.TextClause
_AT_ONCE = 1_000
"""Runs asked about in one query; databases take only so many values."""


def _wanted(which: RunFilter) -> sa.ColumnElement[bool]:
    runs = schema.runs.c
    found = [below(agents.c.scope, which.scopes)]
    found += [] if which.since is None else [runs.opened_at >= which.since]
    found += [] if which.until is None else [runs.opened_at < which.until]
    found += [] if which.agent is None else [agents.c.scope == which.agent.scope, agents.c.name == which.agent.name]
    found += [runs.state.in_([state.value for state in which.states])] if which.states else []
    return sa.and_(*found)


def _waiting_for(what: WaitingFor) -> sa.ColumnElement[bool]:
    return sa.and_(_WAITING, schema.runs.c.waiting_for == what.value)


def _oldest(state: _Wanted, scopes: Collection[str], size: int, runs: sa.Select[Any]) -> sa.Select[Any]:
    """The oldest runs in a state, of agents of these scopes."""
    return runs.where(state, below(agents.c.scope, scopes)).order_by(schema.runs.c.id).limit(size)


class SqlInsights(Insights):
    """Insights in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._runs = SqlRuns(connection)

    def _logged(self, runs: list[Run]) -> list[LoggedRun]:
        spent = self.spent([run.id for run in runs])
        last = self._runs.last_steps([run.id for run in runs])
        return [LoggedRun(run=run, spent=spent.get(run.id, {}), last_at=last[run.id].at) for run in runs]

    @override
    def log(self, which: RunFilter, before: int | None, size: int) -> list[LoggedRun]:
        opened_at, run_id = schema.runs.c.opened_at, schema.runs.c.id
        wanted = _wanted(which)
        if before is not None:
            at = self._connection.execute(sa.select(opened_at).where(run_id == before)).scalar()
            if at is None:
                return []
            wanted = sa.and_(wanted, opened_at <= at, sa.or_(opened_at < at, run_id < before))
        # In the order of an index, so that a page of the log is read and nothing else.
        newest = (opened_at.desc(), run_id.desc())
        return self._logged(self._runs.select_all(lambda runs: runs.where(wanted).order_by(*newest).limit(size)))

    @override
    def under_way(self, scopes: Collection[str], size: int) -> list[LoggedRun]:
        # Apart from each other and as the indexes are written, so that each finds its own and what ended long ago is not looked at.
        states: tuple[_Wanted, ...] = (_LEASABLE, *map(_waiting_for, WaitingFor))
        parts = [self._runs.select_all(partial(_oldest, state, scopes, size)) for state in states]
        return self._logged(sorted(chain(*parts), key=lambda run: run.id)[:size])

    @override
    def stopped(self, scopes: Collection[str], size: int) -> list[LoggedRun]:
        return self._logged(self._runs.select_all(partial(_oldest, _waiting_for(WaitingFor.BUDGET), scopes, size)))

    @override
    def last_ended(self, scopes: Collection[str]) -> Mapping[Ref, int]:
        runs = schema.runs.c
        # One look into the index for each agent, however many runs it ever had.
        last = sa.select(sa.func.max(runs.finished_at)).where(runs.agent_id == agents.c.id).scalar_subquery()
        query = sa.select(agents.c.scope, agents.c.name, last.label("at")).where(below(agents.c.scope, scopes))
        return {Ref(row.scope, row.name): row.at for row in self._connection.execute(query) if row.at is not None}

    @override
    def totals(self, which: RunFilter) -> Totals:
        runs, budgets = schema.runs.c, schema.budgets.c
        joined = schema.runs.join(agents, agents.c.id == runs.agent_id)
        took = sa.func.sum(sa.func.coalesce(runs.finished_at - runs.opened_at, 0))
        counted: sa.Select[Any] = sa.select(runs.state, sa.func.count().label("number"), took.label("took"))
        rows = self._connection.execute(counted.select_from(joined).where(_wanted(which)).group_by(runs.state)).all()
        of_run = sa.and_(budgets.holder == HolderKind.RUN.value, budgets.key == sa.cast(runs.id, sa.Text))
        charged = joined.join(schema.budgets, of_run)
        amounts: sa.Select[Any] = sa.select(budgets.unit, sa.func.sum(budgets.spent).label("spent"))
        spent = self._connection.execute(amounts.select_from(charged).where(_wanted(which)).group_by(budgets.unit))
        return Totals(
            runs={RunState(row.state): row.number for row in rows},
            took_ms=sum(int(row.took) for row in rows),
            spent={Unit(row.unit): int(row.spent) for row in spent},
        )

    @override
    def spent(self, run_ids: Collection[int]) -> dict[int, dict[Unit, int]]:
        budgets = schema.budgets.c
        query = sa.select(budgets.key, budgets.unit, budgets.spent).where(
            budgets.holder == HolderKind.RUN.value, budgets.key.in_([str(run_id) for run_id in run_ids])
        )
        found: dict[int, dict[Unit, int]] = {}
        for row in self._connection.execute(query.order_by(budgets.key, budgets.unit)):
            if row.spent:
                found.setdefault(int(row.key), {})[Unit(row.unit)] = row.spent
        return found

    @override
    def progress(self, run_ids: Collection[int], newer_than: int) -> list[Progress]:
        runs = schema.runs.c
        ids = sorted(run_ids)
        some = [runs.id.in_(ids[start : start + _AT_ONCE]) for start in range(0, len(ids), _AT_ONCE)]
        # Apart from each other and as the indexes are written, so that every part finds its own.
        parts: list[_Wanted] = [_LEASABLE, runs.id > newer_than, *some]
        found = {one.run_id: one for part in parts for one in self._progress(part)}
        return [found[run_id] for run_id in sorted(found)]

    @override
    def newest(self) -> int:
        return self._connection.execute(sa.select(sa.func.max(schema.runs.c.id))).scalar() or 0

    @override
    def waiting(self) -> set[int]:
        runs = schema.runs.c
        return set(self._connection.execute(sa.select(runs.id).where(_WAITING)).scalars())

    def _progress(self, wanted: _Wanted) -> list[Progress]:
        runs = schema.runs.c
        joined = schema.runs.join(agents, agents.c.id == runs.agent_id)
        query: sa.Select[Any] = sa.select(runs.id, agents.c.scope, runs.steps, runs.state).select_from(joined).where(wanted)
        rows = self._connection.execute(query.order_by(runs.id))
        return [Progress(run_id=row.id, scope=row.scope, steps=row.steps, state=RunState(row.state)) for row in rows]
