"""Dispatchers of designs that lose runs (R-14). The right one is not here: it is the command itself, `agentplat dispatch run`."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import sqlalchemy as sa
from agentplat.store import runtime_schema as schema
from agentplat.store.sql import SqlStore, SqlWork, open_store

from tests.acceptance.finishing.writers import FINISHES, READY


class Wrong:
    """A dispatcher of a wrong design: it remembers how far it came, and marks what it finds beyond."""

    def __init__(self, store: SqlStore) -> None:
        self.store, self.last = store, 0

    def sweep(self) -> None:
        """Handle what this design sees now."""
        with self.store.writing() as work:
            ready = self.ready(work)
            marked = schema.runs.c.id.in_([row.run_id for row in ready])
            work._connection.execute(schema.runs.update().where(marked).values(dispatched_at=1))
        self.last = max([self.last, *map(self.place, ready)])

    def place(self, row: sa.Row[tuple[int, int, int]]) -> int:
        """What the cursor is on."""
        return int(row.number)

    def beyond(self, work: SqlWork, column: sa.Column[int]) -> list[sa.Row[tuple[int, int, int]]]:
        """The finishes beyond the cursor, in its order."""
        return list(work._connection.execute(sa.select(FINISHES).where(column > self.last).order_by(column)))

    def ready(self, work: SqlWork) -> list[sa.Row[tuple[int, int, int]]]:
        """The finishes to handle."""
        raise NotImplementedError


class NumberBeyondTheLast(Wrong):
    """Everything beyond the highest number seen. A number is drawn before its transaction commits."""

    def ready(self, work: SqlWork) -> list[sa.Row[tuple[int, int, int]]]:
        """All of them."""
        return self.beyond(work, FINISHES.c.number)


class GapsSkippedAfterAWhile(Wrong):
    """Stops before a missing number, and goes over it when it has been missing for some time: shorter than some commits take."""

    PATIENCE_S = 0.002

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store)
        self._missing_since: dict[int, float] = {}

    def ready(self, work: SqlWork) -> list[sa.Row[tuple[int, int, int]]]:
        """From number to number, as far as none is missing that is waited for."""
        found, ready, expected = self.beyond(work, FINISHES.c.number), [], self.last + 1
        for row in found:
            for missing in range(expected, row.number):
                since = self._missing_since.setdefault(missing, time.monotonic())
                if time.monotonic() - since < self.PATIENCE_S:
                    return ready
            ready.append(row)
            expected = row.number + 1
        return ready


class HorizonInASecondStatement(Wrong):
    """A cursor on the transaction, kept below the oldest one under way, which is asked for after the rows were read."""

    def place(self, row: sa.Row[tuple[int, int, int]]) -> int:
        """The transaction."""
        return int(row.xid)

    def ready(self, work: SqlWork) -> list[sa.Row[tuple[int, int, int]]]:
        """The rows read before, of transactions older than those under way now. What committed in between is passed over."""
        found = self.beyond(work, FINISHES.c.xid)
        under_way = "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
        horizon = work._connection.exec_driver_sql(under_way).scalar_one()
        return [row for row in found if row.xid < horizon]


class NewestOfEachSweep(Wrong):
    """The most recent ones, a page of them."""

    PAGE = 5

    def ready(self, work: SqlWork) -> list[sa.Row[tuple[int, int, int]]]:
        """The newest page, whatever was handled before."""
        return list(work._connection.execute(sa.select(FINISHES).order_by(FINISHES.c.number.desc()).limit(self.PAGE)))


WRONG: dict[str, type[Wrong]] = {
    "number beyond the last": NumberBeyondTheLast,
    "gaps skipped after a while": GapsSkippedAfterAWhile,
    "horizon in a second statement": HorizonInASecondStatement,
    "newest of each sweep": NewestOfEachSweep,
}


def dispatch_wrongly(url: str, design: str) -> None:
    """Sweep until the process is killed."""
    pause = threading.Event()
    with closing(open_store(url)) as store:
        dispatcher = WRONG[design](store)
        print(READY, flush=True)
        while not pause.wait(0.002):
            dispatcher.sweep()
