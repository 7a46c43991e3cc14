"""The outbox in SQL.

A claim is a lease, not an open transaction: the graph service is called between two short transactions, so that a slow call never
holds a lock (in SQLite it would hold the only one). Sending an entry twice is harmless: the graph service applies a version once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.outbox import Claim, Entry, EntryKind, EntryState
from agentplat.domain.registry import Agent
from agentplat.domain.scopes import Ref
from agentplat.store import schema
from agentplat.store.clock import database_now
from agentplat.store.port import Outbox

_UNSETTLED = (EntryState.WAITING.value, EntryState.SET_ASIDE.value)


def _entry(row: Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        agent_id=row.agent_id,
        agent=Ref(row.scope, row.name),
        position=row.position,
        kind=EntryKind(row.kind),
        number=row.number,
        actor_id=row.actor_id,
        state=EntryState(row.state),
        attempts=row.attempts,
        reason=row.reason,
    )


class SqlOutbox(Outbox):
    """Outbox in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _select(self) -> sa.Select[Any]:
        box, agents = schema.outbox.c, schema.agents.c
        joined = schema.outbox.join(schema.agents, agents.id == box.agent_id)
        return sa.select(*box, agents.scope, agents.name).select_from(joined)

    @override
    def append(self, agent: Agent, kind: EntryKind, number: int, actor: Person, owner: str, lease_s: float) -> Entry:
        box = schema.outbox.c
        last = self._connection.execute(sa.select(sa.func.max(box.position)).where(box.agent_id == agent.id)).scalar() or 0
        added = self._connection.execute(
            schema.outbox.insert()
            .values(
                agent_id=agent.id,
                position=last + 1,
                kind=kind.value,
                number=number,
                actor_id=actor.id,
                owner=owner,
                lease_until=database_now(self._connection) + int(lease_s * 1000),
            )
            .returning(box.id)
        )
        return self.entry(added.scalar_one())

    @override
    def entry(self, entry_id: int) -> Entry:
        return _entry(self._connection.execute(self._select().where(schema.outbox.c.id == entry_id)).one())

    def _heads(self) -> sa.Select[Any]:
        box, earlier = schema.outbox.c, schema.outbox.alias("earlier")
        held_back = sa.exists().where(
            earlier.c.agent_id == box.agent_id, earlier.c.position < box.position, earlier.c.state.in_(_UNSETTLED)
        )
        return self._select().where(box.state.in_(_UNSETTLED), ~held_back)

    def _claim(self, wanted: sa.Select[Any], owner: str, lease_until: int) -> Claim | None:
        row = self._connection.execute(wanted.limit(1).with_for_update(of=schema.outbox, skip_locked=True)).one_or_none()
        if row is None:
            return None
        self._connection.execute(
            schema.outbox.update().where(schema.outbox.c.id == row.id).values(owner=owner, lease_until=lease_until)
        )
        return Claim(entry=_entry(row), owner=owner)

    @override
    def claim_head(self, agent_id: int, owner: str, lease_s: float) -> Claim | None:
        box, now = schema.outbox.c, database_now(self._connection)
        free = sa.or_(box.lease_until <= now, box.owner == owner)
        wanted = self._heads().where(box.agent_id == agent_id, box.state == EntryState.WAITING.value, free)
        return self._claim(wanted, owner, now + int(lease_s * 1000))

    def _due(self, now: int) -> sa.Select[Any]:
        box = schema.outbox.c
        due = sa.and_(box.state == EntryState.WAITING.value, box.next_attempt <= now, box.lease_until <= now)
        return self._heads().where(due).order_by(box.next_attempt, box.id)

    @override
    def due(self) -> bool:
        return self._connection.execute(self._due(database_now(self._connection)).limit(1)).first() is not None

    @override
    def claim_due(self, owner: str, lease_s: float) -> Claim | None:
        now = database_now(self._connection)
        return self._claim(self._due(now), owner, now + int(lease_s * 1000))

    def _settle(self, claim: Claim, **values: Any) -> bool:
        """Change the entry if it still waits. A deliverer whose lease ran out may still report what the graph service said."""
        box = schema.outbox.c
        waiting = sa.and_(box.id == claim.entry.id, box.state == EntryState.WAITING.value)
        settled = schema.outbox.update().where(waiting).values(owner=None, lease_until=0, **values)
        return self._connection.execute(settled).rowcount == 1

    @override
    def deliver(self, claim: Claim, revision: int | None) -> bool:
        return self._settle(claim, state=EntryState.DELIVERED.value, revision=revision, reason=None)

    @override
    def postpone(self, claim: Claim, wait_s: float, reason: str) -> None:
        box = schema.outbox.c
        mine = sa.and_(box.id == claim.entry.id, box.owner == claim.owner, box.state == EntryState.WAITING.value)
        due = database_now(self._connection) + int(wait_s * 1000)
        later = schema.outbox.update().where(mine)
        self._connection.execute(
            later.values(owner=None, lease_until=0, attempts=box.attempts + 1, next_attempt=due, reason=reason)
        )

    @override
    def set_aside(self, claim: Claim, reason: str) -> bool:
        return self._settle(claim, state=EntryState.SET_ASIDE.value, reason=reason)

    @override
    def resume(self, agent_id: int, skip: bool) -> Entry | None:
        box = schema.outbox.c
        aside = sa.and_(box.agent_id == agent_id, box.state == EntryState.SET_ASIDE.value)
        state = EntryState.SKIPPED if skip else EntryState.WAITING
        resumed = self._connection.execute(
            schema.outbox.update().where(aside).values(state=state.value, next_attempt=0).returning(box.id)
        ).scalar_one_or_none()
        return None if resumed is None else self.entry(resumed)

    @override
    def release(self, agent_id: int, owner: str) -> None:
        box = schema.outbox.c
        held = sa.and_(box.agent_id == agent_id, box.owner == owner)
        self._connection.execute(schema.outbox.update().where(held).values(owner=None, lease_until=0))

    @override
    def hasten(self) -> None:
        box = schema.outbox.c
        late = sa.select(box.id).where(box.state == EntryState.WAITING.value, box.next_attempt > 0).order_by(box.id)
        # Rows are locked in one order, so that two couriers that do this at once never wait for each other.
        self._connection.execute(
            schema.outbox.update().where(box.id.in_(late.with_for_update(skip_locked=True))).values(next_attempt=0)
        )

    @override
    def unsettled(self, agent_ids: Collection[int]) -> dict[int, Entry]:
        rows = self._connection.execute(self._heads().where(schema.outbox.c.agent_id.in_(agent_ids)))
        return {row.agent_id: _entry(row) for row in rows}

    @override
    def publication(self, agent_id: int, number: int) -> Entry:
        box = schema.outbox.c
        wanted = sa.and_(box.agent_id == agent_id, box.number == number, box.kind == EntryKind.PUBLISH.value)
        return _entry(self._connection.execute(self._select().where(wanted)).one())

    @override
    def sizes(self) -> tuple[int, int]:
        state, count = schema.outbox.c.state, sa.func.count()
        unsettled = sa.select(state, count).where(state.in_(_UNSETTLED)).group_by(state)
        found: dict[str, int] = {row[0]: row[1] for row in self._connection.execute(unsettled)}
        return found.get(EntryState.WAITING.value, 0), found.get(EntryState.SET_ASIDE.value, 0)
