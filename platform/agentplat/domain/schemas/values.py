"""JSON values as checks get them: known to be JSON, within bounds, and told by nobody in full."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from typing_extensions import override

from agentplat.domain.canonical import canonical_json
from agentplat.domain.errors import InvalidInput, Violation

MOST_DEPTH = 64


class _QuietMapping(dict[str, Any]):
    """Libraries put values into their messages, which nobody reads here and which would cost the size of the value each time."""

    @override
    def __repr__(self) -> str:
        return "{…}"


class _QuietList(list[Any]):
    @override
    def __repr__(self) -> str:
        return "[…]"


class _QuietText(str):
    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return "'…'"


def depth(value: Any) -> int:
    """How deep lists and mappings lie in each other, without recursion; stops counting above the limit."""
    level, found = [value], 0
    while level and found <= MOST_DEPTH:
        level = [
            inner
            for outer in level
            if isinstance(outer, (Mapping, list, tuple))
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
        found += 1
    return found


def taken_in(value: Any, field: str, most_bytes: int) -> tuple[Any, bytes]:
    """The value as a copy for checks, and its canonical JSON. Raises InvalidInput for what JSON does not have, and for too much."""
    if depth(value) > MOST_DEPTH:
        raise InvalidInput([Violation(field=field, reason="is nested too deep", remedy=f"nest at most {MOST_DEPTH} deep")])
    try:
        data = canonical_json(value).encode()
    except (ValueError, TypeError):
        remedy = "send JSON: no NaN or Infinity, no lone surrogates, no integers beyond 2**53"
        raise InvalidInput([Violation(field=field, reason="is not JSON", remedy=remedy)]) from None
    if len(data) > most_bytes:
        remedy = f"use at most {most_bytes}"
        raise InvalidInput([Violation(field=field, reason=f"is {len(data)} bytes of JSON", remedy=remedy)])
    return _quiet(value), data


def _quiet(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _QuietMapping((str(name), _quiet(inner)) for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return _QuietList(_quiet(inner) for inner in value)
    return _QuietText(value) if isinstance(value, str) else value


def size(value: Any) -> int:
    """How many values lie in it, itself among them."""
    if isinstance(value, dict):
        return 1 + sum(map(size, value.values()))
    return 1 + sum(map(size, value)) if isinstance(value, list) else 1


def key(value: Any) -> Hashable:
    """Equal for values that are equal in JSON, where 1 is 1.0 and true is no number."""
    if isinstance(value, dict):
        return "object", frozenset((name, key(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(map(key, value))
    return type(value).__name__ if isinstance(value, bool) else "", value


def pointer(path: Iterable[object]) -> str:
    """The JSON Pointer of a path; that of the value itself is empty."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
