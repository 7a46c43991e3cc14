"""The log in SQLite or PostgreSQL.

Reading goes page by page, each in a transaction of its own: entries are never changed and have no gap, so that pages join without a
seam, a block is seen whole, and a reader who stops half-way leaves no connection or snapshot open behind them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import IntegrityError

from graphsvc.domain.errors import VersionConflict
from graphsvc.domain.model import EntryKind, LogEntry, NewEntry
from graphsvc.domain.names import AgentRef
from graphsvc.store.engines import WRITING
from graphsvc.store.failures import failures_told
from graphsvc.store.rows import Row, entries_of, entry_of, row_of
from graphsvc.store.schema import log

_PAGE = 1_000
"""Entries read or inserted at a time."""

_COLUMNS = ", ".join(Row._fields)

_INSERT_ROWS = f"INSERT INTO {log.name} ({_COLUMNS}) VALUES ({', '.join('?' for _ in Row._fields)})"
_INSERT_FROM_JSON = text(
    f"INSERT INTO {log.name} ({_COLUMNS}) SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{log.name}, CAST(:rows AS json))"
)


class SqlStore:
    """A store on a database that already has the schema."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def head(self) -> int:
        """The newest revision, 0 for an empty log."""
        with self._reading() as connection:
            return _head(connection)

    def read(self, after: int) -> Iterator[LogEntry]:
        """Entries with a revision above `after`, in pages. Raises LogDamaged at an entry that is missing or changed."""
        return _joined(self._page, after)

    def find(self, agent: AgentRef, number: int) -> LogEntry | None:
        """The entry that published this version of this agent, or None. Raises LogDamaged."""
        with self._reading() as connection:
            return _find(connection, agent, number)

    @contextmanager
    def writing(self) -> Iterator[_SqlWriting]:
        """Hold the write lock. Raises StoreUnavailable when the turn does not come in time."""
        with failures_told(), self._engine.connect().execution_options(**{WRITING: True}) as connection, connection.begin():
            block = _SqlWriting(connection)
            yield block
            block.finish()

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._engine.dispose()

    def _page(self, after: int) -> list[LogEntry]:
        with self._reading() as connection:
            return _page(connection, after)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with failures_told(), self._engine.connect() as connection:
            yield connection


class _SqlWriting:
    """The log on the connection that holds the write lock."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._head = _head(connection)
        self._spoilt: Exception | None = None

    def head(self) -> int:
        return self._head

    def read(self, after: int) -> Iterator[LogEntry]:
        return _joined(self._page, after)

    def find(self, agent: AgentRef, number: int) -> LogEntry | None:
        with failures_told():
            return _find(self._connection, agent, number)

    def append(self, entries: Sequence[NewEntry]) -> list[LogEntry]:
        self.finish()
        drawn = [
            LogEntry(revision, new.kind, new.agent, new.number, new.declaration)
            for revision, new in enumerate(entries, start=self._head + 1)
        ]
        try:
            with failures_told():
                for start in range(0, len(drawn), _PAGE):
                    self._insert(drawn[start : start + _PAGE])
        except Exception as error:
            # Some pages of this call may be in: committing the block would leave half of it in the log.
            self._spoilt = error
            raise
        self._head += len(drawn)
        return drawn

    def finish(self) -> None:
        """Raise again whatever spoilt the block, so that it is rolled back even if its writer went on."""
        if self._spoilt:
            raise self._spoilt

    def _insert(self, entries: Sequence[LogEntry]) -> None:
        try:
            # Only a savepoint leaves PostgreSQL able to say which of the entries it was.
            with self._connection.begin_nested():
                _insert(self._connection, [row_of(entry) for entry in entries])
        except IntegrityError as error:
            conflict = self._first_conflict(entries)
            if conflict is None:
                raise
            raise VersionConflict(conflict.agent.text, conflict.number) from error

    def _first_conflict(self, entries: Sequence[LogEntry]) -> LogEntry | None:
        seen: set[tuple[AgentRef, int]] = set()
        for entry in entries:
            if entry.kind is not EntryKind.PUBLISH:
                continue
            version = entry.agent, entry.number
            if version in seen or self.find(*version):
                return entry
            seen.add(version)
        return None

    def _page(self, after: int) -> list[LogEntry]:
        with failures_told():
            return _page(self._connection, after)


def _head(connection: Connection) -> int:
    newest: int | None = connection.execute(select(func.max(log.c.revision))).scalar_one()
    return newest or 0


def _page(connection: Connection, after: int) -> list[LogEntry]:
    query = select(log).where(log.c.revision > after).order_by(log.c.revision).limit(_PAGE)
    return list(entries_of((Row(*row) for row in connection.execute(query).all()), after))


def _insert(connection: Connection, rows: Sequence[Row]) -> None:
    if connection.dialect.name == "postgresql":
        # As one value: a message for each row takes five times as long.
        values = [row._asdict() for row in rows]
        connection.execute(_INSERT_FROM_JSON, {"rows": json.dumps(values, ensure_ascii=False)})
    else:
        # By the driver itself: putting parameters together for each row takes longer than storing it.
        connection.exec_driver_sql(_INSERT_ROWS, list(rows))


def _find(connection: Connection, agent: AgentRef, number: int) -> LogEntry | None:
    published = (log.c.scope == agent.scope.text, log.c.agent == agent.name, log.c.number == number)
    row = connection.execute(select(log).where(log.c.kind == EntryKind.PUBLISH.value, *published)).one_or_none()
    return None if row is None else entry_of(Row(*row))


def _joined(page_after: Callable[[int], list[LogEntry]], after: int) -> Iterator[LogEntry]:
    while page := page_after(after):
        yield from page
        after = page[-1].revision
