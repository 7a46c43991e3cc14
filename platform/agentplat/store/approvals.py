"""Approvals in SQL (A-14)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.approvals import Approval
from agentplat.domain.artifacts import Blob
from agentplat.store import runtime_schema as schema
from agentplat.store.port import Approvals
from agentplat.store.registry import below
from agentplat.store.schema import agents


def _approval(row: Row[Any]) -> Approval:
    return Approval(
        id=row.id,
        run_id=row.run_id,
        call=row.call,
        digest=row.digest,
        tool=row.tool,
        asked_at=row.asked_at,
        granted=row.granted,
        decided_at=row.decided_at,
        decided_by_id=row.decided_by_id,
        reason=row.reason,
    )


class SqlApprovals(Approvals):
    """Approvals in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _one(self, *conditions: sa.ColumnElement[bool]) -> Approval | None:
        row = self._connection.execute(sa.select(schema.approvals).where(*conditions)).one_or_none()
        return None if row is None else _approval(row)

    @override
    def ask(self, run_id: int, call: int, tool: str, order: Blob, at: int) -> None:
        values = {"run_id": run_id, "call": call, "digest": order.digest, "tool": tool, "arguments_ref": order.ref, "asked_at": at}
        self._connection.execute(schema.approvals.insert().values(values))

    @override
    def of_call(self, run_id: int, call: int) -> Approval | None:
        return self._one(schema.approvals.c.run_id == run_id, schema.approvals.c.call == call)

    @override
    def find(self, approval_id: int) -> Approval | None:
        return self._one(schema.approvals.c.id == approval_id)

    @override
    def page(self, scopes: Collection[str], undecided: bool, before: int | None, size: int) -> list[Approval]:
        approvals, runs = schema.approvals.c, schema.runs.c
        joined = schema.approvals.join(schema.runs, runs.id == approvals.run_id).join(agents, agents.c.id == runs.agent_id)
        wanted = [below(agents.c.scope, scopes)]
        if undecided:
            wanted.append(sa.and_(approvals.granted.is_(None), sa.text("runs.state = 'waiting'")))
        if before is not None:
            wanted.append(approvals.id < before)
        query = sa.select(*approvals).select_from(joined).where(*wanted).order_by(approvals.id.desc()).limit(size)
        return [_approval(row) for row in self._connection.execute(query)]

    @override
    def decide(self, approval: Approval, granted: bool, by: Person, reason: str | None, at: int) -> bool:
        approvals = schema.approvals
        free = sa.and_(approvals.c.id == approval.id, approvals.c.granted.is_(None))
        values = {"granted": granted, "decided_at": at, "decided_by_id": by.id, "reason": reason}
        return self._connection.execute(approvals.update().where(free).values(values)).rowcount == 1
