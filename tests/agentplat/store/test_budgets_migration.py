"""Budgets on their way to the schema in which pipelines hold some: neither they nor what refers to them changes (O-8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from agentplat.store.engine import open_engine
from agentplat.store.migrating import migrate

from tests.agentplat.run_records import execute

VERSION = f"(1, 1, '{{}}', '{'0' * 64}', '{{}}', 1, 1)"
BEFORE = (
    "INSERT INTO people (id, scope, name, created_at) VALUES (1, 'acme', 'ana', 1)",
    "INSERT INTO agents (id, scope, name) VALUES (1, 'acme', 'writer')",
    f"INSERT INTO versions (agent_id, number, manifest, digest, declaration, publisher_id, published_at) VALUES {VERSION}",
    "INSERT INTO runs (agent_id, number, driver, opened_by, on_behalf_of_id, opened_at) VALUES (1, 1, 'scripted', 'person', 1, 1)",
    "INSERT INTO budgets (id, holder, key, unit, ceiling, reserved, spent) VALUES (3, 'scope', 'acme', 'tokens', 10, 2, 5)",
    "INSERT INTO budgets (id, holder, key, unit) VALUES (7, 'run', '1', 'tokens')",
    "INSERT INTO reservations (run_id, call, budget_id, amount) VALUES (1, 1, 3, 2), (1, 1, 7, 2)",
)


def _rows(url: str, query: str) -> Sequence[Any]:
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query))]
    finally:
        engine.dispose()


@pytest.mark.promise("O-8", "D-16")
def test_budgets_and_what_is_set_aside_in_them_stay_as_they_were_and_pipelines_may_hold_some(empty_url: str) -> None:
    migrate(empty_url, "0003")
    execute(empty_url, *BEFORE)
    kept = [
        _rows(empty_url, "SELECT id, holder, key, unit, ceiling, reserved, spent FROM budgets ORDER BY id"),
        _rows(empty_url, "SELECT run_id, call, budget_id, amount FROM reservations ORDER BY budget_id"),
    ]
    with pytest.raises(sa.exc.IntegrityError):
        execute(empty_url, "INSERT INTO budgets (holder, key, unit) VALUES ('pipeline', '1', 'tokens')")
    migrate(empty_url)
    assert [
        _rows(empty_url, "SELECT id, holder, key, unit, ceiling, reserved, spent FROM budgets ORDER BY id"),
        _rows(empty_url, "SELECT run_id, call, budget_id, amount FROM reservations ORDER BY budget_id"),
    ] == kept
    execute(empty_url, "INSERT INTO budgets (holder, key, unit) VALUES ('pipeline', '1', 'tokens')")
    for wrong in (
        "INSERT INTO budgets (holder, key, unit) VALUES ('project', '1', 'tokens')",
        "INSERT INTO budgets (holder, key, unit) VALUES ('pipeline', '1', 'tokens')",
        "INSERT INTO reservations (run_id, call, budget_id, amount) VALUES (1, 2, 99, 1)",
        "DELETE FROM budgets WHERE id = 3",
    ):
        with pytest.raises(sa.exc.IntegrityError):
            execute(empty_url, wrong)
