"""Tickets in SQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import (
    Author,
    Involved,
    MessageKind,
    NewTicket,
    Party,
    PartyKind,
    Status,
    Ticket,
    TicketChange,
    TicketComment,
    TicketRole,
)
from agentplat.store import work_schema as schema
from agentplat.store.registry import insert
from agentplat.store.runtime_schema import runs
from agentplat.store.schema import agents, people
from agentplat.store.work_port import Tickets

_ROLES = list(TicketRole)
_AT_ONCE = 1_000
"""Tickets asked about in one query; databases take only so many values."""


def _ticket(row: Row[Any]) -> Ticket:
    return Ticket(
        id=row.id,
        workspace_id=row.workspace_id,
        number=row.number,
        title=row.title,
        description=row.description,
        status=Status(row.status),
        version=row.version,
        depth=row.depth,
        parent_id=row.parent_id,
        delegated_by_id=row.delegated_by_id,
        made_by_id=row.made_by_id,
        made_in_run_id=row.made_in_run_id,
        space_id=row.space_id,
        created_at=row.created_at,
    )


def with_authors(table: sa.Table) -> sa.Select[Any]:
    """Rows of a table with their authors: a person, or the agent whose run wrote them; `author` reads them."""
    # One join after the other: for `runs` joined with `agents` in brackets, SQLite would put all runs together first.
    wrote = table.outerjoin(runs, runs.c.id == table.c.run_id).outerjoin(agents, agents.c.id == runs.c.agent_id)
    joined = wrote.outerjoin(people, people.c.id == table.c.person_id)
    columns = (
        agents.c.id.label("author_agent_id"),
        sa.func.coalesce(agents.c.scope, people.c.scope).label("author_scope"),
        sa.func.coalesce(agents.c.name, people.c.name).label("author_name"),
    )
    return sa.select(*table.c, *columns).select_from(joined)


def author(row: Row[Any]) -> Party:
    """The author of a row of `with_authors`."""
    ref = Ref(row.author_scope, row.author_name)
    if row.author_agent_id is not None:
        return Party(kind=PartyKind.AGENT, id=row.author_agent_id, ref=ref)
    return Party(kind=PartyKind.PERSON, id=row.person_id, ref=ref)


def with_parties(table: sa.Table) -> sa.Select[Any]:
    """Rows of a table that names an agent or a person in each; `party` reads which."""
    joined = table.outerjoin(agents, agents.c.id == table.c.agent_id).outerjoin(people, people.c.id == table.c.person_id)
    columns = (
        sa.func.coalesce(agents.c.scope, people.c.scope).label("party_scope"),
        sa.func.coalesce(agents.c.name, people.c.name).label("party_name"),
    )
    return sa.select(*table.c, *columns).select_from(joined)


def party(row: Row[Any]) -> Party:
    """The agent or person of a row of `with_parties`."""
    ref = Ref(row.party_scope, row.party_name)
    if row.agent_id is not None:
        return Party(kind=PartyKind.AGENT, id=row.agent_id, ref=ref)
    return Party(kind=PartyKind.PERSON, id=row.person_id, ref=ref)


def party_columns(found: Party) -> dict[str, int | None]:
    """The two columns that name a party."""
    is_agent = found.kind is PartyKind.AGENT
    return {"agent_id": found.id if is_agent else None, "person_id": None if is_agent else found.id}


class SqlTickets(Tickets):
    """Tickets in SQL; `store.work_port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _all(self, query: sa.Select[Any]) -> list[Ticket]:
        return [_ticket(row) for row in self._connection.execute(query)]

    def _one(self, query: sa.Select[Any]) -> Ticket | None:
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _ticket(row)

    @override
    def make(self, new: NewTicket, at: int) -> Ticket:
        spaces = schema.workspaces
        counted = spaces.update().where(spaces.c.id == new.workspace_id).values(tickets=spaces.c.tickets + 1)
        number = self._connection.execute(counted.returning(spaces.c.tickets)).scalar_one()
        values = {
            "workspace_id": new.workspace_id,
            "number": number,
            "title": new.title,
            "description": new.description,
            "status": new.status.value,
            "depth": new.depth,
            "parent_id": new.parent_id,
            "delegated_by_id": new.delegated_by_id,
            "made_by_id": new.made_by_id,
            "made_in_run_id": new.made_in_run_id,
            "space_id": new.space_id,
            "created_at": at,
        }
        made = schema.tickets.insert().values(values).returning(*schema.tickets.c)
        return _ticket(self._connection.execute(made).one())

    @override
    def find(self, ticket_id: int) -> Ticket | None:
        return self._one(sa.select(schema.tickets).where(schema.tickets.c.id == ticket_id))

    @override
    def numbers(self, ticket_ids: Collection[int]) -> dict[int, int]:
        tickets, ids = schema.tickets.c, sorted(ticket_ids)
        parts = [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]
        queries = [sa.select(tickets.id, tickets.number).where(tickets.id.in_(part)) for part in parts]
        return {row.id: row.number for query in queries for row in self._connection.execute(query)}

    @override
    def numbered(self, workspace_id: int, number: int) -> Ticket | None:
        tickets = schema.tickets.c
        return self._one(sa.select(schema.tickets).where(tickets.workspace_id == workspace_id, tickets.number == number))

    @override
    def page(self, workspace_id: int, statuses: Collection[Status], before: int | None, size: int) -> list[Ticket]:
        tickets = schema.tickets.c
        wanted = sa.and_(
            tickets.workspace_id == workspace_id,
            tickets.status.in_(sorted(status.value for status in statuses)),
            sa.true() if before is None else tickets.number < before,
        )
        return self._all(sa.select(schema.tickets).where(wanted).order_by(tickets.number.desc()).limit(size))

    @override
    def children(self, ticket_id: int) -> list[Ticket]:
        tickets = schema.tickets.c
        return self._all(sa.select(schema.tickets).where(tickets.parent_id == ticket_id).order_by(tickets.id))

    @override
    def change(self, ticket: Ticket, author: Author, at: int, changed: Mapping[str, Any]) -> Ticket | None:
        tickets = schema.tickets
        known = sa.and_(tickets.c.id == ticket.id, tickets.c.version == ticket.version)
        then = {**changed, "version": ticket.version + 1}
        row = self._connection.execute(tickets.update().where(known).values(then).returning(*tickets.c)).one_or_none()
        if row is None:
            return None
        kept = {"ticket_id": ticket.id, "version": ticket.version + 1, "at": at, "body": json.dumps(dict(changed))}
        self._connection.execute(schema.ticket_changes.insert().values(**kept, run_id=author.run_id, person_id=author.person_id))
        return _ticket(row)

    @override
    def changes(self, ticket_id: int) -> list[TicketChange]:
        changes = schema.ticket_changes
        query = with_authors(changes).where(changes.c.ticket_id == ticket_id).order_by(changes.c.version)
        return [
            TicketChange(version=row.version, author=author(row), run_id=row.run_id, body=json.loads(row.body), at=row.at)
            for row in self._connection.execute(query)
        ]

    def _role(self, ticket: Ticket, involved: Involved) -> sa.ColumnElement[bool]:
        roles, named = schema.ticket_roles.c, party_columns(involved.party)
        same = roles.agent_id == named["agent_id"] if named["agent_id"] is not None else roles.person_id == named["person_id"]
        return sa.and_(roles.ticket_id == ticket.id, roles.role == involved.role.value, same)

    @override
    def involve(self, ticket: Ticket, involved: Involved) -> bool:
        roles = schema.ticket_roles
        # Of two who become the assignee at once, the later one takes the place of the earlier.
        self._connection.execute(
            sa.select(schema.tickets.c.id).where(schema.tickets.c.id == ticket.id).with_for_update(key_share=True)
        )
        if self._connection.execute(sa.select(roles.c.id).where(self._role(ticket, involved))).first() is not None:
            return False
        if involved.role is TicketRole.ASSIGNEE:
            before = sa.and_(roles.c.ticket_id == ticket.id, roles.c.role == TicketRole.ASSIGNEE.value)
            self._connection.execute(roles.delete().where(before))
        values = {"ticket_id": ticket.id, "role": involved.role.value, **party_columns(involved.party)}
        added = insert(self._connection, roles).values(values).on_conflict_do_nothing().returning(roles.c.id)
        return self._connection.execute(added).first() is not None

    @override
    def release(self, ticket: Ticket, involved: Involved) -> bool:
        return self._connection.execute(schema.ticket_roles.delete().where(self._role(ticket, involved))).rowcount == 1

    @override
    def involved(self, ticket_id: int) -> list[Involved]:
        roles = schema.ticket_roles
        query = with_parties(roles).where(roles.c.ticket_id == ticket_id).order_by(roles.c.id)
        found = [Involved(role=TicketRole(row.role), party=party(row)) for row in self._connection.execute(query)]
        return sorted(found, key=lambda one: _ROLES.index(one.role))

    @override
    def comment(self, ticket: Ticket, kind: MessageKind, author: Author, body: str, at: int) -> TicketComment:
        comments = schema.ticket_comments
        values = {"kind": kind.value, "run_id": author.run_id, "person_id": author.person_id, "body": body, "at": at}
        added = comments.insert().values(ticket_id=ticket.id, **values).returning(comments.c.id)
        comment_id = self._connection.execute(added).scalar_one()
        return self._comments(with_authors(comments).where(comments.c.id == comment_id))[0]

    def _comments(self, query: sa.Select[Any]) -> Sequence[TicketComment]:
        return [
            TicketComment(id=row.id, kind=MessageKind(row.kind), author=author(row), run_id=row.run_id, body=row.body, at=row.at)
            for row in self._connection.execute(query)
        ]

    @override
    def comments(self, ticket_id: int, after: int, size: int) -> list[TicketComment]:
        comments = schema.ticket_comments
        wanted = with_authors(comments).where(comments.c.ticket_id == ticket_id, comments.c.id > after)
        return list(self._comments(wanted.order_by(comments.c.id).limit(size)))
