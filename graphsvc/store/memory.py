"""The log in memory, for tests: gone with the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Lock

from graphsvc.domain.errors import GraphError, StoreUnavailable, VersionConflict
from graphsvc.domain.model import EntryKind, LogEntry, NewEntry
from graphsvc.domain.names import AgentRef


class MemoryStore:
    """A store for the threads of one process."""

    def __init__(self, *, patience_s: float) -> None:
        """patience_s: how many seconds a writer waits for its turn before StoreUnavailable is raised."""
        self._patience_s = patience_s
        self._turn = Lock()
        self._consistent = Lock()
        self._entries: list[LogEntry] = []
        self._published: dict[tuple[AgentRef, int], LogEntry] = {}

    def head(self) -> int:
        """The newest revision, 0 for an empty log."""
        return len(self._entries)

    def read(self, after: int) -> Iterator[LogEntry]:
        """Entries with a revision above `after`."""
        for position in count(after):
            if position >= len(self._entries):
                return
            yield self._entries[position]

    def find(self, agent: AgentRef, number: int) -> LogEntry | None:
        """The entry that published this version of this agent, or None."""
        with self._consistent:
            return self._published.get((agent, number))

    @contextmanager
    def writing(self) -> Iterator[_MemoryWriting]:
        """Hold the write lock. Raises StoreUnavailable when the turn does not come in time."""
        if not self._turn.acquire(timeout=self._patience_s):
            raise StoreUnavailable
        try:
            block = _MemoryWriting(self)
            yield block
            appended = block.finish()
            with self._consistent:
                self._published.update(_publications(appended))
                self._entries.extend(appended)
        finally:
            self._turn.release()

    def close(self) -> None:
        """Nothing to release."""


class _MemoryWriting:
    """The log with what this block appended, which nobody else sees yet."""

    def __init__(self, committed: MemoryStore) -> None:
        self._committed = committed
        self._appended: list[LogEntry] = []
        self._published: dict[tuple[AgentRef, int], LogEntry] = {}
        self._spoilt: GraphError | None = None

    def head(self) -> int:
        return self._committed.head() + len(self._appended)

    def read(self, after: int) -> Iterator[LogEntry]:
        yield from self._committed.read(after)
        yield from self._appended[max(0, after - self._committed.head()) :]

    def find(self, agent: AgentRef, number: int) -> LogEntry | None:
        return self._published.get((agent, number)) or self._committed.find(agent, number)

    def append(self, entries: Sequence[NewEntry]) -> list[LogEntry]:
        if self._spoilt:
            raise self._spoilt
        appended = []
        for revision, new in enumerate(entries, start=self.head() + 1):
            entry = LogEntry(revision, new.kind, new.agent, new.number, new.declaration)
            if new.kind is EntryKind.PUBLISH:
                if self.find(new.agent, new.number):
                    self._spoilt = VersionConflict(new.agent.text, new.number)
                    raise self._spoilt
                self._published[new.agent, new.number] = entry
            appended.append(entry)
        self._appended += appended
        return appended

    def finish(self) -> list[LogEntry]:
        """What is to be committed. Raises again whatever spoilt the block."""
        if self._spoilt:
            raise self._spoilt
        return self._appended


def _publications(entries: Sequence[LogEntry]) -> dict[tuple[AgentRef, int], LogEntry]:
    return {(entry.agent, entry.number): entry for entry in entries if entry.kind is EntryKind.PUBLISH}
