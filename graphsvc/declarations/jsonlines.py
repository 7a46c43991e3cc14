"""Declarations as JSON lines: {"agent", "company", "area", "emits", "listens"} and, for a numbered version, "version"."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, NoReturn

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.record import version_from
from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.model import AgentVersion

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Longest line in bytes, its end included."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXAMPLE = 'write one object a line, such as {"agent": "developer", "company": "acme", "area": null, "emits": [], "listens": []}'


class _Refused(Exception):
    """The text is JSON in form, but not in a form that is safe to take; carries (field, reason, remedy)."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    keys = [key for key, _ in pairs]
    twice = next(key for i, key in enumerate(keys) if key in keys[:i])
    raise _Refused(twice, "is given twice", "give every field once")


def _no_constant(text: str) -> NoReturn:
    raise _Refused("line", f"has {text}, which is not JSON", "use a number or null")


_decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)


def _fault(place: str, field: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=field, place=place, reason=reason, remedy=remedy)])


def _value(line: bytes, place: str) -> Any:
    """The JSON value on a line. Raises InvalidInput, with the column where the text itself is broken."""
    try:
        return _decoder.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: byte 0x{line[error.start]:02x}"
        raise _fault(f"{place}:{error.start + 1}", "line", reason, "save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise _fault(f"{place}:{error.pos + 1}", "line", f"is not one JSON object: {error.msg}", _EXAMPLE) from None
    except _Refused as error:
        raise _fault(place, *error.args) from None
    except RecursionError:
        raise _fault(place, "line", "is nested too deep", _EXAMPLE) from None
    except ValueError:  # the only one left: a number with more digits than the interpreter converts
        raise _fault(place, "line", "has a number with too many digits", "use shorter numbers") from None


def _version(line: bytes, place: str) -> AgentVersion:
    value = _value(line, place)
    if not isinstance(value, dict):
        raise _fault(place, "line", f"is of type {type(value).__name__}", _EXAMPLE)
    return version_from(value, place)


def _too_long(stream: BinaryIO, place: str) -> InvalidInput:
    while (rest := stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass
    return _fault(place, "line", f"is longer than {MAX_LINE_BYTES} bytes", "write one agent a line, at most that long")


def read_json_lines(stream: BinaryIO, source: str, faults: Faults) -> Iterator[tuple[int, AgentVersion]]:
    """Line numbers, from 1, and the versions on them, streamed; blank lines are skipped, unnumbered versions have the number 0.

    source: how places name the stream. What is wrong goes to `faults`, as ``source:line`` or ``source:line:column``, and the
    reading goes on with the next line.
    """
    for number, raw in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES + 1), b""), start=1):
        try:
            if len(raw) > MAX_LINE_BYTES:
                raise _too_long(stream, f"{source}:{number}")
            if number == 1 and raw.startswith(_BYTE_ORDER_MARK):
                raise _fault(f"{source}:1:1", "line", "begins with a byte order mark", "save the file as UTF-8 without one")
            if not raw.isspace():
                yield number, _version(raw, f"{source}:{number}")
        except InvalidInput as error:
            faults.add(error.violations)


def json_line(version: AgentVersion) -> str:
    """A version as a line without its end; a version with the number 0 is written unnumbered."""
    scope = version.agent.scope
    record: dict[str, Any] = {"agent": version.agent.name, "company": scope.company, "area": scope.area}
    record.update(version.declaration.as_json())
    if version.number:
        record["version"] = version.number
    return json.dumps(record, ensure_ascii=False)


def write_json_lines(versions: Iterable[AgentVersion], stream: BinaryIO) -> int:
    """Write versions in their order and say how many there were. The same versions give the same bytes."""
    written = 0
    for version in versions:
        stream.write(f"{json_line(version)}\n".encode())
        written += 1
    return written
