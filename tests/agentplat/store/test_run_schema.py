"""What the database refuses about runs and their trails, whoever writes."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from agentplat.domain.artifacts import blob_of
from agentplat.store.sql import SqlStore

from tests.agentplat.run_records import REVIEWER, agent_of, by_event, execute, finished, leased, opened, stored

DECLASSIFY = "INSERT INTO declassifications (artifact_id, label, reason, person_id, at, expires_at)"
ZEROS, ONES = "0" * 64, "1" * 64


@pytest.fixture
def run_id(store: SqlStore) -> int:
    """A finished run with an artifact that opened another one."""
    run = opened(store, input=blob_of(b"in"))
    with store.writing() as work:
        work.artifacts.publish(run, "cause", blob_of(b"out"), run.labels, 1)
    finished(store, leased(store))
    agent_of(store, REVIEWER)
    opened(store, REVIEWER, **by_event(stored(store, run.id)))
    return run.id


REFUSED = [
    "UPDATE steps SET body = '{}'",
    "DELETE FROM steps",
    f"INSERT INTO steps SELECT run_id, number + 1, 'waiting', at, body, hash, '{ONES}' FROM steps WHERE kind = 'closing'",
    f"INSERT INTO steps SELECT run_id, 3, 'waiting', at, body, hash, '{ONES}' FROM steps WHERE run_id <> :id",
    f"INSERT INTO steps SELECT run_id, 2, 'waiting', at, body, '{ZEROS}', '{ONES}' FROM steps WHERE run_id <> :id",
    f"INSERT INTO steps SELECT run_id, 2, 'opening', at, body, hash, '{ONES}' FROM steps WHERE run_id <> :id",
    f"INSERT INTO steps SELECT run_id, 2, 'guess', at, body, hash, '{ONES}' FROM steps WHERE run_id <> :id",
    "DELETE FROM runs",
    "UPDATE runs SET state = 'queued' WHERE id = :id",
    "UPDATE runs SET state = 'failed' WHERE id = :id",
    "UPDATE runs SET state = 'waiting' WHERE id <> :id",
    "UPDATE runs SET state = 'lost' WHERE id <> :id",
    "UPDATE runs SET hop = 0 WHERE id <> :id",
    "UPDATE runs SET hop = NULL, chain_id = NULL WHERE id <> :id",
    "UPDATE runs SET chain_id = id WHERE id <> :id",
    "UPDATE runs SET source_run_id = NULL WHERE id <> :id",
    "UPDATE runs SET event = 'other' WHERE id <> :id",
    "UPDATE runs SET opened_by = 'person' WHERE id <> :id",
    "UPDATE runs SET number = 7",
    "UPDATE runs SET dispatched_at = 1 WHERE id <> :id",
    "UPDATE runs SET set_aside_at = 1",
    "UPDATE artifacts SET digest = ref",
    f"UPDATE artifacts SET digest = '{ONES}'",
    "UPDATE artifacts SET labels = '[]'",
    "UPDATE artifacts SET erased_at = 1",
    "DELETE FROM artifacts",
    f"UPDATE run_inputs SET digest = '{ONES}'",
    "DELETE FROM run_inputs",
    f"{DECLASSIFY} SELECT a.id, 'area:acme/platform', 'why', p.id, 1, 2 FROM artifacts a, people p",
    f"{DECLASSIFY} SELECT a.id, 'company:acme', 'why', p.id, 1, 2 FROM artifacts a, people p",
    f"{DECLASSIFY} SELECT a.id, 'untrusted', '', p.id, 1, 2 FROM artifacts a, people p",
    f"{DECLASSIFY} SELECT a.id, 'untrusted', 'why', p.id, 2, 2 FROM artifacts a, people p",
    "INSERT INTO platform_limits (id) VALUES (2)",
    "UPDATE platform_limits SET chain_hops = 0",
    "INSERT INTO outcomes (source_run_id, kind, at) VALUES (:id, 'paused', 1)",
    "INSERT INTO outcomes (source_run_id, event, listener_id, kind, at) SELECT :id, 'e', id, 'no_listeners', 1 FROM agents",
    "INSERT INTO outcomes (source_run_id, event, listener_id, kind, at) SELECT :id, 'e', id, 'opened', 1 FROM agents",
    "INSERT INTO outcomes (source_run_id, kind, at) SELECT :id, 'no_listeners', 1 FROM agents",
    "INSERT INTO budgets (holder, key, unit, reserved) VALUES ('run', '1', 'tokens', -1)",
    "INSERT INTO budgets (holder, key, unit) SELECT 'run', '1', 'tokens' FROM agents",
]


@pytest.mark.promise("R-2")
@pytest.mark.parametrize("statement", REFUSED)
def test_what_must_never_be_false_of_a_run_is_refused_by_the_database(
    store: SqlStore, database_url: str, run_id: int, statement: str
) -> None:
    before = stored(store, run_id)
    with pytest.raises(sa.exc.IntegrityError):
        execute(database_url, statement.replace(":id", str(run_id)))
    assert stored(store, run_id) == before


def test_an_artifact_is_erased_once_and_an_approval_decided_once(store: SqlStore, database_url: str, run_id: int) -> None:
    erase = "UPDATE artifacts SET erased_at = 5, erased_by_id = (SELECT min(id) FROM people)"
    asked = "INSERT INTO approvals (run_id, call, digest, tool, arguments_ref, asked_at)"
    decide = "UPDATE approvals SET granted = TRUE, decided_at = 5, decided_by_id = (SELECT min(id) FROM people)"
    execute(database_url, erase, f"{asked} VALUES ({run_id}, 1, '{ONES}', 'write', 'sha256:1', 1)", decide)
    for again in (erase, decide, "UPDATE approvals SET granted = NULL, decided_at = NULL, decided_by_id = NULL"):
        with pytest.raises(sa.exc.IntegrityError, match="never changed"):
            execute(database_url, again)
    with store.reading() as work:
        assert work.artifacts.of_run(run_id)["cause"].erased_at == 5


def test_outcomes_and_declassifications_are_never_changed(database_url: str, run_id: int) -> None:
    execute(
        database_url,
        f"INSERT INTO outcomes (source_run_id, kind, at) VALUES ({run_id}, 'no_listeners', 1)",
        f"{DECLASSIFY} SELECT a.id, 'untrusted', 'read by a person', p.id, 1, 2 FROM artifacts a, people p",
    )
    for statement in (
        "UPDATE outcomes SET at = 2",
        "DELETE FROM outcomes",
        "UPDATE declassifications SET expires_at = 9",
        "DELETE FROM declassifications",
    ):
        with pytest.raises(sa.exc.IntegrityError, match="never changed"):
            execute(database_url, statement)
