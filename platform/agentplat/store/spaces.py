"""Spaces, messages, and where runs work, in SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.autonomy import Autonomy, autonomy_of
from agentplat.domain.modes import Mode
from agentplat.domain.registry import Agent
from agentplat.domain.runs import ENDED
from agentplat.domain.spaces import Mention, MentionOutcome, Message, Space, Workplace
from agentplat.domain.tickets import Author, MessageKind
from agentplat.store import work_schema as schema
from agentplat.store.proposals import in_scopes
from agentplat.store.registry import SqlRegistry, insert
from agentplat.store.runtime_schema import runs
from agentplat.store.tickets import author, party, party_columns, with_authors, with_parties
from agentplat.store.work_port import Spaces


def _space(row: Row[Any]) -> Space:
    return Space(
        id=row.id,
        workspace_id=row.workspace_id,
        name=row.name,
        mode=Mode(row.mode),
        created_at=row.created_at,
        removed_at=row.removed_at,
    )


def _lock_number(of: str) -> int:
    """The number by which PostgreSQL knows a lock."""
    return int(sha256(of.encode()).hexdigest()[:15], 16)


class SqlSpaces(Spaces):
    """Spaces in SQL; `store.work_port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _one(self, query: sa.Select[Any]) -> Space | None:
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _space(row)

    @override
    def add(self, workspace_id: int, name: str, mode: Mode, by: Person | None, at: int) -> Space | None:
        values = {"workspace_id": workspace_id, "name": name, "mode": mode.value, "created_at": at}
        added = insert(self._connection, schema.spaces).values(**values, created_by_id=None if by is None else by.id)
        row = self._connection.execute(added.on_conflict_do_nothing().returning(*schema.spaces.c)).one_or_none()
        return None if row is None else _space(row)

    @override
    def find(self, space_id: int) -> Space | None:
        return self._one(sa.select(schema.spaces).where(schema.spaces.c.id == space_id))

    @override
    def hold(self, space_id: int) -> Space | None:
        # Not against those who only refer to the space, as every message and every run in it does.
        return self._one(sa.select(schema.spaces).where(schema.spaces.c.id == space_id).with_for_update(key_share=True))

    @override
    def page(self, workspace_id: int, after: int, size: int) -> list[Space]:
        spaces = schema.spaces.c
        wanted = sa.and_(spaces.workspace_id == workspace_id, spaces.id > after, spaces.removed_at.is_(None))
        found = self._connection.execute(sa.select(schema.spaces).where(wanted).order_by(spaces.id).limit(size))
        return [_space(row) for row in found]

    @override
    def set_mode(self, space: Space, mode: Mode) -> None:
        self._connection.execute(schema.spaces.update().where(schema.spaces.c.id == space.id).values(mode=mode.value))

    @override
    def remove(self, space: Space, at: int) -> bool:
        spaces = schema.spaces
        there = sa.and_(spaces.c.id == space.id, spaces.c.removed_at.is_(None))
        return self._connection.execute(spaces.update().where(there).values(removed_at=at)).rowcount == 1

    @override
    def add_participant(self, space: Space, agent: Agent, by: Person, at: int) -> bool:
        values = {"space_id": space.id, "agent_id": agent.id, "added_at": at, "added_by_id": by.id}
        added = insert(self._connection, schema.participants).values(values).on_conflict_do_nothing()
        return self._connection.execute(added.returning(schema.participants.c.agent_id)).first() is not None

    @override
    def remove_participant(self, space: Space, agent: Agent) -> bool:
        participants = schema.participants
        there = sa.and_(participants.c.space_id == space.id, participants.c.agent_id == agent.id)
        return self._connection.execute(participants.delete().where(there)).rowcount == 1

    @override
    def participants(self, space_id: int) -> list[Agent]:
        participants = schema.participants.c
        found = sa.select(participants.agent_id).where(participants.space_id == space_id)
        ids = self._connection.execute(found.order_by(participants.added_at, participants.agent_id)).scalars().all()
        registry = SqlRegistry(self._connection)
        return [registry.by_id(agent_id) for agent_id in ids]

    @override
    def set_autonomy(self, space: Space, agent: Agent, level: Autonomy, by: Person, at: int) -> None:
        values = {"level": level.value, "set_at": at, "set_by_id": by.id}
        put = insert(self._connection, schema.autonomies).values(space_id=space.id, agent_id=agent.id, **values)
        self._connection.execute(put.on_conflict_do_update(index_elements=["space_id", "agent_id"], set_=values))

    @override
    def autonomy(self, space_id: int, agent_id: int) -> Autonomy | None:
        autonomies = schema.autonomies.c
        query = sa.select(autonomies.level).where(autonomies.space_id == space_id, autonomies.agent_id == agent_id)
        level = self._connection.execute(query).scalar_one_or_none()
        return None if level is None else autonomy_of(level)

    @override
    def say(
        self,
        space: Space,
        kind: MessageKind,
        author: Author,
        body: str,
        at: int,
        tickets: Sequence[int] = (),
    ) -> int:
        values = {"kind": kind.value, "run_id": author.run_id, "person_id": author.person_id, "body": body, "at": at}
        self._in_order(space.id, "pg_advisory_xact_lock_shared")
        said = schema.messages.insert().values(space_id=space.id, **values).returning(schema.messages.c.id)
        message_id: int = self._connection.execute(said).scalar_one()
        rows = [{"message_id": message_id, "ticket_id": ticket_id} for ticket_id in dict.fromkeys(tickets)]
        if rows:
            self._connection.execute(schema.message_tickets.insert(), rows)
        return message_id

    def _in_order(self, space_id: int, lock: str) -> None:
        """Let a reader wait for those who are just writing to the space.

        They may commit in another order than that of their messages' ids, and whoever goes on from the last id that they saw would
        then never see an earlier one. On SQLite there is one writer at a time.
        """
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql(f"SELECT {lock}({_lock_number(f'messages of space {space_id}')})")

    @override
    def mention(self, message_id: int, mentions: Sequence[Mention]) -> None:
        rows = [
            {
                "message_id": message_id,
                **party_columns(mention.party),
                "outcome": mention.outcome.value,
                "run_id": mention.run_id,
                "reason": mention.reason,
            }
            for mention in mentions
        ]
        if rows:
            self._connection.execute(schema.mentions.insert(), rows)

    def _messages(self, query: sa.Select[Any]) -> list[Message]:
        rows = self._connection.execute(query).all()
        ids = [row.id for row in rows]
        tickets: dict[int, list[int]] = {}
        named = sa.select(schema.message_tickets).where(schema.message_tickets.c.message_id.in_(ids))
        for row in self._connection.execute(named.order_by(schema.message_tickets.c.ticket_id)):
            tickets.setdefault(row.message_id, []).append(row.ticket_id)
        mentions: dict[int, list[Mention]] = {}
        called = with_parties(schema.mentions).where(schema.mentions.c.message_id.in_(ids)).order_by(schema.mentions.c.id)
        for row in self._connection.execute(called):
            found = Mention(party=party(row), outcome=MentionOutcome(row.outcome), run_id=row.run_id, reason=row.reason)
            mentions.setdefault(row.message_id, []).append(found)
        return [
            Message(
                id=row.id,
                space_id=row.space_id,
                kind=MessageKind(row.kind),
                author=author(row),
                run_id=row.run_id,
                body=row.body,
                at=row.at,
                tickets=tuple(tickets.get(row.id, ())),
                mentions=tuple(mentions.get(row.id, ())),
            )
            for row in rows
        ]

    @override
    def messages(self, space_id: int, after: int, size: int) -> list[Message]:
        messages = schema.messages
        self._in_order(space_id, "pg_advisory_xact_lock")
        wanted = with_authors(messages).where(messages.c.space_id == space_id, messages.c.id > after)
        return self._messages(wanted.order_by(messages.c.id).limit(size))

    @override
    def last_said(self, space_ids: Collection[int]) -> dict[int, int]:
        messages = schema.messages.c
        query: sa.Select[Any] = sa.select(messages.space_id, sa.func.max(messages.id).label("last"))
        rows = self._connection.execute(query.where(messages.space_id.in_(space_ids)).group_by(messages.space_id))
        return {row.space_id: row.last for row in rows}

    @override
    def newest(self, space_id: int, size: int) -> list[Message]:
        messages = schema.messages
        wanted = with_authors(messages).where(messages.c.space_id == space_id).order_by(messages.c.id.desc())
        return self._messages(wanted.limit(size))[::-1]

    @override
    def beginning(self, space_id: int, size: int) -> int:
        messages = schema.messages.c
        newest = sa.select(messages.id).where(messages.space_id == space_id).order_by(messages.id.desc())
        return self._connection.execute(newest.offset(size).limit(1)).scalar() or 0

    @override
    def message(self, message_id: int) -> Message | None:
        found = self._messages(with_authors(schema.messages).where(schema.messages.c.id == message_id))
        return found[0] if found else None

    @override
    def referring(self, ticket_id: int, size: int) -> list[Message]:
        messages, refer = schema.messages, schema.message_tickets.c
        ids = sa.select(refer.message_id).where(refer.ticket_id == ticket_id)
        return self._messages(with_authors(messages).where(messages.c.id.in_(ids)).order_by(messages.c.id.desc()).limit(size))

    @override
    def hold_pair(self, agent_id: int, other_id: int) -> None:
        # On SQLite there is one writer at a time anyway.
        if self._connection.dialect.name == "postgresql":
            pair = f"mentions between {min(agent_id, other_id)} and {max(agent_id, other_id)}"
            self._connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_lock_number(pair)})")

    @override
    def mentions_between(self, agent_id: int, other_id: int, since: int) -> int:
        messages, mentions = schema.messages, schema.mentions
        joined = mentions.join(messages, messages.c.id == mentions.c.message_id).join(runs, runs.c.id == messages.c.run_id)
        either = sa.or_(
            sa.and_(runs.c.agent_id == agent_id, mentions.c.agent_id == other_id),
            sa.and_(runs.c.agent_id == other_id, mentions.c.agent_id == agent_id),
        )
        wanted = sa.and_(messages.c.at >= since, mentions.c.outcome == MentionOutcome.OPENED.value, either)
        counted = sa.select(sa.func.count(sa.distinct(messages.c.id))).select_from(joined).where(wanted)
        return self._connection.execute(counted).scalar_one()

    @override
    def mentions_of(
        self, person_id: int, scopes: Collection[str], workspace_id: int | None, before: int | None, size: int
    ) -> list[tuple[int, Message]]:
        messages, mentions, spaces = schema.messages, schema.mentions.c, schema.spaces.c
        there = sa.select(spaces.id).where(
            spaces.removed_at.is_(None),
            in_scopes(spaces.id, scopes),
            sa.true() if workspace_id is None else spaces.workspace_id == workspace_id,
        )
        wanted = sa.and_(
            messages.c.id.in_(sa.select(mentions.message_id).where(mentions.person_id == person_id)),
            messages.c.space_id.in_(there),
            sa.true() if before is None else messages.c.id < before,
        )
        found = self._messages(with_authors(messages).where(wanted).order_by(messages.c.id.desc()).limit(size))
        of_space = sa.select(spaces.id, spaces.workspace_id).where(spaces.id.in_({message.space_id for message in found}))
        workspaces = {row.id: row.workspace_id for row in self._connection.execute(of_space)}
        return [(workspaces[message.space_id], message) for message in found]

    @override
    def place(self, run_id: int, workplace: Workplace) -> None:
        values = {
            "run_id": run_id,
            "space_id": workplace.space_id,
            "mode": workplace.mode.value,
            "message_id": workplace.message_id,
            "ticket_id": workplace.ticket_id,
        }
        self._connection.execute(schema.workplaces.insert().values(values))

    @override
    def workplace(self, run_id: int) -> Workplace | None:
        places, spaces = schema.workplaces, schema.spaces
        joined = places.join(spaces, spaces.c.id == places.c.space_id)
        query = sa.select(*places.c, spaces.c.workspace_id).select_from(joined).where(places.c.run_id == run_id)
        row = self._connection.execute(query).one_or_none()
        if row is None:
            return None
        return Workplace(
            workspace_id=row.workspace_id,
            space_id=row.space_id,
            mode=Mode(row.mode),
            message_id=row.message_id,
            ticket_id=row.ticket_id,
        )

    def _runs(self, wanted: sa.ColumnElement[bool], size: int) -> list[int]:
        run_id = schema.workplaces.c.run_id
        return list(self._connection.execute(sa.select(run_id).where(wanted).order_by(run_id.desc()).limit(size)).scalars())

    @override
    def runs_of(self, space_id: int, size: int) -> list[int]:
        return self._runs(schema.workplaces.c.space_id == space_id, size)

    @override
    def runs_on(self, ticket_id: int, size: int) -> list[int]:
        return self._runs(schema.workplaces.c.ticket_id == ticket_id, size)

    @override
    def unended(self, space_id: int) -> list[int]:
        places = schema.workplaces
        joined = places.join(runs, runs.c.id == places.c.run_id)
        still = sa.and_(places.c.space_id == space_id, runs.c.state.not_in([state.value for state in sorted(ENDED)]))
        return list(self._connection.execute(sa.select(runs.c.id).select_from(joined).where(still).order_by(runs.c.id)).scalars())
