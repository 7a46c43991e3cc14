"""One declaration as plain values, the same for JSON lines and Parquet: which fields it has and what they may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.model import MAX_VERSION_NUMBER, AgentVersion, Declaration, check_number, declare
from graphsvc.domain.names import AgentRef, Scope, normalise, scope_of

FIELDS = frozenset({"agent", "company", "area", "emits", "listens", "version"})
UNNUMBERED = 0
"""The number of a version whose file gives none."""

_T = TypeVar("_T")
_KNOWN_FIELDS = "use agent, company, area, emits, listens and version"


def version_from(record: Mapping[str, Any], place: str) -> AgentVersion:
    """The version that a record declares. Raises InvalidInput with every violation found in it."""
    number = record.get("version")
    if record.keys() <= FIELDS and (number is None or (type(number) is int and 1 <= number <= MAX_VERSION_NUMBER)):
        try:
            # Without a place, scopes come from a cache. What is refused here is judged again below, with its place.
            scope = scope_of(record.get("company"), record.get("area"))
            agent = AgentRef(scope, normalise(record["agent"], "agent"))
            return AgentVersion(agent, number or UNNUMBERED, declare(record.get("emits"), record.get("listens")))
        except (InvalidInput, KeyError, TypeError):
            pass
    return _judged(record, place)


def _judged(record: Mapping[str, Any], place: str) -> AgentVersion:
    unknown = [
        Violation(field=field, place=place, reason="is not a field of a declaration", remedy=_KNOWN_FIELDS)
        for field in sorted(record.keys() - FIELDS)
    ]
    faults = unknown

    def part(read: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return read()
        except InvalidInput as error:
            faults.extend(error.violations)
            return otherwise

    name = part(lambda: _name(record, place), "")
    scope = part(lambda: _scope(record, place), Scope())
    number = part(lambda: _number(record.get("version"), place), UNNUMBERED)
    declaration = part(lambda: declare(record.get("emits"), record.get("listens"), place), Declaration())
    if faults:
        raise InvalidInput(faults)
    return AgentVersion(AgentRef(scope, name), number, declaration)


def _name(record: Mapping[str, Any], place: str) -> str:
    if record.get("agent") is None:
        raise InvalidInput([Violation(field="agent", place=place, reason="is missing", remedy="name the agent")])
    return normalise(record["agent"], "agent", place)


def _scope(record: Mapping[str, Any], place: str) -> Scope:
    parts = {field: record.get(field) for field in ("company", "area")}
    wrong = {field: type(part).__name__ for field, part in parts.items() if not (part is None or isinstance(part, str))}
    if wrong:
        remedy = "write a text, or null for none"
        raise InvalidInput(
            Violation(field=field, place=place, reason=f"is of type {kind}", remedy=remedy) for field, kind in wrong.items()
        )
    return scope_of(parts["company"], parts["area"], place=place)


def _number(number: object, place: str) -> int:
    if number is None:
        return UNNUMBERED
    if not isinstance(number, int):
        reason, remedy = f"is of type {type(number).__name__}", "write a whole number, or null for none"
        raise InvalidInput([Violation(field="version", place=place, reason=reason, remedy=remedy)])
    return check_number(number, place=place)
