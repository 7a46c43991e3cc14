"""Budgets and reservations in SQL (A-15, A-16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.budgets import Budget, Holder, HolderKind, Unit
from agentplat.store import runtime_schema as schema
from agentplat.store import work_schema
from agentplat.store.port import Budgets
from agentplat.store.registry import insert


def _of_holders(holders: Sequence[Holder]) -> sa.ColumnElement[bool]:
    budgets = schema.budgets.c
    keys: dict[HolderKind, list[str]] = {}
    for holder in holders:
        keys.setdefault(holder.kind, []).append(holder.key)
    # By kind, so that the statement is the same for every run, and is put together once.
    return sa.or_(sa.false(), *(sa.and_(budgets.holder == kind.value, budgets.key.in_(found)) for kind, found in keys.items()))


def _in_order(rows: Sequence[Row[Any]], holders: Sequence[Holder]) -> list[Budget]:
    """The rows as values, by holder from the broadest, then by unit."""
    places = {(holder.kind.value, holder.key): i for i, holder in enumerate(holders)}
    units = list(Unit)
    found = [
        Budget(
            id=row.id,
            holder=holders[places[row.holder, row.key]],
            unit=Unit(row.unit),
            ceiling=row.ceiling,
            reserved=row.reserved,
            spent=row.spent,
        )
        for row in rows
    ]
    return sorted(found, key=lambda b: (places[b.holder.kind.value, b.holder.key], units.index(b.unit)))


def _escrows(*wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Escrows with the unit of their budget, by budget."""
    escrows, budgets = work_schema.escrows, schema.budgets
    joined = escrows.join(budgets, budgets.c.id == escrows.c.budget_id)
    return sa.select(*escrows.c, budgets.c.unit).select_from(joined).where(*wanted).order_by(budgets.c.id, escrows.c.run_id)


class SqlBudgets(Budgets):
    """Budgets in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _make(self, holder: Holder, unit: Unit, ceiling: int | None) -> None:
        values = {"holder": holder.kind.value, "key": holder.key, "unit": unit.value, "ceiling": ceiling}
        self._connection.execute(insert(self._connection, schema.budgets).values(values).on_conflict_do_nothing())

    @override
    def hold(self, holders: Sequence[Holder], units: Sequence[Unit], own: Mapping[Unit, int]) -> list[Budget]:
        budgets = schema.budgets
        wanted = sa.and_(_of_holders(holders), budgets.c.unit.in_([unit.value for unit in units]))
        known = {(row.holder, row.key, row.unit) for row in self._connection.execute(sa.select(budgets).where(wanted))}
        # Rows are made in one order and locked in one order, so that nobody waits for somebody who waits for them.
        for holder in sorted(holders, key=lambda found: (found.kind.value, found.key)):
            for unit in sorted(units):
                if (holder.kind.value, holder.key, unit.value) not in known:
                    self._make(holder, unit, own.get(unit) if holder == holders[-1] else None)
        locked = sa.select(budgets).where(wanted).order_by(budgets.c.id).with_for_update()
        return _in_order(self._connection.execute(locked).all(), holders)

    @override
    def reserve(self, run_id: int, call: int, amounts: Mapping[Unit, int], budgets: Sequence[Budget]) -> None:
        table = schema.budgets
        for unit, amount in amounts.items():
            more = {"reserved": table.c.reserved + amount}
            charged = [budget.id for budget in budgets if budget.unit is unit]
            self._connection.execute(table.update().where(table.c.id.in_(charged)).values(more))
        rows = [{"run_id": run_id, "call": call, "budget_id": b.id, "amount": amounts.get(b.unit, 0)} for b in budgets]
        self._connection.execute(schema.reservations.insert(), rows)

    def _open(self, run_id: int, call: int | None) -> Sequence[Any]:
        reservations, budgets = schema.reservations.c, schema.budgets.c
        joined = schema.reservations.join(schema.budgets, budgets.id == reservations.budget_id)
        wanted = [reservations.run_id == run_id, reservations.settled.is_(None)]
        if call is not None:
            wanted.append(reservations.call == call)
        query = sa.select(reservations.call, reservations.budget_id, reservations.amount, budgets.unit).select_from(joined)
        return self._connection.execute(query.where(*wanted).order_by(budgets.id)).all()

    @override
    def open_calls(self, run_id: int) -> dict[int, dict[Unit, int]]:
        found: dict[int, dict[Unit, int]] = {}
        for row in self._open(run_id, None):
            found.setdefault(row.call, {})[Unit(row.unit)] = row.amount
        return dict(sorted(found.items()))

    @override
    def settle(self, run_id: int, call: int, took: Mapping[Unit, int]) -> dict[Unit, int]:
        budgets, reservations = schema.budgets, schema.reservations
        # In the order of `hold`, for the same reason.
        ids = sorted(row.budget_id for row in self._open(run_id, call))
        self._connection.execute(sa.select(budgets.c.id).where(budgets.c.id.in_(ids)).order_by(budgets.c.id).with_for_update())
        # Only now: whoever had the rows before may have settled the same call.
        rows = self._open(run_id, call)
        settled: dict[Unit, int] = {}
        for unit, held in dict.fromkeys((Unit(row.unit), row.amount) for row in rows):
            amount = settled[unit] = took.get(unit, held)
            charged = [row.budget_id for row in rows if row.unit == unit.value]
            moved = {"reserved": budgets.c.reserved - held, "spent": budgets.c.spent + amount}
            self._connection.execute(budgets.update().where(budgets.c.id.in_(charged)).values(moved))
            these = (reservations.c.run_id == run_id, reservations.c.call == call, reservations.c.budget_id.in_(charged))
            self._connection.execute(reservations.update().where(*these).values(settled=amount))
        return dict(sorted(settled.items()))

    @override
    def set_aside(self, run_id: int, delegator_run_id: int, amounts: Mapping[Unit, int], budgets: Sequence[Budget]) -> None:
        charged = [budget for budget in budgets if budget.unit in amounts]
        for budget in charged:
            self._move(budget.id, reserved=amounts[budget.unit])
        of_run = {"run_id": run_id, "delegator_run_id": delegator_run_id}
        rows = [{**of_run, "budget_id": budget.id, "amount": amounts[budget.unit]} for budget in charged]
        if rows:
            self._connection.execute(work_schema.escrows.insert(), rows)

    @override
    def escrowed(self, run_id: int) -> dict[Unit, int]:
        return {Unit(row.unit): row.amount for row in self._connection.execute(_escrows(work_schema.escrows.c.run_id == run_id))}

    def _move(self, budget_id: int, *, reserved: int = 0, spent: int = 0) -> None:
        budgets = schema.budgets
        moved = {"reserved": budgets.c.reserved + reserved, "spent": budgets.c.spent + spent}
        self._connection.execute(budgets.update().where(budgets.c.id == budget_id).values(moved))

    def end(self, run_id: int) -> dict[int, dict[Unit, int]]:
        """Settle all that is set aside for a run that ends: what its open calls took, by call, is given.

        What became of a call that is still open nobody knows, so it took its worst case, whoever ends the run. What was set aside
        for the run itself turns into what it spent.
        """
        self._lock_of_ending(run_id)
        settled = {call: self.settle(run_id, call, {}) for call in self.open_calls(run_id)}
        self._give_back(run_id)
        return settled

    def _lock_of_ending(self, run_id: int) -> None:
        """Lock every budget that the end of the run changes, all at once and in the order of `hold`."""
        budgets, escrows = schema.budgets, work_schema.escrows.c
        known: set[int] = set()
        while True:
            set_aside = sa.select(escrows.budget_id).where(escrows.run_id == run_id, escrows.settled.is_(None))
            wanted = {row.budget_id for row in self._open(run_id, None)} | set(self._connection.execute(set_aside).scalars())
            if wanted <= known:
                return
            # A run that this one was delegated by may just have ended, and have handed its own budgets on.
            own = sa.and_(budgets.c.holder == HolderKind.RUN.value, budgets.c.key == str(run_id))
            locked = sa.select(budgets.c.id).where(sa.or_(budgets.c.id.in_(wanted), own)).order_by(budgets.c.id)
            self._connection.execute(locked.with_for_update())
            known |= wanted

    def _give_back(self, run_id: int) -> None:
        """Turn what is set aside for the run into what it spent; what it delegated and goes on stays set aside in its place."""
        escrows, budgets = work_schema.escrows, schema.budgets.c
        set_aside = self._connection.execute(_escrows(escrows.c.run_id == run_id, escrows.c.settled.is_(None))).all()
        if not set_aside:
            return
        own = sa.and_(budgets.holder == HolderKind.RUN.value, budgets.key == str(run_id))
        spent = {row.unit: row.spent for row in self._connection.execute(sa.select(schema.budgets).where(own))}
        open_below = sa.and_(escrows.c.delegator_run_id == run_id, escrows.c.settled.is_(None))
        going_on = self._connection.execute(_escrows(own, open_below)).all()
        for row in set_aside:
            later = [one for one in going_on if one.unit == row.unit]
            took = spent.get(row.unit, 0)
            self._move(row.budget_id, reserved=sum(one.amount for one in later) - row.amount, spent=took)
            this = sa.and_(escrows.c.run_id == run_id, escrows.c.budget_id == row.budget_id)
            self._connection.execute(escrows.update().where(this).values(settled=took))
            for one in later:
                values = {"run_id": one.run_id, "budget_id": row.budget_id, "delegator_run_id": row.delegator_run_id}
                self._connection.execute(escrows.insert().values(**values, amount=one.amount))

    @override
    def set_ceiling(self, holder: Holder, unit: Unit, ceiling: int | None) -> None:
        budgets = schema.budgets
        self._make(holder, unit, ceiling)
        this = sa.and_(_of_holders([holder]), budgets.c.unit == unit.value)
        self._connection.execute(budgets.update().where(this).values(ceiling=ceiling))

    @override
    def of(self, holders: Sequence[Holder]) -> list[Budget]:
        return _in_order(self._connection.execute(sa.select(schema.budgets).where(_of_holders(holders))).all(), holders)
