"""Whatever somebody does to the stored steps of a trail, looking through it finds it (R-2)."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from agentplat.domain.access import OPERATOR
from agentplat.domain.runs import Run, RunState
from agentplat.domain.steps import Closing, GateRuling, Ruling, StepKind, TakenOver
from agentplat.store import runtime_schema as schema
from agentplat.store.sql import SqlStore
from agentplat.usecases.verify_trail import VerifyTrail
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from tests.agentplat.run_records import execute, leased, opened

pytestmark = pytest.mark.promise("R-2")

STEPS = 6
NUMBERS = st.integers(1, STEPS)
KINDS = [*(kind.value for kind in StepKind), "unheard of"]
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"))


@pytest.fixture
def trails(store: SqlStore) -> tuple[SqlStore, Run]:
    """A run that has ended, in a database that keeps nobody from changing its steps any more."""
    opened(store)
    held = leased(store)
    with store.writing() as work:
        for attempt in (2, 3):
            ruling = GateRuling(call=attempt, ruling=Ruling.BLOCK, rule="capability", reason="no")
            held = work.runs.append(held, [TakenOver(attempt=attempt), ruling], attempt)
        run = work.runs.close(held, Closing(state=RunState.FINISHED, published=("code",)), 9)
    assert run.steps == STEPS
    url = store._engine.url.render_as_string(hide_password=False)
    if store._engine.dialect.name == "sqlite":
        with store.reading() as work:
            names = work.runs._connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars().all()
        execute(url, *(f"DROP TRIGGER {name}" for name in names if "steps" in name))
    else:
        checks = [f"ALTER TABLE steps DROP CONSTRAINT ck_steps_{name}" for name in ("kind", "hashes", "opening")]
        execute(url, "ALTER TABLE steps DISABLE TRIGGER USER", *checks)
    return store, run


changes = st.one_of(
    st.tuples(st.just("number"), NUMBERS, st.integers(STEPS + 1, 2**31 - 1)),
    st.tuples(st.just("kind"), NUMBERS, st.sampled_from(KINDS)),
    st.tuples(st.just("at"), NUMBERS, st.integers(0, 2**40)),
    st.tuples(st.just("body"), NUMBERS, st.one_of(TEXTS, st.just("[" * 50_000))),
    st.tuples(st.sampled_from(["previous", "hash"]), NUMBERS, st.text("0123456789abcdef", min_size=64, max_size=64)),
    st.tuples(st.just("drop"), NUMBERS, st.none()),
    st.tuples(st.just("double"), NUMBERS, st.none()),
    st.tuples(st.just("swap"), st.integers(1, STEPS - 1), st.none()),
    st.tuples(st.just("cut"), NUMBERS, st.none()),
)


def _damage(connection: Connection, run: Run, change: tuple[str, int, Any]) -> bool:
    """Do it; whether it changed anything that is stored."""
    what, number, value = change
    steps = schema.steps
    here = sa.and_(steps.c.run_id == run.id, steps.c.number == number)
    moved = steps.update().where(steps.c.run_id == run.id)
    match what:
        case "drop":
            connection.execute(steps.delete().where(here))
        case "cut":
            connection.execute(steps.delete().where(steps.c.run_id == run.id, steps.c.number >= number))
        case "double":
            row = connection.execute(sa.select(steps).where(here)).one()._asdict()
            for later in range(STEPS, number, -1):
                connection.execute(moved.where(steps.c.number == later).values(number=later + 1))
            connection.execute(steps.insert().values({**row, "number": number + 1}))
        case "swap":
            for old, new in ((number, 0), (number + 1, number), (0, number + 1)):
                connection.execute(moved.where(steps.c.number == old).values(number=new))
        case _:
            before = connection.execute(sa.select(steps.c[what]).where(here)).scalar_one()
            connection.execute(steps.update().where(here).values({what: value}))
            return bool(before != value)
    return True


@given(change=changes)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_single_change_to_the_stored_steps_is_found(trails: tuple[SqlStore, Run], change: tuple[str, int, Any]) -> None:
    store, run = trails
    verify = VerifyTrail(store=store)
    assert verify(OPERATOR, run.id)[2] is None
    with store._engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        kept = [row._asdict() for row in connection.execute(sa.select(schema.steps))]
        connection.commit()
        try:
            with connection.begin():
                changed = _damage(connection, run, change)
            assert (verify(OPERATOR, run.id)[2] is not None) == changed
        finally:
            with connection.begin():
                connection.execute(schema.steps.delete())
                connection.execute(schema.steps.insert(), kept)
