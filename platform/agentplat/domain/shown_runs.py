"""Runs and trails as one reader may see them: every name and id in them is asked about again (O-5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.contracts import RunContract
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import StepKind
from agentplat.domain.trail import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """A run for one reader. on_behalf_of, cancel_asked_by, source_run, chain: None where they are outside the reader's access.

    contract: what its output has to fit, where it has one.
    """

    run: Run
    on_behalf_of: Ref | None
    cancel_asked_by: Ref | None
    source_run: int | None
    chain: int | None
    contract: RunContract | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """A step for one reader. body: JSON values. hidden: its fields that are null because they are outside the reader's access.

    previous, hash: None from the first step on of which something is hidden, for with a hash a guess at it could be tried out.
    """

    number: int
    kind: StepKind
    at: int
    body: Mapping[str, Any]
    hidden: tuple[str, ...]
    previous: str | None
    hash: str | None


_NAMES = ("opener", "on_behalf_of", "by", "source_agent")
_RUNS = ("source_run", "chain")
_LISTED = "agents"


def runs_named(trail: Iterable[Step]) -> set[int]:
    """The ids of all runs that steps name."""
    found: set[int] = set()
    for step in trail:
        _walk(json.loads(step.body), lambda key, value: found.add(value) if key in _RUNS else None)
    return found


def shown_steps(trail: Iterable[Step], may_name: Callable[[str], bool], may_tell: Callable[[int], bool]) -> list[ShownStep]:
    """The steps from the first on. may_name: whether a reference may be read; may_tell: whether a run may."""
    shown: list[ShownStep] = []
    whole = True
    for step in trail:
        hidden: list[str] = []
        body = _cut(json.loads(step.body), may_name, may_tell, hidden)
        before, whole = whole, whole and not hidden
        shown.append(
            ShownStep(
                number=step.number,
                kind=step.kind,
                at=step.at,
                body=body,
                hidden=tuple(sorted(set(hidden))),
                previous=step.previous if before else None,
                hash=step.hash if whole else None,
            )
        )
    return shown


def _walk(value: Any, visit: Callable[[str, Any], None]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            visit(key, inner)
            _walk(inner, visit)
    elif isinstance(value, list):
        for inner in value:
            _walk(inner, visit)


def _cut(value: Any, may_name: Callable[[str], bool], may_tell: Callable[[int], bool], hidden: list[str]) -> Any:
    if isinstance(value, list):
        return [_cut(inner, may_name, may_tell, hidden) for inner in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if key == _LISTED:
            found[key] = [text if may_name(text) else None for text in inner]
            hidden += [key] if None in found[key] else []
            continue
        open_to_reader = (key not in _NAMES or may_name(inner)) and (key not in _RUNS or may_tell(inner))
        found[key] = _cut(inner, may_name, may_tell, hidden) if open_to_reader else None
        hidden += [] if open_to_reader else [key]
    return found
