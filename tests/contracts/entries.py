"""Entries to append, and what every log must look like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphsvc.domain.model import Declaration, EntryKind, LogEntry, NewEntry, declare
from graphsvc.domain.names import AgentRef, parse_scope
from graphsvc.store.port import Log, Store


def agent(name: str = "developer", scope: str = "acme/platform") -> AgentRef:
    return AgentRef(parse_scope(scope), name)


def published(number: int, who: AgentRef | None = None, emits: Sequence[object] = (), listens: Sequence[str] = ()) -> NewEntry:
    return NewEntry(EntryKind.PUBLISH, who or agent(), number, declare(list(emits), list(listens)))


def retired(number: int, who: AgentRef | None = None) -> NewEntry:
    return NewEntry(EntryKind.RETIRE, who or agent(), number, Declaration())


def append(store: Store, *entries: NewEntry) -> list[LogEntry]:
    """Append in a block of its own."""
    with store.writing() as log:
        return log.append(entries)


def everything(log: Log) -> list[LogEntry]:
    """The whole log, which must have no gap."""
    entries = list(log.read(0))
    assert [entry.revision for entry in entries] == list(range(1, len(entries) + 1))
    return entries


def written_by(author: str, entries: Iterable[LogEntry]) -> list[int]:
    """The numbers of one author's versions, in the order of the log."""
    return [entry.number for entry in entries if entry.agent.name == author]
