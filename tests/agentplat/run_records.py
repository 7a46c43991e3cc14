"""Runs for tests: agents that are published, runs of them that are opened, held and finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from agentplat.content.folder import FolderContent
from agentplat.domain.artifacts import Blob, Delivery
from agentplat.domain.chains import OpenedBy, Position
from agentplat.domain.labels import label_of
from agentplat.domain.runs import DriverKind, NewRun, Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Closing
from agentplat.domain.trail import Fault, verify
from agentplat.store.engine import open_engine
from agentplat.store.port import Store, Work
from agentplat.store.sql import SqlStore

from tests.agentplat.records import content, person

DEVELOPER = Ref("acme/platform", "developer")
REVIEWER = Ref("acme/platform", "reviewer")
ALL_DRIVERS = tuple(DriverKind)
LONG_S = 600.0


def agent_of(store: Store, ref: Ref, emits: tuple[str, ...] = (), listens: tuple[str, ...] = ()) -> None:
    """Publish the next version of an agent, past the graph service."""
    with store.writing() as work:
        agent = work.registry.hold(ref)
        number = work.registry.last_number(agent) + 1
        work.registry.add(agent, number, content(ref, emits, listens, note=str(number)), person(work), number)


def new_run(work: Work, ref: Ref = DEVELOPER, **given: Any) -> NewRun:
    """A run of the published version that somebody opens."""
    agent = work.registry.find(ref)
    assert agent is not None
    assert agent.current is not None
    who = person(work)
    usual: dict[str, Any] = {
        "agent": agent,
        "number": agent.current,
        "driver": DriverKind.SCRIPTED,
        "opened_by": OpenedBy.PERSON,
        "opener": who,
        "on_behalf_of": who,
        "labels": label_of(ref.scope),
    }
    return NewRun(**{**usual, **given})


def opened(store: Store, ref: Ref = DEVELOPER, **given: Any) -> Run:
    """A run that a person opened; its agent is published if need be."""
    with store.reading() as work:
        known = work.registry.find(ref)
    if known is None:
        agent_of(store, ref)
    with store.writing() as work:
        run = work.runs.open(new_run(work, ref, **given), 1)
    assert run is not None
    return run


def by_event(source: Run, event: str = "code", hop: int | None = None) -> dict[str, Any]:
    """What is special of a run that an event of another one opened."""
    assert source.chain is not None
    return {
        "opened_by": OpenedBy.EVENT,
        "opener": None,
        "source_run_id": source.id,
        "position": Position(hop=(source.hop or 0) + 1 if hop is None else hop, chain=source.chain),
        "delivery": Delivery(event=event, source_agent=source.agent.text, source_run=source.id, artifacts=()),
    }


def leased(store: Store, owner: str = "worker", lease_s: float = LONG_S) -> Run:
    """The oldest run that can be leased."""
    with store.writing() as work:
        run = work.runs.lease(ALL_DRIVERS, owner, lease_s)
    assert run is not None
    return run


def finished(store: Store, run: Run) -> Run:
    """The held run, finished without artifacts."""
    with store.writing() as work:
        return work.runs.close(run, Closing(state=RunState.FINISHED), 2)


def stored(store: Store, run_id: int) -> Run:
    """The run as it stands."""
    with store.reading() as work:
        run = work.runs.find(run_id)
    assert run is not None
    return run


def fault_of(store: Store, run_id: int) -> Fault | None:
    """What is wrong with the run's trail as it is stored."""
    with store.reading() as work:
        run = work.runs.find(run_id)
        assert run is not None
        return verify(run.id, run.steps, run.head, run.ended, work.runs.trail(run_id))


def execute(url: str, *statements: str) -> None:
    """Statements of somebody who writes to the database without this software, in one transaction."""
    engine = open_engine(url)
    try:
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


def column(store: SqlStore, name: str, run_id: int) -> Any:
    """A column of a run's row that no value of the domain has."""
    with store._engine.connect() as connection:
        return connection.execute(sa.text(f"SELECT {name} FROM runs WHERE id = {run_id:d}")).scalar_one()


def folder_content(folder: Path) -> FolderContent:
    """A content store below the folder."""
    return FolderContent(folder / "content")


def written(folder: Path, text: str) -> Blob:
    """A text in the content store below the folder."""
    return folder_content(folder).put(text.encode())
