"""Finished runs, their marks and outcomes in SQL.

There is no cursor. Numbers and moments are drawn before a transaction commits, so whoever goes on behind the highest one seen loses
what commits late; whoever waits for gaps waits for ever or too short. Here each finished run carries its own mark (R-14).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.chains import OpenedBy, OutcomeKind
from agentplat.domain.deliveries import Account, Backlog, NewOutcome, Outcome, Reconciliation, SetAside
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.store import runtime_schema as schema
from agentplat.store.clock import database_clock, database_now
from agentplat.store.port import Deliveries
from agentplat.store.registry import below
from agentplat.store.runs import SqlRuns
from agentplat.store.schema import agents

# Word for word the conditions of the partial indexes.
_UNDISPATCHED = sa.text("runs.state = 'finished' AND runs.dispatched_at IS NULL AND runs.set_aside_at IS NULL")
_SET_ASIDE = sa.text("runs.set_aside_at IS NOT NULL")
_EXAMPLES = 100


def _outcome(row: Row[Any]) -> Outcome:
    return Outcome(
        source_run_id=row.source_run_id,
        event=row.event,
        listener=None if row.scope is None else Ref(row.scope, row.name),
        kind=OutcomeKind(row.kind),
        run_id=row.run_id,
        details=json.loads(row.details),
        at=row.at,
    )


class SqlDeliveries(Deliveries):
    """Deliveries in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _due(self) -> sa.Select[Any]:
        runs = schema.runs.c
        due = runs.dispatch_due <= database_clock(self._connection)
        return sa.select(runs.id).where(_UNDISPATCHED, due).order_by(runs.finished_at, runs.id).limit(1)

    @override
    def due(self) -> bool:
        return self._connection.execute(self._due()).first() is not None

    @override
    def take(self) -> Run | None:
        kept = schema.outcomes.c
        # Not EXISTS: PostgreSQL would at times read all outcomes into a hash table to answer it for the one run.
        told = sa.select(kept.id).where(kept.source_run_id == schema.runs.c.id).limit(1).scalar_subquery().label("told")
        # NO KEY: runs that other transactions open meanwhile refer to this one, which must not make either wait for the other.
        held = self._due().add_columns(told).with_for_update(of=schema.runs, skip_locked=True, key_share=True)
        while row := self._connection.execute(held).one_or_none():
            if row.told is None:
                return SqlRuns(self._connection).find(row.id)
            # Whoever took the mark away did not take the outcomes: its listeners were fixed when its events left.
            self._mark(row.id)
        return None

    def _mark(self, run_id: int) -> None:
        mark = schema.runs.update().where(schema.runs.c.id == run_id)
        self._connection.execute(mark.values(dispatched_at=database_clock(self._connection)))

    @override
    def opened(self, source_run_id: int) -> dict[tuple[str, int], int]:
        runs = schema.runs.c
        query = sa.select(runs.event, runs.agent_id, runs.id).where(runs.source_run_id == source_run_id, runs.event.is_not(None))
        return {(row.event, row.agent_id): row.id for row in self._connection.execute(query)}

    @override
    def settle(self, run_id: int, outcomes: Sequence[NewOutcome]) -> None:
        rows = [
            {
                "source_run_id": run_id,
                "event": outcome.event,
                "listener_id": None if outcome.listener is None else outcome.listener.id,
                "kind": outcome.kind.value,
                "run_id": outcome.run_id,
                "details": json.dumps(outcome.details),
            }
            for outcome in outcomes
        ]
        self._connection.execute(schema.outcomes.insert().values(at=database_clock(self._connection)), rows)
        self._mark(run_id)

    def _undispatched(self, run_id: int) -> sa.ColumnElement[bool]:
        return sa.and_(schema.runs.c.id == run_id, _UNDISPATCHED)

    @override
    def fail(self, run_id: int) -> int | None:
        runs = schema.runs
        counted = runs.update().where(self._undispatched(run_id)).values(dispatch_attempts=runs.c.dispatch_attempts + 1)
        return self._connection.execute(counted.returning(runs.c.dispatch_attempts)).scalar_one_or_none()

    @override
    def postpone(self, run_id: int, wait_s: float) -> None:
        due = database_now(self._connection) + int(wait_s * 1000)
        self._connection.execute(schema.runs.update().where(self._undispatched(run_id)).values(dispatch_due=due))

    @override
    def put_aside(self, run_id: int, reason: str) -> None:
        aside = {"set_aside_at": database_now(self._connection), "set_aside_reason": reason}
        self._connection.execute(schema.runs.update().where(self._undispatched(run_id)).values(aside))

    @override
    def resume(self, run_id: int) -> bool:
        runs = schema.runs
        again = {"set_aside_at": None, "set_aside_reason": None, "dispatch_attempts": 0, "dispatch_due": 0}
        resumed = runs.update().where(runs.c.id == run_id, _SET_ASIDE).values(again)
        return self._connection.execute(resumed).rowcount == 1

    @override
    def outcomes(self, run_ids: Collection[int]) -> list[Outcome]:
        kept = schema.outcomes
        joined = kept.outerjoin(agents, agents.c.id == kept.c.listener_id)
        query: sa.Select[Any] = sa.select(*kept.c, agents.c.scope, agents.c.name).select_from(joined)
        query = query.where(kept.c.source_run_id.in_(run_ids))
        return [_outcome(row) for row in self._connection.execute(query.order_by(kept.c.source_run_id, kept.c.id))]

    def _within(self, scopes: Collection[str]) -> sa.Join:
        return schema.runs.join(agents, sa.and_(agents.c.id == schema.runs.c.agent_id, below(agents.c.scope, scopes)))

    @override
    def backlog(self, scopes: Collection[str]) -> Backlog:
        runs, count = schema.runs.c, sa.func.count()
        failing = sa.func.coalesce(sa.func.sum(sa.case((runs.dispatch_attempts > 0, 1), else_=0)), 0)
        waiting = sa.select(count, failing, sa.func.min(runs.finished_at)).select_from(self._within(scopes)).where(_UNDISPATCHED)
        aside = sa.select(count).select_from(self._within(scopes)).where(_SET_ASIDE)
        row = self._connection.execute(waiting).one()
        return Backlog(waiting=row[0], failing=row[1], oldest=row[2], set_aside=self._connection.execute(aside).scalar_one())

    @override
    def set_aside(self, scopes: Collection[str], after: int, size: int) -> list[SetAside]:
        runs = schema.runs.c
        columns = (runs.id, agents.c.scope, agents.c.name, runs.dispatch_attempts, runs.set_aside_reason, runs.set_aside_at)
        query = sa.select(*columns).select_from(self._within(scopes)).where(_SET_ASIDE, runs.id > after)
        return [
            SetAside(
                run_id=row.id,
                agent=Ref(row.scope, row.name),
                attempts=row.dispatch_attempts,
                reason=row.set_aside_reason,
                at=row.set_aside_at,
            )
            for row in self._connection.execute(query.order_by(runs.id).limit(size))
        ]

    @override
    def reconcile(self, scopes: Collection[str], since: int, until: int) -> Reconciliation:
        runs, kept, count = schema.runs.c, schema.outcomes.c, sa.func.count()
        # A run whose end nobody timed belongs to every period.
        ended = sa.or_(runs.finished_at.is_(None), sa.and_(runs.finished_at >= since, runs.finished_at < until))
        period = sa.and_(runs.state == RunState.FINISHED.value, ended)
        told = sa.exists().where(kept.source_run_id == runs.id)
        heading = sa.case(
            (sa.and_(runs.dispatched_at > 0, told), Account.DISPATCHED.value),
            (sa.and_(runs.dispatched_at == 0, ~told), Account.BEFORE.value),
            (sa.or_(runs.dispatched_at.is_not(None), told), Account.UNACCOUNTED.value),
            (runs.set_aside_at.is_not(None), Account.SET_ASIDE.value),
            else_=Account.WAITING.value,
        ).label("heading")
        within = sa.select(runs.id, heading).select_from(self._within(scopes)).where(period).subquery()
        counts = self._connection.execute(sa.select(within.c.heading, count).group_by(within.c.heading))
        found = {Account(row[0]): row[1] for row in counts}
        finished = sa.select(count).select_from(self._within(scopes)).where(period)
        of_period = schema.outcomes.join(within, within.c.id == kept.source_run_id)
        kinds = self._connection.execute(sa.select(kept.kind, count).select_from(of_period).group_by(kept.kind))
        return Reconciliation(
            finished=self._connection.execute(finished).scalar_one(),
            counts=found,
            outcomes={OutcomeKind(row[0]): row[1] for row in kinds},
            unmatched=self._unmatched(within),
            examples={account: self._examples(within, account) for account in sorted(found.keys() - _GOOD)},
        )

    def _examples(self, within: sa.Subquery, account: Account) -> tuple[int, ...]:
        query = sa.select(within.c.id).where(within.c.heading == account.value).order_by(within.c.id).limit(_EXAMPLES)
        return tuple(self._connection.execute(query).scalars())

    def _unmatched(self, within: sa.Subquery) -> int:
        """Outcomes whose run is not that of the delivery, and deliveries of dispatched runs that no outcome names."""
        kept, opened, count = schema.outcomes.c, schema.runs.alias("opened"), sa.func.count()
        same = sa.and_(
            opened.c.source_run_id == kept.source_run_id, opened.c.event == kept.event, opened.c.agent_id == kept.listener_id
        )
        other = schema.outcomes.join(within, within.c.id == kept.source_run_id).join(opened, opened.c.id == kept.run_id)
        wrong = sa.select(count).select_from(other).where(~same)
        dispatched = sa.and_(within.c.id == opened.c.source_run_id, within.c.heading == Account.DISPATCHED.value)
        named = sa.exists().where(kept.run_id == opened.c.id)
        stray = sa.select(count).select_from(opened.join(within, dispatched))
        stray = stray.where(opened.c.opened_by == OpenedBy.EVENT.value, ~named)
        return int(self._connection.execute(wrong).scalar_one() + self._connection.execute(stray).scalar_one())


_GOOD = {Account.DISPATCHED, Account.BEFORE}
