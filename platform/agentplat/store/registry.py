"""Agents, versions and reports in SQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.registry import Agent, Content, Declared, Emission, KeptReport, ReportState, Source, Version
from agentplat.domain.scopes import INSTALLATION, Ref
from agentplat.store import schema
from agentplat.store.port import Registry

_LATE = sa.text("reports.state = 'late'")


def insert(connection: Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An insert of the connection's dialect, which both know ``ON CONFLICT``."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def below(column: sa.Column[str], scopes: Iterable[str]) -> sa.ColumnElement[bool]:
    """Whether the column's scope is one of these or below one."""
    found: list[sa.ColumnElement[bool]] = []
    for scope in scopes:
        if scope == INSTALLATION:
            return sa.true()
        found.append(column == scope)
        if "/" not in scope:
            # '0' is the character behind '/': a range instead of LIKE, whose wild cards may stand in a company's name.
            found.append(sa.and_(column >= f"{scope}/", column < f"{scope}0"))
    return sa.or_(sa.false(), *found)


def behind(scope: sa.Column[str], name: sa.Column[str], after: Ref | None) -> sa.ColumnElement[bool]:
    """Whether a row comes after the reference, by scope, then name."""
    if after is None:
        return sa.true()
    return sa.or_(scope > after.scope, sa.and_(scope == after.scope, name > after.name))


def _emission_json(emission: Emission) -> dict[str, Any]:
    return {"event": emission.event, "context": emission.context, "artifacts": list(emission.artifacts)}


def _content(agent: Ref, row: Row[Any]) -> Content:
    declared = json.loads(row.declaration)
    return Content(
        agent=agent,
        manifest=json.loads(row.manifest),
        digest=row.digest,
        emits=tuple(Emission(event=e["event"], context=e["context"], artifacts=tuple(e["artifacts"])) for e in declared["emits"]),
        listens=tuple(declared["listens"]),
    )


def _agent(row: Any) -> Agent:
    return Agent(id=row.id, ref=Ref(row.scope, row.name), paused=row.paused, current=row.current)


def _declared(row: Row[Any], declaration: Mapping[str, Any]) -> Declared:
    return Declared(
        agent=Ref(row.scope, row.name),
        paused=row.paused,
        emits=tuple(sorted(emission["event"] for emission in declaration["emits"])),
        listens=tuple(sorted(declaration["listens"])),
    )


def _report(state: str, body: str | None, scopes: str) -> KeptReport:
    read = None if body is None else json.loads(body)
    return KeptReport(state=ReportState(state), body=read, scopes=tuple(json.loads(scopes)))


class SqlRegistry(Registry):
    """Registry in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _agents(self) -> sa.Select[Any]:
        agents, published = schema.agents.c, schema.published.c
        columns = (agents.id, agents.scope, agents.name, agents.paused, published.number.label("current"))
        return sa.select(*columns).select_from(schema.agents.outerjoin(schema.published, published.agent_id == agents.id))

    @override
    def find(self, ref: Ref) -> Agent | None:
        row = self._connection.execute(
            self._agents().where(schema.agents.c.scope == ref.scope, schema.agents.c.name == ref.name)
        ).one_or_none()
        return None if row is None else _agent(row)

    @override
    def by_id(self, agent_id: int) -> Agent:
        return _agent(self._connection.execute(self._agents().where(schema.agents.c.id == agent_id)).one())

    @override
    def hold(self, ref: Ref) -> Agent:
        agents = schema.agents
        self._connection.execute(insert(self._connection, agents).values(scope=ref.scope, name=ref.name).on_conflict_do_nothing())
        held = sa.select(agents.c.id).where(agents.c.scope == ref.scope, agents.c.name == ref.name).with_for_update()
        # Read again after the lock was granted: what its last holder wrote is visible only to a later statement.
        return self.by_id(self._connection.execute(held).scalar_one())

    @override
    def page(self, scopes: Collection[str], after: Ref | None, size: int) -> list[Agent]:
        agents = schema.agents.c
        wanted = sa.and_(below(agents.scope, scopes), behind(agents.scope, agents.name, after))
        rows = self._connection.execute(self._agents().where(wanted).order_by(agents.scope, agents.name).limit(size))
        return [_agent(row) for row in rows]

    @override
    def named(self, name: str, scopes: Collection[str], size: int) -> list[Agent]:
        agents = schema.agents.c
        wanted = sa.and_(agents.name == name, below(agents.scope, scopes))
        return [_agent(row) for row in self._connection.execute(self._agents().where(wanted).order_by(agents.scope).limit(size))]

    @override
    def last_number(self, agent: Agent) -> int:
        newest = sa.select(sa.func.max(schema.versions.c.number)).where(schema.versions.c.agent_id == agent.id)
        return self._connection.execute(newest).scalar() or 0

    @override
    def add(self, agent: Agent, number: int, content: Content, publisher: Person, published_at: int) -> None:
        declaration = {"emits": [_emission_json(e) for e in content.emits], "listens": list(content.listens)}
        self._connection.execute(
            schema.versions.insert().values(
                agent_id=agent.id,
                number=number,
                manifest=json.dumps(content.manifest),
                digest=content.digest,
                declaration=json.dumps(declaration),
                publisher_id=publisher.id,
                published_at=published_at,
            )
        )
        if content.emits:
            rows = [
                {"agent_id": agent.id, "number": number, **_emission_json(e), "artifacts": json.dumps(e.artifacts)}
                for e in content.emits
            ]
            self._connection.execute(schema.emissions.insert(), rows)
        publish = insert(self._connection, schema.published).values(agent_id=agent.id, number=number)
        self._connection.execute(publish.on_conflict_do_update(index_elements=["agent_id"], set_={"number": number}))
        self.keep_report(agent.id, number, KeptReport(state=ReportState.NOT_ANSWERED, body=None, scopes=()))

    @override
    def retire(self, agent: Agent) -> None:
        self._connection.execute(schema.published.delete().where(schema.published.c.agent_id == agent.id))

    @override
    def pause(self, agent: Agent, paused: bool) -> None:
        self._connection.execute(schema.agents.update().where(schema.agents.c.id == agent.id).values(paused=paused))

    def _versions(self, agent: Agent) -> sa.Select[Any]:
        versions, people = schema.versions.c, schema.people.c
        columns = (versions.number, versions.manifest, versions.digest, versions.declaration, versions.published_at)
        joined = schema.versions.join(schema.people, people.id == versions.publisher_id)
        return sa.select(*columns, people.scope, people.name).select_from(joined).where(versions.agent_id == agent.id)

    def _version(self, agent: Agent, row: Row[Any]) -> Version:
        return Version(
            agent=agent,
            number=row.number,
            content=_content(agent.ref, row),
            publisher=Ref(row.scope, row.name),
            published_at=row.published_at,
        )

    @override
    def version(self, agent: Agent, number: int) -> Version | None:
        row = self._connection.execute(self._versions(agent).where(schema.versions.c.number == number)).one_or_none()
        return None if row is None else self._version(agent, row)

    @override
    def versions(self, agent: Agent, below: int | None, size: int) -> list[Version]:
        number = schema.versions.c.number
        wanted = sa.true() if below is None else number < below
        rows = self._connection.execute(self._versions(agent).where(wanted).order_by(number.desc()).limit(size))
        return [self._version(agent, row) for row in rows]

    @override
    def paused_among(self, refs: Collection[Ref]) -> set[Ref]:
        agents = schema.agents.c
        by_scope: dict[str, list[str]] = {}
        for ref in refs:
            by_scope.setdefault(ref.scope, []).append(ref.name)
        wanted = [sa.and_(agents.scope == scope, agents.name.in_(names)) for scope, names in by_scope.items()]
        query = sa.select(agents.scope, agents.name).where(agents.paused, sa.or_(sa.false(), *wanted))
        return {Ref(row.scope, row.name) for row in self._connection.execute(query)}

    @override
    def listeners(self, event: str) -> list[Agent]:
        agents, triggers, published = schema.agents.c, schema.triggers.c, schema.published.c
        current = sa.and_(published.agent_id == triggers.agent_id, published.number == triggers.number)
        joined = schema.triggers.join(schema.published, current).join(schema.agents, agents.id == triggers.agent_id)
        columns = (agents.id, agents.scope, agents.name, agents.paused, published.number.label("current"))
        found: sa.Select[Any] = sa.select(*columns).select_from(joined).where(triggers.event == event)
        return [_agent(row) for row in self._connection.execute(found.order_by(agents.scope, agents.name))]

    @override
    def sources(self, events: Collection[str], scopes: Collection[str]) -> list[Source]:
        agents, emissions, published = schema.agents.c, schema.emissions.c, schema.published.c
        current = sa.and_(published.agent_id == emissions.agent_id, published.number == emissions.number)
        joined = schema.emissions.join(schema.published, current).join(schema.agents, agents.id == emissions.agent_id)
        query = (
            sa.select(agents.scope, agents.name, emissions.event, emissions.artifacts)
            .select_from(joined)
            .where(emissions.event.in_(events), below(agents.scope, scopes))
            .order_by(emissions.event, agents.scope, agents.name)
        )
        return [
            Source(agent=Ref(row.scope, row.name), event=row.event, artifacts=tuple(json.loads(row.artifacts)))
            for row in self._connection.execute(query)
        ]

    @override
    def declared(self, scopes: Collection[str], size: int) -> list[Declared]:
        agents, published, versions = schema.agents.c, schema.published.c, schema.versions.c
        current = sa.and_(versions.agent_id == published.agent_id, versions.number == published.number)
        joined = schema.published.join(schema.versions, current).join(schema.agents, agents.id == published.agent_id)
        query: sa.Select[Any] = sa.select(agents.scope, agents.name, agents.paused, versions.declaration).select_from(joined)
        rows = self._connection.execute(query.where(below(agents.scope, scopes)).order_by(agents.scope, agents.name).limit(size))
        return [_declared(row, json.loads(row.declaration)) for row in rows]

    @override
    def hearers(self, events: Collection[str], scopes: Collection[str]) -> list[tuple[str, Ref]]:
        agents, triggers, published = schema.agents.c, schema.triggers.c, schema.published.c
        current = sa.and_(published.agent_id == triggers.agent_id, published.number == triggers.number)
        joined = schema.triggers.join(schema.published, current).join(schema.agents, agents.id == triggers.agent_id)
        query = (
            sa.select(triggers.event, agents.scope, agents.name)
            .select_from(joined)
            .where(triggers.event.in_(events), below(agents.scope, scopes))
            .order_by(triggers.event, agents.scope, agents.name)
        )
        return [(row.event, Ref(row.scope, row.name)) for row in self._connection.execute(query)]

    @override
    def keep_report(self, agent_id: int, number: int, report: KeptReport) -> None:
        kept = {
            "state": report.state.value,
            "body": None if report.body is None else json.dumps(report.body),
            "scopes": json.dumps(report.scopes),
        }
        keep = insert(self._connection, schema.reports).values(agent_id=agent_id, number=number, **kept)
        self._connection.execute(keep.on_conflict_do_update(index_elements=["agent_id", "number"], set_=kept))

    @override
    def report(self, agent: Agent, number: int) -> KeptReport:
        reports = schema.reports.c
        query = sa.select(reports.state, reports.body, reports.scopes).where(reports.agent_id == agent.id, reports.number == number)
        row = self._connection.execute(query).one()
        return _report(row.state, row.body, row.scopes)

    @override
    def late(self, publisher: Person, scopes: Collection[str], size: int) -> list[tuple[Agent, int, KeptReport]]:
        agents, published, reports, versions = schema.agents.c, schema.published.c, schema.reports.c, schema.versions.c
        current = sa.and_(published.agent_id == reports.agent_id, published.number == reports.number)
        version = sa.and_(versions.agent_id == reports.agent_id, versions.number == reports.number)
        joined = (
            schema.reports.join(schema.published, current)
            .join(schema.versions, version)
            .join(schema.agents, agents.id == reports.agent_id)
        )
        query = (
            sa.select(
                *(agents.id, agents.scope, agents.name, agents.paused, published.number.label("current")),
                *(reports.number, reports.state, reports.body, reports.scopes),
            )
            .select_from(joined)
            .where(_LATE, versions.publisher_id == publisher.id, below(agents.scope, scopes))
            .order_by(versions.published_at.desc(), agents.scope, agents.name)
            .limit(size)
        )
        return [
            (_agent(row), row.number, _report(row.state, row.body, row.scopes)) for row in self._connection.execute(query).all()
        ]
