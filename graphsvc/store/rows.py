"""Entries of the log as rows of its table and back.

Each row carries a SHA-256 over all its other columns as they are stored, revision included: a changed byte, a changed number and
two rows that changed places are all noticed. Hashing the stored text takes 0.6 microseconds a row, a tenth of what reading it
takes; the digest of the declaration's canonical JSON would take 20.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from graphsvc.domain.errors import LogDamaged
from graphsvc.domain.model import Declaration, Emit, EntryKind, LogEntry
from graphsvc.domain.names import INSTALLATION, AgentRef, Scope

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_quoted = json.encoder.encode_basestring
_from_json = json.JSONDecoder().decode
_KINDS = {kind.value: kind for kind in EntryKind}


class Row(NamedTuple):
    """The columns of the table, in its order."""

    revision: int
    kind: str
    scope: str
    agent: str
    number: int
    declaration: str
    digest: str


def row_of(entry: LogEntry) -> Row:
    """The entry as it is stored."""
    declaration = _as_text(entry.declaration)
    columns = (entry.revision, entry.kind.value, entry.agent.scope.text, entry.agent.name, entry.number, declaration)
    return Row(*columns, digest=_digest(*columns))


def _as_text(declaration: Declaration) -> str:
    """The declaration as JSON; made by hand, as that takes a third of the time for plain names, which most events are."""
    emits = [_emit_text(emit) if emit.context or emit.artifacts else _quoted(emit.event) for emit in declaration.emits]
    return f'{{"emits":[{",".join(emits)}],"listens":[{",".join(map(_quoted, declaration.listens))}]}}'


def _emit_text(emit: Emit) -> str:
    return _to_json({"event": emit.event, "context": emit.context, "artifacts": emit.artifacts})


def entries_of(rows: Iterable[Row], after: int) -> Iterator[LogEntry]:
    """The entries in rows that must follow on the revision `after` without a gap. Raises LogDamaged."""
    for expected, row in enumerate(rows, start=after + 1):
        if row.revision != expected:
            raise LogDamaged(f"entry {expected} of the log is missing")
        yield entry_of(row)


def entry_of(row: Row) -> LogEntry:
    """The entry in a row. Raises LogDamaged when the row is not what was written.

    What was written had been checked, so that nothing but the digest is checked again.
    """
    revision, kind, scope, agent, number, declaration, digest = row
    if _digest(revision, kind, scope, agent, number, declaration) != digest:
        raise LogDamaged(f"entry {revision} of the log is not what was written: its digest does not match")
    return LogEntry(revision, _KINDS[kind], AgentRef(_scope(scope), agent), number, _declaration(declaration))


def _digest(revision: int, kind: str, scope: str, agent: str, number: int, declaration: str) -> str:
    # Names have no control characters, so that the lines can be told apart.
    text = f"{revision}\n{kind}\n{scope}\n{agent}\n{number}\n{declaration}"
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=65_536)
def _scope(text: str) -> Scope:
    if text == INSTALLATION:
        return Scope()
    company, slash, area = text.partition("/")
    return Scope(company, area if slash else None)


def _declaration(text: str) -> Declaration:
    values = _from_json(text)
    emits = [Emit(e) if isinstance(e, str) else Emit(e["event"], e["context"], tuple(e["artifacts"])) for e in values["emits"]]
    return Declaration(tuple(emits), tuple(values["listens"]))
