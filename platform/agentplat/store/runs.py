"""Runs, leases and trails in SQL.

A lease is a row's owner and its end, not an open transaction: drivers think between short transactions. Every change of a run is
one conditional update of its row, by owner, number of steps and last hash, together with the steps it adds; the update locks the
row, so that of two writers one finds the condition false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.artifacts import Blob
from agentplat.domain.chains import OpenedBy
from agentplat.domain.errors import LeaseLost, TrailDamaged
from agentplat.domain.labels import Labels, join, parse_labels, texts
from agentplat.domain.runs import ENDED, DriverKind, NewRun, Run, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Body, BudgetSettled, Closing, Opening, Resumed, StepKind, Waiting
from agentplat.domain.trail import Step, next_step
from agentplat.store import runtime_schema as schema
from agentplat.store import work_schema
from agentplat.store.budgets import SqlBudgets
from agentplat.store.clock import database_now
from agentplat.store.port import Runs
from agentplat.store.registry import below, insert
from agentplat.store.schema import agents

_ENDED = [state.value for state in sorted(ENDED)]


def _run(row: Row[Any], labels: Labels) -> Run:
    return Run(
        id=row.id,
        agent_id=row.agent_id,
        agent=Ref(row.scope, row.name),
        number=row.number,
        driver=DriverKind(row.driver),
        opened_by=OpenedBy(row.opened_by),
        on_behalf_of_id=row.on_behalf_of_id,
        source_run_id=row.source_run_id,
        event=row.event,
        hop=row.hop,
        chain=row.chain_id,
        state=RunState(row.state),
        waiting_for=None if row.waiting_for is None else WaitingFor(row.waiting_for),
        labels=labels,
        owner=row.owner,
        attempts=row.attempts,
        steps=row.steps,
        head=row.head,
        opened_at=row.opened_at,
        finished_at=row.finished_at,
        cancel_asked_at=row.cancel_asked_at,
        cancel_asked_by_id=row.cancel_asked_by_id,
    )


def _step(row: Row[Any]) -> Step:
    try:
        kind = StepKind(row.kind)
    except ValueError:
        raise TrailDamaged(row.run_id, row.number) from None
    return Step(
        run_id=row.run_id,
        number=row.number,
        kind=kind,
        at=row.at,
        body=row.body,
        previous=row.previous,
        hash=row.hash,
    )


def _opening(run: Run, new: NewRun) -> Opening:
    return Opening(
        opened_by=run.opened_by,
        agent=run.agent.text,
        version=run.number,
        on_behalf_of=new.on_behalf_of.ref.text,
        labels=texts(run.labels),
        hop=run.hop,
        chain=run.chain,
        opener=None if new.opener is None else new.opener.ref.text,
        source_run=run.source_run_id,
        delivery=new.delivery,
        input=new.input,
    )


def _elsewhere(host: str | None) -> sa.ColumnElement[bool]:
    """Whether a run works in a workspace that links a repository of another host."""
    places, spaces, repositories = work_schema.workplaces.c, work_schema.spaces.c, work_schema.repositories.c
    another = sa.true() if host is None else repositories.host != host
    linked = sa.and_(places.run_id == schema.runs.c.id, spaces.id == places.space_id, another)
    return sa.exists().where(linked, repositories.workspace_id == spaces.workspace_id).correlate(schema.runs)


class SqlRuns(Runs):
    """Runs in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _select(self) -> sa.Select[Any]:
        joined = schema.runs.join(agents, agents.c.id == schema.runs.c.agent_id)
        return sa.select(*schema.runs.c, agents.c.scope, agents.c.name).select_from(joined)

    def _labels(self, run_ids: Collection[int]) -> dict[int, Labels]:
        labels = schema.run_labels.c
        found: dict[int, list[str]] = {run_id: [] for run_id in run_ids}
        for row in self._connection.execute(sa.select(labels.run_id, labels.label).where(labels.run_id.in_(run_ids))):
            found[row.run_id].append(row.label)
        return {run_id: parse_labels(listed) for run_id, listed in found.items()}

    def _one(self, query: sa.Select[Any]) -> Run | None:
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _run(row, self._labels([row.id])[row.id])

    @override
    def open(self, new: NewRun, at: int) -> Run | None:
        runs = schema.runs
        values = {
            "agent_id": new.agent.id,
            "number": new.number,
            "driver": new.driver.value,
            "opened_by": new.opened_by.value,
            "on_behalf_of_id": new.on_behalf_of.id,
            "source_run_id": new.source_run_id,
            "event": None if new.delivery is None else new.delivery.event,
            "opened_at": at,
        }
        if new.position is not None:
            values |= {"hop": new.position.hop, "chain_id": new.position.chain}
        name = (sa.literal(new.agent.ref.scope).label("scope"), sa.literal(new.agent.ref.name).label("name"))
        added = insert(self._connection, runs).values(values).on_conflict_do_nothing().returning(*runs.c, *name)
        row = self._connection.execute(added).one_or_none()
        if row is None:
            return None
        run = _run(row, new.labels)
        if new.position is None:
            self._connection.execute(runs.update().where(runs.c.id == run.id).values(hop=0, chain_id=run.id))
            self._connection.execute(schema.chains.insert().values(run_id=run.id))
            run = replace(run, hop=0, chain=run.id)
        if new.input is not None:
            kept = {"ref": new.input.ref, "digest": new.input.digest, "size": new.input.size}
            self._connection.execute(schema.run_inputs.insert().values(run_id=run.id, **kept))
        self._add_labels(run.id, new.labels)
        return self._change(run, [_opening(run, new)], at)

    @override
    def find(self, run_id: int) -> Run | None:
        return self._one(self._select().where(schema.runs.c.id == run_id))

    @override
    def some(self, run_ids: Collection[int]) -> dict[int, Run]:
        found = {run.id: run for run in self._all(self._select().where(schema.runs.c.id.in_(run_ids)))}
        return {run_id: found[run_id] for run_id in run_ids if run_id in found}

    @override
    def last_steps(self, run_ids: Collection[int]) -> dict[int, Step]:
        steps, runs = schema.steps, schema.runs
        last = sa.and_(steps.c.run_id == runs.c.id, steps.c.number == runs.c.steps)
        query = sa.select(*steps.c).select_from(runs.join(steps, last)).where(runs.c.id.in_(run_ids))
        return {row.run_id: _step(row) for row in self._connection.execute(query)}

    @override
    def delivered(self, source_run_id: int, event: str, agent_id: int) -> Run | None:
        runs = schema.runs.c
        return self._one(self._select().where(runs.source_run_id == source_run_id, runs.event == event, runs.agent_id == agent_id))

    @override
    def page(self, scopes: Collection[str], before: int | None, size: int) -> list[Run]:
        run_id = schema.runs.c.id
        wanted = sa.and_(below(agents.c.scope, scopes), sa.true() if before is None else run_id < before)
        return self._all(self._select().where(wanted).order_by(run_id.desc()).limit(size))

    def select_all(self, narrowed: Callable[[sa.Select[Any]], sa.Select[Any]]) -> list[Run]:
        """The runs of a narrower query; agents are joined in it."""
        return self._all(narrowed(self._select()))

    def _all(self, query: sa.Select[Any]) -> list[Run]:
        rows = self._connection.execute(query).all()
        labels = self._labels([row.id for row in rows])
        return [_run(row, labels[row.id]) for row in rows]

    @override
    def of_chain(self, chain: int, size: int) -> list[Run]:
        runs = schema.runs.c
        # A hop-0 run that an older worker opened does not say that it begins a chain.
        return self._all(self._select().where(sa.or_(runs.chain_id == chain, runs.id == chain)).order_by(runs.id).limit(size))

    @override
    def readable_among(self, run_ids: Collection[int], scopes: Collection[str]) -> set[int]:
        runs = schema.runs.c
        joined = schema.runs.join(agents, agents.c.id == runs.agent_id)
        query = sa.select(runs.id).select_from(joined).where(runs.id.in_(run_ids), below(agents.c.scope, scopes))
        return set(self._connection.execute(query).scalars())

    @override
    def labels(self, run_ids: Collection[int]) -> Labels:
        return join(*self._labels(run_ids).values())

    def _leasable(
        self, drivers: Collection[DriverKind], scopes: Collection[str] | None, host: str | None, now: int
    ) -> sa.Select[Any]:
        runs = schema.runs.c
        open_to_all = sa.text("state IN ('queued', 'running')")  # word for word the condition of the partial index
        free = sa.or_(runs.state == RunState.QUEUED.value, runs.lease_until <= now)
        kinds = runs.driver.in_(sorted(driver.value for driver in drivers))
        chosen = sa.select(runs.id).where(open_to_all, free, kinds, ~_elsewhere(host)).order_by(runs.id).limit(1)
        if scopes is None:
            return chosen
        return chosen.where(runs.agent_id.in_(sa.select(agents.c.id).where(below(agents.c.scope, scopes))))

    @override
    def leasable(self, drivers: Collection[DriverKind], scopes: Collection[str] | None = None, host: str | None = None) -> bool:
        chosen = self._leasable(drivers, scopes, host, database_now(self._connection))
        return self._connection.execute(chosen).first() is not None

    @override
    def lease(
        self,
        drivers: Collection[DriverKind],
        owner: str,
        lease_s: float,
        scopes: Collection[str] | None = None,
        host: str | None = None,
    ) -> Run | None:
        runs, now = schema.runs, database_now(self._connection)
        chosen = self._leasable(drivers, scopes, host, now).with_for_update(skip_locked=True)
        run_id = self._connection.execute(chosen).scalar_one_or_none()
        if run_id is None:
            return None
        held = {"state": RunState.RUNNING.value, "owner": owner, "lease_until": now + int(lease_s * 1000)}
        self._connection.execute(runs.update().where(runs.c.id == run_id).values(attempts=runs.c.attempts + 1, **held))
        return self.find(run_id)

    def _held(self, run: Run) -> sa.ColumnElement[bool]:
        runs = schema.runs.c
        return sa.and_(runs.id == run.id, runs.owner == run.owner, runs.state == RunState.RUNNING.value)

    @override
    def renew(self, run: Run, lease_s: float) -> bool:
        lease_until = database_now(self._connection) + int(lease_s * 1000)
        renewed = schema.runs.update().where(self._held(run)).values(lease_until=lease_until)
        return self._connection.execute(renewed).rowcount == 1

    @override
    def release(self, run: Run) -> None:
        runs = schema.runs
        back = {"state": RunState.QUEUED.value, "owner": None, "lease_until": 0, "attempts": runs.c.attempts - 1}
        self._connection.execute(runs.update().where(self._held(run)).values(back))

    def _change(self, run: Run, bodies: Sequence[Body], at: int, **values: Any) -> Run:
        """Add steps and set columns of the run's row, if it still is as its writer knows it."""
        added: list[Step] = []
        for body in bodies:
            head = added[-1].hash if added else run.head
            added.append(next_step(run.id, run.steps + len(added), head, body, at))
        runs = schema.runs.c
        known = sa.and_(
            runs.id == run.id,
            runs.owner.is_(None) if run.owner is None else runs.owner == run.owner,
            runs.state == run.state.value,
            runs.state.not_in(_ENDED),
            runs.steps == run.steps,
            sa.true() if run.head is None else runs.head == run.head,
        )
        then = {"steps": run.steps + len(added), "head": added[-1].hash, **values}
        if self._connection.execute(schema.runs.update().where(known).values(then)).rowcount != 1:
            raise LeaseLost(run.id)
        self._connection.execute(schema.steps.insert(), [_columns(step) for step in added])
        return replace(run, steps=then["steps"], head=then["head"])

    @override
    def append(self, run: Run, bodies: Sequence[Body], at: int) -> Run:
        return self._change(run, bodies, at) if bodies else run

    def _add_labels(self, run_id: int, labels: Labels) -> None:
        rows = [{"run_id": run_id, "label": text} for text in texts(labels)]
        if rows:
            self._connection.execute(insert(self._connection, schema.run_labels).on_conflict_do_nothing(), rows)

    @override
    def take_on(self, run: Run, labels: Labels) -> Run:
        self._add_labels(run.id, labels - run.labels)
        return replace(run, labels=join(run.labels, labels))

    def _now(self, run: Run) -> Run:
        found = self.find(run.id)
        assert found is not None  # runs are never deleted
        return found

    @override
    def wait(self, run: Run, waiting: Waiting, at: int) -> Run:
        still = {"state": RunState.WAITING.value, "waiting_for": waiting.waiting_for.value}
        return self._now(self._change(run, [waiting], at, owner=None, lease_until=0, attempts=0, **still))

    @override
    def resume(self, run: Run, resumed: Resumed, at: int) -> Run:
        return self._now(self._change(run, [resumed], at, state=RunState.QUEUED.value, waiting_for=None))

    @override
    def close(self, run: Run, closing: Closing, at: int) -> Run:
        ended = {"state": closing.state.value, "waiting_for": None, "owner": None, "lease_until": 0}
        settled = [
            BudgetSettled(call=call, amounts={unit.value: amount for unit, amount in took.items()})
            for call, took in SqlBudgets(self._connection).end(run.id).items()
        ]
        return self._now(self._change(run, [*settled, closing], at, **ended))

    @override
    def ask_to_cancel(self, run: Run, by: Person, at: int) -> None:
        runs = schema.runs
        first = sa.and_(runs.c.id == run.id, runs.c.cancel_asked_at.is_(None), runs.c.state.not_in(_ENDED))
        self._connection.execute(runs.update().where(first).values(cancel_asked_at=at, cancel_asked_by_id=by.id))

    @override
    def trail(self, run_id: int, after: int = 0, size: int | None = None, kinds: Collection[StepKind] | None = None) -> list[Step]:
        steps = schema.steps
        query = sa.select(steps).where(steps.c.run_id == run_id, steps.c.number > after).order_by(steps.c.number).limit(size)
        if kinds is not None:
            query = query.where(steps.c.kind.in_(sorted(kind.value for kind in kinds)))
        return [_step(row) for row in self._connection.execute(query)]

    @override
    def input(self, run_id: int) -> tuple[Blob, bool] | None:
        inputs = schema.run_inputs
        row = self._connection.execute(sa.select(inputs).where(inputs.c.run_id == run_id)).one_or_none()
        return None if row is None else (Blob(ref=row.ref, digest=row.digest, size=row.size), row.erased_at is not None)


def _columns(step: Step) -> dict[str, Any]:
    return {
        "run_id": step.run_id,
        "number": step.number,
        "kind": step.kind.value,
        "at": step.at,
        "body": step.body,
        "previous": step.previous,
        "hash": step.hash,
    }
