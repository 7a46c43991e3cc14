"""A worker of the version before hops, at the schema 0002, kept as it was: it imports nothing of the present software.

It finishes runs, and then opens the runs of the listeners itself, without a hop, for it knows of none.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import rfc8785
import sqlalchemy as sa
from sqlalchemy.engine import Connection

_DELIVERED = "ON CONFLICT (source_run_id, event, agent_id) WHERE event IS NOT NULL DO NOTHING"


def _engine(url: str) -> sa.Engine:
    if url.startswith("postgresql:"):
        return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    try:
        driver = import_module("pysqlite3")
    except ModuleNotFoundError:
        driver = import_module("sqlite3")
    engine = sa.create_engine(url, module=driver, connect_args={"timeout": 10})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON").close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


class OlderWorker:
    """Does one thing after the other, so that a test can end it anywhere."""

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection

    def open_for_a_person(self, agent_id: int) -> int:
        """Open a run that a person asked for."""
        with self._writing() as connection:
            number = connection.execute(
                sa.text("SELECT number FROM published WHERE agent_id = :agent"), {"agent": agent_id}
            ).scalar_one()
            person = connection.execute(sa.text("SELECT min(id) FROM people")).scalar_one()
            origin = {"agent": agent_id, "number": number, "by": "person", "person": person, "source": None, "event": None}
            run_id = self._insert(connection, origin)
            assert run_id is not None
            return run_id

    def lease(self) -> int | None:
        """Take the oldest run that waits."""
        with self._writing() as connection:
            skip = "FOR UPDATE SKIP LOCKED" if connection.dialect.name == "postgresql" else ""
            query = f"SELECT id FROM runs WHERE state = 'queued' ORDER BY id LIMIT 1 {skip}"
            run_id: int | None = connection.execute(sa.text(query)).scalar_one_or_none()
            if run_id is not None:
                held = "UPDATE runs SET state = 'running', owner = 'older', lease_until = :until, attempts = 1 WHERE id = :id"
                connection.execute(sa.text(held), {"until": 2**50, "id": run_id})
            return run_id

    def finish(self, run_id: int) -> None:
        """Add a closing step without a word on hops, and end the run."""
        with self._writing() as connection:
            events = [emission["event"] for emission in self._declared(connection, run_id)["emits"]]
            self._step(connection, run_id, "closing", {"state": "finished", "published": events})
            connection.execute(
                sa.text("UPDATE runs SET state = 'finished', owner = NULL, lease_until = 0 WHERE id = :id"), {"id": run_id}
            )

    def dispatch(self, run_id: int) -> list[int]:
        """Open the runs of everybody who listens now; the numbers of those that were opened."""
        listening = (
            "SELECT a.id, p.number, v.declaration FROM agents a JOIN published p ON p.agent_id = a.id"
            " JOIN versions v ON v.agent_id = p.agent_id AND v.number = p.number"
        )
        with self._writing() as connection:
            source = connection.execute(sa.text("SELECT agent_id, on_behalf_of_id FROM runs WHERE id = :id"), {"id": run_id}).one()
            opened = []
            for emission in self._declared(connection, run_id)["emits"]:
                for listener in connection.execute(sa.text(listening)).all():
                    if listener.id == source.agent_id or emission["event"] not in json.loads(listener.declaration)["listens"]:
                        continue
                    origin = {"agent": listener.id, "number": listener.number, "by": "event", "person": source.on_behalf_of_id}
                    opened.append(self._insert(connection, {**origin, "source": run_id, "event": emission["event"]}))
            return [one for one in opened if one is not None]

    def _declared(self, connection: Connection, run_id: int) -> Any:
        query = (
            "SELECT v.declaration FROM runs r JOIN versions v ON v.agent_id = r.agent_id AND v.number = r.number WHERE r.id = :id"
        )
        return json.loads(connection.execute(sa.text(query), {"id": run_id}).scalar_one())

    def _insert(self, connection: Connection, origin: Mapping[str, Any]) -> int | None:
        columns = "agent_id, number, driver, opened_by, on_behalf_of_id, source_run_id, event, opened_at"
        values = ":agent, :number, 'scripted', :by, :person, :source, :event, :at"
        added = f"INSERT INTO runs ({columns}) VALUES ({values}) {_DELIVERED} RETURNING id"
        at = time.time_ns() // 1_000_000
        run_id: int | None = connection.execute(sa.text(added), {**origin, "at": at}).scalar_one_or_none()
        if run_id is None:
            return None
        agent = connection.execute(sa.text("SELECT scope, name FROM agents WHERE id = :agent"), origin).one()
        opening: dict[str, Any] = {
            "opened_by": origin["by"],
            "agent": f"{agent.scope}:{agent.name}",
            "version": origin["number"],
            "on_behalf_of": "acme:ana",
            "labels": [],
        }
        if origin["source"] is not None:
            told = {"event": origin["event"], "source_agent": "", "source_run": origin["source"], "artifacts": []}
            opening |= {"source_run": origin["source"], "delivery": told}
        self._step(connection, run_id, "opening", opening)
        return run_id

    def _step(self, connection: Connection, run_id: int, kind: str, body: Mapping[str, Any]) -> None:
        row = connection.execute(sa.text("SELECT steps, head FROM runs WHERE id = :id"), {"id": run_id}).one()
        whole = {
            "run": run_id,
            "number": row.steps + 1,
            "kind": kind,
            "at": time.time_ns() // 1_000_000,
            "body": body,
            "previous": row.head or "0" * 64,
        }
        head = hashlib.sha256(rfc8785.dumps(whole)).hexdigest()
        connection.execute(
            sa.text("UPDATE runs SET steps = :steps, head = :head WHERE id = :id"),
            {"steps": whole["number"], "head": head, "id": run_id},
        )
        columns = "run_id, number, kind, at, body, previous, hash"
        step = f"INSERT INTO steps ({columns}) VALUES (:run, :number, :kind, :at, :body, :previous, :hash)"
        connection.execute(sa.text(step), {**whole, "body": rfc8785.dumps(body).decode(), "hash": head})
