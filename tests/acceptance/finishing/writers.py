"""Writers that finish runs at once, draw numbers for it, and commit late or never."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing

import sqlalchemy as sa
from agentplat.domain.errors import StoreUnavailable
from agentplat.domain.runs import Run, RunState
from agentplat.domain.steps import Closing
from agentplat.store import runtime_schema as schema
from agentplat.store.sql import SqlStore, open_store

from tests.agentplat.run_records import new_run

EVENT = "done"
READY = json.dumps({"ready": True})
_BATCH = 50
_ROLLED_BACK = 0.03

FINISHES = sa.Table(
    "test_finishes",
    sa.MetaData(),
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    sa.Column("run_id", sa.BigInteger, nullable=False),
    sa.Column("xid", sa.BigInteger, nullable=False, server_default="0"),
)
"""What the wrong designs go by: a number that each finish draws in its transaction, and on PostgreSQL the transaction's own."""


class RolledBack(Exception):
    """A transaction that finished a run, and drew a number, and then did not commit."""


def create_finishes(store: SqlStore) -> None:
    """Add the table of numbers."""
    with store._engine.begin() as connection:
        FINISHES.create(connection)
        if connection.dialect.name == "postgresql":
            default = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
            connection.exec_driver_sql(f"ALTER TABLE test_finishes ALTER COLUMN xid SET DEFAULT {default}")


def own_runs(store: SqlStore, owner: str) -> Iterator[Run]:
    """Runs that this writer holds from their opening on, opened many at once: what is tried is finishing."""
    runs = schema.runs
    held = {"state": RunState.RUNNING.value, "owner": owner, "lease_until": 2**40}
    while True:
        with store.writing() as work:
            mine = []
            for _ in range(_BATCH):
                run = work.runs.open(new_run(work), 1)
                assert run is not None
                work._connection.execute(runs.update().where(runs.c.id == run.id).values(held))
                mine.append(run.id)
        with store.reading() as work:
            found = [work.runs.find(run_id) for run_id in mine]
        yield from (run for run in found if run is not None)


def finish(store: SqlStore, run: Run, chance: random.Random, most_delay_s: float) -> None:
    """Finish a run in a transaction that commits only after a while, or rolls back."""
    with store.writing() as work:
        work._connection.execute(FINISHES.insert().values(run_id=run.id))
        work.runs.close(run, Closing(state=RunState.FINISHED, published=(EVENT,)), 2)
        threading.Event().wait(chance.random() * most_delay_s)
        if chance.random() < _ROLLED_BACK:
            raise RolledBack


def write(url: str, seed: int, count: int, most_delay_s: float) -> None:
    """Finish so many runs."""
    chance = random.Random(seed)
    with closing(open_store(url)) as store:
        print(READY, flush=True)
        runs, done = own_runs(store, f"writer {seed}"), 0
        while done < count:
            try:
                finish(store, next(runs), chance, most_delay_s)
            except (RolledBack, StoreUnavailable):  # undone, the latter for want of a lock in time
                continue
            except StopIteration:  # the generator ended with its own StoreUnavailable
                runs = own_runs(store, f"writer {seed}")
                continue
            done += 1
