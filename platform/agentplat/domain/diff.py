"""What a new version changes against the current one (P-8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentplat.domain.registry import Content

Path = tuple[str | None, ...]
"""The agents of a loop, from the one published; None for one outside the reader's access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Names that come and go, each sorted."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopChange:
    """closed: loops that only the new version closes. opened: loops of the current version that the new one opens up.

    exact: whether that is all; it is not when a search stopped at a limit or the graph changed between the two searches.
    Several loops that look alike because of hidden agents are counted, not told apart.
    """

    closed: tuple[Path, ...]
    opened: tuple[Path, ...]
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """against: the number of the current version, None where the agent has none. loops: None where the graph did not answer."""

    against: int | None
    events: Change
    triggers: Change
    loops: LoopChange | None


def change(before: Iterable[str], after: Iterable[str]) -> Change:
    """Which names come and which go."""
    old, new = set(before), set(after)
    return Change(added=tuple(sorted(new - old)), removed=tuple(sorted(old - new)))


def declared_changes(before: Content | None, after: Content) -> tuple[Change, Change]:
    """The changes of events and of triggers."""
    emitted = () if before is None else (e.event for e in before.emits)
    heard = () if before is None else before.listens
    return change(emitted, (e.event for e in after.emits)), change(heard, after.listens)


def _paths(report: Mapping[str, Any]) -> list[Path]:
    return [tuple(loop["agents"]) for loop in report["loops"]]


def _certain_below(report: Mapping[str, Any]) -> float:
    """The loop length below which the report lists every loop: a report is always the beginning of the full answer."""
    if report["verification"] == "complete":
        return float("inf")
    return max((len(path) for path in _paths(report) if len(path) > 1), default=0)


def _only_in(report: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Path, ...]:
    left = Counter(_paths(other))
    certain = _certain_below(other)
    found: list[Path] = []
    for path in _paths(report):
        if left[path]:
            left[path] -= 1
        elif len(path) == 1 or len(path) < certain:
            found.append(path)
    return tuple(found)


def loop_change(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> LoopChange:
    """The loops that come and go between two reports, given as JSON values. before: None for an agent without a current version."""
    if before is None:
        return LoopChange(closed=tuple(_paths(after)), opened=(), exact=after["verification"] == "complete")
    reports: Sequence[Mapping[str, Any]] = (before, after)
    whole = all(report["verification"] == "complete" for report in reports) and before["revision"] == after["revision"]
    return LoopChange(closed=_only_in(after, before), opened=_only_in(before, after), exact=whole)
