"""What a trail tells whoever takes its run up again: what was said and done already (R-4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentplat.domain.calls import CallSoFar, calls_of
from agentplat.domain.steps import ModelTurn, StepKind
from agentplat.domain.trail import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was done in a run. calls: by number, in their order; turns: of a model, in their order."""

    calls: tuple[CallSoFar, ...] = ()
    turns: tuple[ModelTurn, ...] = ()


def past_of(trail: Sequence[Step]) -> Past:
    """What the steps of a trail tell. The trail is as it was written."""
    turns = (step.read() for step in trail if step.kind is StepKind.MODEL_TURN)
    calls = calls_of(trail)
    return Past(
        calls=tuple(calls[number] for number in sorted(calls)),
        turns=tuple(turn for turn in turns if isinstance(turn, ModelTurn)),
    )
