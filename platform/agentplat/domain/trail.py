"""Trails: the append-only record of a run, numbered and hash-chained, so that any change to it is found (R-2).

A step's hash is SHA-256 over the canonical JSON (RFC 8785) of the step without its hash. As that holds the hash of the step before,
the run's id and the number, no step can be changed, moved, left out or put between without its successors telling. The end is held
by the run's row, which keeps how many steps there are and the last hash, and by the closing step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where a trail is not what was written. number: the first step that is wrong; one past the last where the end is missing."""

    number: int
    reason: str


def _wrong(step: Step, number: int, previous: str, run_id: int) -> str | None:
    if step.number != number:
        return f"step {number} is missing; step {step.number} follows"
    if step.run_id != run_id:
        return f"belongs to run {step.run_id}"
    if step.previous != previous:
        return "does not follow the step before it"
    if (number == 1) != (step.kind is StepKind.OPENING):
        return "is no opening step" if number == 1 else "is a second opening step"
    try:
        values = json.loads(step.body)
        whole = _hashed(run_id, number, step.kind, step.at, values, previous)
        written = canonical_json(values) == step.body and digest(canonical_json(whole).encode()) == step.hash
    except ValueError:
        written = False
    return None if written else "was changed after it was written"


def verify(run_id: int, steps: int, head: str | None, ended: bool, trail: Iterable[Step]) -> Fault | None:
    """The first fault of a trail, or None where it is as it was written.

    steps, head, ended: what the run's row says of it. trail: all its steps by number.
    """
    number, previous, closed = 0, BEFORE_FIRST, False
    for step in trail:
        number += 1
        reason = "follows the closing step" if closed else _wrong(step, number, previous, run_id)
        if reason is not None:
            return Fault(number=number, reason=reason)
        previous, closed = step.hash, step.kind is StepKind.CLOSING
    if number == 0:
        return Fault(number=1, reason="there is no opening step")
    if number != steps or previous != head:
        return Fault(number=number + 1, reason=f"the run has {steps} steps, of which the last are not these")
    if ended and not closed:
        return Fault(number=number + 1, reason="the run has ended without a closing step")
    return None
