"""Declarations, versions and the entries of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, TypeVar

from graphsvc.domain.errors import InvalidInput, Violation, phrase
from graphsvc.domain.names import AgentRef, normalise

MAX_EVENTS = 1_000
"""Most events in one declaration, emitted and heard together."""

MAX_VERSION_NUMBER = 2**31 - 1

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Emit:
    """One event that a version emits, with its artifact contract: the kind of context and the artifacts listeners may ask for."""

    event: str
    context: str | None = None
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """The part of a version that the graph needs. Both tuples are sorted by event name and have no event twice."""

    emits: tuple[Emit, ...] = ()
    listens: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The declaration as JSON values; an event without contract is its bare name."""
        return {
            "emits": [
                {"event": e.event, "context": e.context, "artifacts": list(e.artifacts)} if e.context or e.artifacts else e.event
                for e in self.emits
            ],
            "listens": list(self.listens),
        }


def _refuse(field: str, place: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=field, place=place, reason=reason, remedy=remedy)])


def _emit(entry: object, field: str, place: str) -> Emit:
    if isinstance(entry, str):
        return Emit(normalise(entry, field, place))
    if not isinstance(entry, Mapping):
        kind = phrase("is of type %(kind)s", kind=type(entry).__name__)
        raise _refuse(field, place, kind, "write an event name or {event, context, artifacts}")
    unknown = sorted(map(str, set(entry) - {"event", "context", "artifacts"}))
    if unknown:
        raise _refuse(f"{field}.{unknown[0]}", place, "is not a field of an emitted event", "use event, context and artifacts")
    if "event" not in entry:
        raise _refuse(f"{field}.event", place, "is missing", "name the event")
    context = entry.get("context")
    artifacts = entry.get("artifacts")
    if artifacts is None:
        artifacts = ()
    if isinstance(artifacts, (str, bytes)) or not isinstance(artifacts, Sequence):
        raise _refuse(f"{field}.artifacts", place, "is not a list", "write a list of artifact names")
    if len(artifacts) > MAX_EVENTS:
        reason, remedy = (
            phrase("has %(count)s names", count=len(artifacts)),
            phrase("name at most %(most)s artifacts", most=MAX_EVENTS),
        )
        raise _refuse(f"{field}.artifacts", place, reason, remedy)
    names = [normalise(name, f"{field}.artifacts[{i}]", place) for i, name in enumerate(artifacts)]
    repeated = list(_repeats(names, f"{field}.artifacts", place))
    if repeated:
        raise InvalidInput(repeated)
    return Emit(
        event=normalise(entry["event"], f"{field}.event", place),
        context=None if context is None else normalise(context, f"{field}.context", place),
        artifacts=tuple(sorted(names)),
    )


def _repeats(names: Iterable[str | None], field: str, place: str) -> Iterator[Violation]:
    """Every name that stands earlier in the list; None marks one that was refused."""
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name is not None and seen.setdefault(name, i) != i:
            reason = phrase("repeats %(other)s", other=f"{field}[{seen[name]}]")
            yield Violation(field=f"{field}[{i}]", place=place, reason=reason, remedy="name it once")


_event = attrgetter("event")


def _plain(emits: object, listens: object) -> Declaration | None:
    # Most declarations of a large catalogue are short lists of well-formed names; the careful way costs several times as much.
    if type(emits) is not list or type(listens) is not list or len(emits) + len(listens) > MAX_EVENTS:
        return None
    try:
        out = sorted((_emit(emit, "emits", "") for emit in emits), key=_event)
        heard = sorted(normalise(event, "listens") for event in listens)
    except InvalidInput:
        return None
    if (len(heard) > 1 and len(set(heard)) < len(heard)) or (len(out) > 1 and len(set(map(_event, out))) < len(out)):
        return None
    return Declaration(tuple(out), tuple(heard))


def declare(emits: object, listens: object, place: str = "") -> Declaration:
    """A checked declaration from plain values.

    emits: a list of event names or of mappings {event, context, artifacts}; listens: a list of event names; None counts as empty.
    Raises InvalidInput with every violation found.
    """
    return _plain(emits, listens) or _judged(emits, listens, place)


def _judged(emits: object, listens: object, place: str) -> Declaration:
    faults: list[Violation] = []

    def collect(values: object, field: str, read: Callable[[object, str, str], _T]) -> list[_T | None]:
        if values is None:
            return []
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence):
            faults.append(Violation(field=field, place=place, reason="is not a list", remedy="write a list of events"))
            return []
        if len(values) > MAX_EVENTS:
            reason, remedy = (
                phrase("has %(count)s events", count=len(values)),
                phrase("declare at most %(most)s events in one version", most=MAX_EVENTS),
            )
            faults.append(Violation(field=field, place=place, reason=reason, remedy=remedy))
            return []
        found: list[_T | None] = []
        for i, value in enumerate(values):
            try:
                found.append(read(value, f"{field}[{i}]", place))
            except InvalidInput as error:
                faults.extend(error.violations)
                found.append(None)
        return found

    out = collect(emits, "emits", _emit)
    heard = collect(listens, "listens", normalise)
    faults.extend(_repeats((None if emit is None else emit.event for emit in out), "emits", place))
    faults.extend(_repeats(heard, "listens", place))
    if len(out) + len(heard) > MAX_EVENTS:
        reason = phrase("and listens have %(count)s events together", count=len(out) + len(heard))
        remedy = phrase("declare at most %(most)s events in one version", most=MAX_EVENTS)
        faults.append(Violation(field="emits", place=place, reason=reason, remedy=remedy))
    if faults:
        raise InvalidInput(faults)
    return Declaration(tuple(sorted(filter(None, out), key=_event)), tuple(sorted(filter(None, heard))))


def check_number(number: object, field: str = "version", place: str = "") -> int:
    """A version number from 1 to MAX_VERSION_NUMBER. Raises InvalidInput."""
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_VERSION_NUMBER:
        reason, remedy = (
            phrase("is %(given)s", given=repr(number)),
            phrase("use a whole number from 1 to %(most)s", most=MAX_VERSION_NUMBER),
        )
        raise _refuse(field, place, reason, remedy)
    return number


class EntryKind(StrEnum):
    """What an entry of the log says."""

    PUBLISH = "publish"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What is appended to the log. A retirement carries the number it retires and an empty declaration."""

    kind: EntryKind
    agent: AgentRef
    number: int
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log; revisions begin at 1 and have no gap."""

    revision: int
    kind: EntryKind
    agent: AgentRef
    number: int
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """A published version as it goes in and out: an agent, its number and what it declares."""

    agent: AgentRef
    number: int
    declaration: Declaration
