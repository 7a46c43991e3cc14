"""Files of declarations, read by their endings as one input in which every agent is given once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.jsonlines import read_json_lines, write_json_lines
from graphsvc.declarations.manifest import read_manifests
from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import AgentRef

STANDARD_INPUT = "-"
"""The path that stands for JSON lines on standard input."""

_JSON_LINES = ".jsonl"
INSTALL_PARQUET = "install it with: pip install 'loopwarden[parquet]'"

_T = TypeVar("_T")
Read = Callable[[BinaryIO, str, Faults], Iterator[_T]]
"""Reads a stream: takes it, how places name it, and where faults go. `READERS` has one for each ending."""


def _parquet() -> Any:
    # pyarrow is an extra, and slow to load for those who have it but read no Parquet.
    return import_module("graphsvc.declarations.parquet")


def _read_parquet(stream: BinaryIO, source: str, faults: Faults) -> Iterator[tuple[int, AgentVersion]]:
    if parquet_reader(source, faults):
        yield from _parquet().read_parquet(stream, source, faults)


def parquet_reader(source: str, faults: Faults) -> bool:
    """Whether Parquet can be read here; why not, goes to `faults`."""
    try:
        _parquet()
    except ModuleNotFoundError:
        faults.refuse("file", source, "is Parquet, and pyarrow, which reads it, is not installed", INSTALL_PARQUET)
        return False
    return True


READERS: Mapping[str, Read[tuple[int, AgentVersion]]] = {
    _JSON_LINES: read_json_lines,
    ".ndjson": read_json_lines,
    ".parquet": _read_parquet,
    ".yaml": read_manifests,
    ".yml": read_manifests,
}


def name_of(path: str) -> str:
    """How places name a file."""
    return "standard input" if path == STANDARD_INPUT else path


def _open(path: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else Path(path).open("rb")


def read_file(path: str, faults: Faults, readers: Mapping[str, Read[_T]]) -> Iterator[_T]:
    """What the reader of its ending finds in a file. What is wrong goes to `faults`."""
    name = name_of(path)
    read = readers.get(_JSON_LINES if path == STANDARD_INPUT else Path(path).suffix.lower())
    if read is None:
        endings = ", ".join(readers)
        faults.refuse("file", name, "has an ending that no reader knows", f"name it {endings}, or pass - for standard input")
        return
    try:
        with _open(path) as stream:
            yield from read(stream, name, faults)
    except OSError as error:
        faults.refuse("file", name, f"cannot be read: {error.strerror or error}", "give the path of a file that can be read")


def repeated(agent: AgentRef, place: str, first: str) -> Violation:
    """Why an agent may not be given here."""
    return Violation(field="agent", place=place, reason=f"{agent} is given already at {first}", remedy="give every agent once")


class _Places:
    """Where each agent was given first: texts and numbers only, as there may be millions."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._lines: dict[tuple[str | None, str | None], dict[str, tuple[int, int]]] = {}

    def refusal(self, version: AgentVersion, file: int, line: int) -> Violation | None:
        """Why this agent may not be given here, or None; it is remembered."""
        scope = version.agent.scope
        lines = self._lines.setdefault((scope.company, scope.area), {})
        first = lines.setdefault(version.agent.name, (file, line))
        if first == (file, line):
            return None
        return repeated(version.agent, self._text(file, line), self._text(*first))

    def _text(self, file: int, line: int) -> str:
        return f"{name_of(self._paths[file])}:{line}"


def read_files(paths: Sequence[str]) -> Iterator[AgentVersion]:
    """The versions that files declare, streamed in their order; unnumbered ones have the number 0.

    A path ends in .jsonl or .ndjson, .parquet, .yaml or .yml, or is ``-`` for JSON lines on standard input. Raises InvalidInput
    with the faults of all files, after the last of them was read: take what came before for good only when the reading has ended.
    """
    faults = Faults()
    places = _Places(paths)
    for file, path in enumerate(paths):
        for line, version in read_file(path, faults, READERS):
            refusal = places.refusal(version, file, line)
            if refusal:
                faults.add([refusal])
            elif not faults:
                yield version
    faults.raise_if_any()


def _refusal(path: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field="file", place=path, reason=reason, remedy=remedy)])


def _write_parquet(versions: Iterable[AgentVersion], stream: BinaryIO) -> int:
    written: int = _parquet().write_parquet(versions, stream)
    return written


_WRITERS: dict[str, Callable[[Iterable[AgentVersion], BinaryIO], int]] = {
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".parquet": _write_parquet,
}


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_file(path: str, versions: Iterable[AgentVersion]) -> int:
    """Write versions in their order to a .jsonl, .ndjson or .parquet file and say how many there were.

    What stood at the path before is replaced when everything is written, and left alone when something fails. Raises InvalidInput
    for another ending, for a path that cannot be written, and for Parquet without pyarrow.
    """
    write = _WRITERS.get(Path(path).suffix.lower())
    if write is None:
        raise _refusal(path, "has an ending that no writer knows", f"name it {', '.join(_WRITERS)}")
    try:
        with _replacing(Path(path)) as stream:
            return write(versions, stream)
    except ModuleNotFoundError:
        raise _refusal(path, "is Parquet, and pyarrow, which writes it, is not installed", INSTALL_PARQUET) from None
    except OSError as error:
        reason = f"cannot be written: {error.strerror or error}"
        raise _refusal(path, reason, "give a path in a folder that can be written") from None
