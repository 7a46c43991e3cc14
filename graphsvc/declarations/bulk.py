"""Files of declarations as columns: the same versions and the same refusals as `files.read_files` has, many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import numpy as np

from graphsvc.columns import Columns, Longs, columns_of
from graphsvc.declarations.faults import Faults
from graphsvc.declarations.files import READERS, STANDARD_INPUT, Read, name_of, parquet_reader, read_file, repeated
from graphsvc.declarations.part import Part
from graphsvc.domain.errors import Violation
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.kernels.nodes import UNKNOWN, Nodes
from graphsvc.kernels.rows import longer

_VERSIONS_AT_ONCE = 4_096
_LINE_BITS = 40
_NO_SCOPE = 2**31 - 1


class Given:
    """Where each agent was given first: numbers and UTF-8 only, as there may be millions."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._agents = Nodes(str)
        self._scopes: dict[Scope, int] = {}
        self._first: Longs = np.zeros(0, np.int64)

    def refusals(self, file: int, lines: Longs, columns: Columns) -> Iterator[tuple[int, Violation]]:
        """Lines of agents that may not be given here, and why; all are remembered."""
        known = self._agents.count
        scopes = np.array([self._scopes.setdefault(scope, len(self._scopes)) for scope in columns.scopes], np.int32)
        agents = self._agents.add_texts(scopes[columns.scope], *columns.names)  # there are no events, so nodes are agents
        self._first = longer(self._first, self._agents.count)
        places = (file << _LINE_BITS) + lines
        fresh = np.zeros(agents.size, np.bool_)
        fresh[np.unique(agents, return_index=True)[1]] = True
        fresh &= agents >= known
        self._first[agents[fresh]] = places[fresh]
        again = np.flatnonzero(~fresh)
        for at, version in zip(again.tolist(), columns.taken(again).agents() if again.size else (), strict=True):
            first = int(self._first[agents[at]])
            there = self._text(first >> _LINE_BITS, first & ((1 << _LINE_BITS) - 1))
            yield int(lines[at]), repeated(version, self._text(file, int(lines[at])), there)

    def of(self, agent: AgentRef) -> tuple[str, int | None] | None:
        """The path and the line where an agent is given, no line in a file of rows. None for standard input and unknown agents."""
        found = self._agents.find([self._scopes.get(agent.scope, _NO_SCOPE)], [agent.name])[0]
        if found == UNKNOWN:
            return None
        file, line = divmod(int(self._first[found]), 1 << _LINE_BITS)
        path = self._paths[file]
        if path == STANDARD_INPUT:
            return None
        return path, None if Path(path).suffix.lower() == ".parquet" else line

    def _text(self, file: int, line: int) -> str:
        return f"{name_of(self._paths[file])}:{line}"


class _InOrder(Faults):
    """Lets what was read before be judged first, so that faults are told in the order of the lines."""

    def __init__(self, faults: Faults, before: Callable[[], None]) -> None:
        super().__init__()
        self._faults, self._before = faults, before

    def add(self, violations: Iterable[Violation]) -> None:
        """Keep these violations behind those of what was read before."""
        self._before()
        self._faults.add(violations)

    def extend(self, others: Faults) -> None:
        """The same for those that another collection holds."""
        self._before()
        self._faults.extend(others)


def _read_parquet(stream: BinaryIO, source: str, faults: Faults) -> Iterator[Part]:
    if parquet_reader(source, faults):
        parts: Iterator[Part] = import_module("graphsvc.declarations.parquet_columns").read_parquet_columns(stream, source, faults)
        yield from parts


_READERS: dict[str, Read[tuple[int, AgentVersion] | Part]] = {**READERS, ".parquet": _read_parquet}


class _Reading:
    """One reading of files."""

    def __init__(self, given: Given) -> None:
        self.faults = Faults()
        self._given = given
        self._file = 0
        self._pending: list[tuple[int, AgentVersion]] = []
        self.ready: deque[Columns] = deque()

    def read(self, file: int, path: str) -> Iterator[None]:
        """Read a file; there may be something ready each time that this yields."""
        self._file = file
        for found in read_file(path, _InOrder(self.faults, self._flush), _READERS):
            if isinstance(found, Part):
                self._take(found)
            else:
                self._pending.append(found)
                if len(self._pending) == _VERSIONS_AT_ONCE:
                    self._flush()
            yield
        self._flush()
        yield

    def _flush(self) -> None:
        if self._pending:
            lines, versions = zip(*self._pending, strict=True)
            self._pending = []
            self._take(Part(np.array(lines, np.int64), columns_of(versions), []))

    def _take(self, part: Part) -> None:
        again = self._given.refusals(self._file, part.lines, part.columns)
        found = [*part.refused, *((line, (why,)) for line, why in again)]
        for _, violations in sorted(found, key=lambda each: each[0]):
            self.faults.add(violations)
        if part.columns.size and not self.faults:
            self.ready.append(part.columns)


def read_columns(paths: Sequence[str], given: Given | None = None) -> Iterator[Columns]:
    """The versions that files declare, a few thousand at a time; see `files.read_files` for paths, order and refusals.

    given: made for these paths, to be told where each agent is.
    """
    reading = _Reading(given or Given(paths))
    for file, path in enumerate(paths):
        for _ in reading.read(file, path):
            while reading.ready:
                yield reading.ready.popleft()
    reading.faults.raise_if_any()
