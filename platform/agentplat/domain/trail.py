"""Trails: the append-only record of a run, numbered and hash-chained, so that any change to it is found (R-2).

A step's hash is SHA-256 over the canonical JSON (RFC 8785) of the step without its hash. As that holds the hash of the step before,
the run's id and the number, no step can be changed, moved, left out or put between without its successors telling. The end is held
by the run's row, which keeps how many steps there are and the last hash, and by the closing step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentplat.domain.canonical import canonical_json, digest
from agentplat.domain.steps import Body, StepKind, as_json, body_of, kind_of

BEFORE_FIRST = "0" * 64
"""What the first step has in place of the hash of the step before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step as it is stored. number: from 1. at: milliseconds since 1970, UTC. body: canonical JSON."""

    run_id: int
    number: int
    kind: StepKind
    at: int
    body: str
    previous: str
    hash: str

    def as_json(self) -> dict[str, Any]:
        """The step as JSON values. Raises ValueError where the body is not JSON."""
        return {**_hashed(self.run_id, self.number, self.kind, self.at, json.loads(self.body), self.previous), "hash": self.hash}

    def read(self) -> Body:
        """What the step records. Raises ValueError where the body is not one of its kind."""
        return body_of(self.kind, json.loads(self.body))


def _hashed(run_id: int, number: int, kind: StepKind, at: int, body: Any, previous: str) -> dict[str, Any]:
    return {"run": run_id, "number": number, "kind": kind.value, "at": at, "body": body, "previous": previous}


def next_step(run_id: int, steps: int, head: str | None, body: Body, at: int) -> Step:
    """The step that follows. steps: how many there are; head: the hash of the last one, None where there is none."""
    kind, values = kind_of(body), as_json(body)
    number, previous = steps + 1, head or BEFORE_FIRST
    whole = _hashed(run_id, number, kind, at, values, previous)
    return Step(
        run_id=run_id,
        number=number,
        kind=kind,
        at=at,
        body=canonical_json(values),
        previous=previous,
        hash=digest(canonical_json(whole).encode()),
    )


class FaultKind(StrEnum):
    """What is wrong with a trail."""

    MISSING = "missing"
    FOREIGN = "foreign"
    UNLINKED = "unlinked"
    OPENING = "opening"
    CHANGED = "changed"
    AFTER_CLOSING = "after_closing"
    CUT = "cut"
    UNCLOSED = "unclosed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where a trail is not what was written. number: the first step that is wrong; one past the last where the end is missing."""

    number: int
    kind: FaultKind
    reason: str


def changed(number: int) -> Fault:
    """A step whose values are not the ones that were written."""
    return Fault(number=number, kind=FaultKind.CHANGED, reason="was changed after it was written")


def _fault_of(step: Step, number: int, previous: str, run_id: int) -> Fault | None:
    def fault(kind: FaultKind, reason: str) -> Fault:
        return Fault(number=number, kind=kind, reason=reason)

    if step.number != number:
        return fault(FaultKind.MISSING, f"step {number} is missing; step {step.number} follows")
    if step.run_id != run_id:
        return fault(FaultKind.FOREIGN, f"belongs to run {step.run_id}")
    if step.previous != previous:
        return fault(FaultKind.UNLINKED, "does not follow the step before it")
    if (number == 1) != (step.kind is StepKind.OPENING):
        return fault(FaultKind.OPENING, "is no opening step" if number == 1 else "is a second opening step")
    try:
        values = json.loads(step.body)
        whole = _hashed(run_id, number, step.kind, step.at, values, previous)
        written = canonical_json(values) == step.body and digest(canonical_json(whole).encode()) == step.hash
    except (ValueError, RecursionError):
        written = False
    return None if written else changed(number)


def first_fault(run_id: int, trail: Iterable[Step]) -> Fault | None:
    """The first fault of the beginning of a trail, whatever may follow it; None where it is as it was written."""
    previous, closed = BEFORE_FIRST, False
    for number, step in enumerate(trail, 1):
        if closed:
            return Fault(number=number, kind=FaultKind.AFTER_CLOSING, reason="follows the closing step")
        fault = _fault_of(step, number, previous, run_id)
        if fault is not None:
            return fault
        previous, closed = step.hash, step.kind is StepKind.CLOSING
    return None


def verify(run_id: int, steps: int, head: str | None, ended: bool, trail: Sequence[Step]) -> Fault | None:
    """The first fault of a trail, or None where it is as it was written.

    steps, head, ended: what the run's row says of it. trail: all its steps by number.
    """
    fault = first_fault(run_id, trail)
    if fault is not None:
        return fault
    if not trail:
        return Fault(number=1, kind=FaultKind.OPENING, reason="there is no opening step")
    number, last = len(trail) + 1, trail[-1]
    if last.number != steps or last.hash != head:
        reason = f"the run has {steps} steps, of which the last are not these"
        return Fault(number=number, kind=FaultKind.CUT, reason=reason)
    if ended and last.kind is not StepKind.CLOSING:
        return Fault(number=number, kind=FaultKind.UNCLOSED, reason="the run has ended without a closing step")
    return None
