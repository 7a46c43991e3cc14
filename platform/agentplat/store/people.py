"""People, grants, tokens and recorded acts in SQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Grant, Person, Role, Token
from agentplat.domain.acts import Act
from agentplat.domain.scopes import Ref
from agentplat.store import schema
from agentplat.store.port import Acts, People
from agentplat.store.registry import behind, below, insert


def _person(row: Any) -> Person:
    return Person(id=row.id, ref=Ref(row.scope, row.name))


def _token(row: Row[Any]) -> Token:
    return Token(id=row.id, name=row.name, created_at=row.created_at, expires_at=row.expires_at, revoked_at=row.revoked_at)


class SqlPeople(People):
    """People in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def find(self, ref: Ref) -> Person | None:
        people = schema.people
        query = sa.select(people).where(people.c.scope == ref.scope, people.c.name == ref.name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _person(row)

    @override
    def by_id(self, person_id: int) -> Person:
        return _person(self._connection.execute(sa.select(schema.people).where(schema.people.c.id == person_id)).one())

    @override
    def add(self, ref: Ref, created_at: int) -> Person | None:
        values = {"scope": ref.scope, "name": ref.name, "created_at": created_at}
        add = insert(self._connection, schema.people).values(values).on_conflict_do_nothing().returning(schema.people.c.id)
        person_id = self._connection.execute(add).scalar_one_or_none()
        return None if person_id is None else Person(id=person_id, ref=ref)

    @override
    def page(self, scopes: Collection[str], after: Ref | None, size: int) -> list[Person]:
        people = schema.people
        wanted = sa.and_(below(people.c.scope, scopes), behind(people.c.scope, people.c.name, after))
        query = sa.select(people).where(wanted).order_by(people.c.scope, people.c.name).limit(size)
        return [_person(row) for row in self._connection.execute(query)]

    @override
    def grants(self, person: Person) -> frozenset[Grant]:
        grants = schema.grants.c
        rows = self._connection.execute(sa.select(grants.role, grants.scope).where(grants.person_id == person.id))
        return frozenset(Grant(Role(row.role), row.scope) for row in rows)

    @override
    def grant(self, person: Person, grant: Grant) -> bool:
        values = {"person_id": person.id, "role": grant.role.value, "scope": grant.scope}
        add = insert(self._connection, schema.grants).values(values).on_conflict_do_nothing()
        return self._connection.execute(add.returning(schema.grants.c.person_id)).first() is not None

    @override
    def revoke(self, person: Person, grant: Grant) -> bool:
        grants = schema.grants.c
        held = sa.and_(grants.person_id == person.id, grants.role == grant.role.value, grants.scope == grant.scope)
        return self._connection.execute(schema.grants.delete().where(held)).rowcount == 1

    @override
    def tokens(self, person: Person) -> list[Token]:
        tokens = schema.tokens
        rows = self._connection.execute(sa.select(tokens).where(tokens.c.person_id == person.id).order_by(tokens.c.id))
        return [_token(row) for row in rows]

    @override
    def add_token(self, person: Person, name: str, sha256: str, created_at: int, expires_at: int | None) -> Token | None:
        tokens = schema.tokens
        values = {"person_id": person.id, "name": name, "sha256": sha256, "created_at": created_at, "expires_at": expires_at}
        add = insert(self._connection, tokens).values(values)
        row = self._connection.execute(
            add.on_conflict_do_nothing(index_elements=["person_id", "name"]).returning(*tokens.c)
        ).one_or_none()
        return None if row is None else _token(row)

    @override
    def revoke_token(self, person: Person, name: str, revoked_at: int) -> bool:
        tokens = schema.tokens.c
        valid = sa.and_(tokens.person_id == person.id, tokens.name == name, tokens.revoked_at.is_(None))
        return self._connection.execute(schema.tokens.update().where(valid).values(revoked_at=revoked_at)).rowcount == 1

    @override
    def holder(self, sha256: str, now: int, session: str | None = None) -> Person | None:
        tokens, people, ended = schema.tokens.c, schema.people.c, schema.ended_sessions.c
        valid = sa.and_(tokens.revoked_at.is_(None), sa.or_(tokens.expires_at.is_(None), tokens.expires_at > now))
        if session is not None:
            valid = sa.and_(valid, ~sa.exists().where(ended.sha256 == session))
        joined = schema.tokens.join(schema.people, people.id == tokens.person_id)
        query = sa.select(people.id, people.scope, people.name).select_from(joined).where(tokens.sha256 == sha256, valid)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _person(row)

    @override
    def end_session(self, session: str, until: int, now: int) -> None:
        ended = schema.ended_sessions
        # Those that would have ended by now are refused without being remembered.
        self._connection.execute(ended.delete().where(ended.c.until < now))
        values = {"sha256": session, "until": until}
        self._connection.execute(insert(self._connection, ended).values(values).on_conflict_do_nothing())


class SqlActs(Acts):
    """Acts in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def record(self, at: int, actor: Person | None, act: str, subject: Ref, details: Mapping[str, Any]) -> None:
        self._connection.execute(
            schema.acts.insert().values(
                at=at,
                actor_id=None if actor is None else actor.id,
                act=act,
                scope=subject.scope,
                subject=subject.text,
                details=json.dumps(details),
            )
        )

    @override
    def page(self, scopes: Collection[str], before: int | None, size: int) -> list[Act]:
        acts, people = schema.acts.c, schema.people.c
        wanted = sa.and_(below(acts.scope, scopes), sa.true() if before is None else acts.id < before)
        joined = schema.acts.outerjoin(schema.people, people.id == acts.actor_id)
        columns = (*acts, people.scope.label("actor_scope"), people.name.label("actor_name"))
        rows = self._connection.execute(sa.select(*columns).select_from(joined).where(wanted).order_by(acts.id.desc()).limit(size))
        return [
            Act(
                id=row.id,
                at=row.at,
                actor=None if row.actor_id is None else Ref(row.actor_scope, row.actor_name),
                act=row.act,
                scope=row.scope,
                subject=row.subject,
                details=json.loads(row.details),
            )
            for row in rows
        ]
