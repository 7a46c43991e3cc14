"""How far the tool calls of a run have come, read from its trail alone (R-4, A-12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from agentplat.domain.steps import GateRuling, Ruling, StepKind, ToolCall, ToolResult
from agentplat.domain.trail import Step

ABOUT_CALLS = frozenset({StepKind.TOOL_CALL, StepKind.GATE_RULING, StepKind.TOOL_RESULT})
"""The kinds of steps that tell how far calls have come."""


class Standing(StrEnum):
    """How far a call has come.

    NEW: it is not in the trail. ASKED: it is, and was not allowed so far. UNKNOWN: it was allowed and has no result, so that nobody
    knows whether it took effect. ANSWERED: it has its result.
    """

    NEW = "new"
    ASKED = "asked"
    UNKNOWN = "unknown"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSoFar:
    """One call, with the steps about it so far. ruling: the last one."""

    asked: ToolCall
    ruling: GateRuling | None = None
    result: ToolResult | None = None

    @property
    def standing(self) -> Standing:
        """How far it has come."""
        if self.result is not None:
            return Standing.ANSWERED
        allowed = self.ruling is not None and self.ruling.ruling is Ruling.ALLOW
        return Standing.UNKNOWN if allowed else Standing.ASKED

    @property
    def was_allowed(self) -> bool:
        """Whether it ran, or may have."""
        return self.ruling is not None and self.ruling.ruling is Ruling.ALLOW


def calls_of(trail: Iterable[Step]) -> dict[int, CallSoFar]:
    """The calls of a run by number. Steps of other kinds are passed over."""
    found: dict[int, CallSoFar] = {}
    for step in trail:
        if step.kind not in ABOUT_CALLS:
            continue
        body = step.read()
        if isinstance(body, ToolCall):
            found[body.call] = CallSoFar(asked=body)
        elif isinstance(body, GateRuling):
            found[body.call] = replace(found[body.call], ruling=body)
        elif isinstance(body, ToolResult):
            found[body.call] = replace(found[body.call], result=body)
    return found


def same_done(calls: dict[int, CallSoFar], call: int, tool: str, digest: str) -> int | None:
    """An earlier call of the same tool with the same arguments that ran, or may have."""
    return next(
        (
            number
            for number, known in sorted(calls.items())
            if number != call and known.was_allowed and (known.asked.tool, known.asked.arguments.digest) == (tool, digest)
        ),
        None,
    )


def meant_by(calls: Iterable[CallSoFar], tool: str, digest: str, mark: str | None) -> int | None:
    """The call that a caller without numbers means who asks for this tool and these arguments; None where it is a new one.

    One that has no result yet is gone on with, such as after an approval. mark: that of the caller's request, where a request that
    is sent twice must not count twice.
    """
    same = [known for known in calls if (known.asked.tool, known.asked.arguments.digest) == (tool, digest)]
    known = next((one for one in same if one.result is None or (mark is not None and one.asked.request == mark)), None)
    return None if known is None else known.asked.call
