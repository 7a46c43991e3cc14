"""What a trail tells whoever takes its run up again: what was said and done already, and what must not be done twice (R-4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agentplat.domain.steps import Body, GateRuling, ModelTurn, Ruling, ToolCall, ToolResult, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A tool call of the trail. result: what it gave, None where the trail does not say.

    begun: whether the tool may have been at work: the Gate let the call through, and the run did not wait with it since. A call
    without a result that was begun may have had its effect, or not.
    """

    asked: ToolCall
    begun: bool = False
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was done in a run. calls: in their order, so that call n is at n - 1. turns: of a model, in their order."""

    calls: tuple[PastCall, ...] = ()
    turns: tuple[ModelTurn, ...] = ()

    def call(self, number: int) -> PastCall | None:
        """The call of this number, from 1; None where it was not asked for yet."""
        return self.calls[number - 1] if 0 < number <= len(self.calls) else None


def past_of(bodies: Iterable[Body]) -> Past:
    """What the steps of a trail tell. Raises ValueError where its calls are not numbered from 1 without gaps."""
    calls: list[PastCall] = []
    turns: list[ModelTurn] = []
    for body in bodies:
        match body:
            case ModelTurn():
                turns.append(body)
            case ToolCall(call=number):
                if number != len(calls) + 1:
                    raise ValueError(f"call {number} follows call {len(calls)}")
                calls.append(PastCall(asked=body))
            case GateRuling(call=number, ruling=ruling):
                calls[number - 1] = replace(calls[number - 1], begun=ruling is Ruling.ALLOW)
            case Waiting(call=int(number)):
                calls[number - 1] = replace(calls[number - 1], begun=False)
            case ToolResult(call=number):
                calls[number - 1] = replace(calls[number - 1], result=body)
            case _:
                pass
    return Past(calls=tuple(calls), turns=tuple(turns))
