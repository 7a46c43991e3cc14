"""Calling a tool in a run: asked for, ruled on and answered, each a step of the trail (A-12, R-4).

Two short transactions stand around the call itself. Whoever takes a run over finds in its trail how far a call has come, and calls
with the same number again: what has its answer is not done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Blob, Delivery
from agentplat.domain.calls import Standing, calls_of
from agentplat.domain.canonical import canonical_json
from agentplat.domain.errors import InvalidInput, RunFailed, Violation
from agentplat.domain.labels import join, parse_labels, texts
from agentplat.domain.runs import Run
from agentplat.domain.steps import Body, GateRuling, Opening, ResultKind, Ruling, ToolCall, ToolResult
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Asked, Effect
from agentplat.store.port import Store, Work
from agentplat.usecases.judge_call import JudgeCall
from agentplat.usecases.tool import Tool

CAPABILITY = "capability"
"""The rule that a run calls the tools of its surface and no others."""

UNKNOWN = "a worker ended during this call, and whether it took effect is not known; it is not made again"
"""What a call is answered with that may have had an effect and whose result nobody knows (R-4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    """A call that the Gate has let through, with the run as it is then."""

    run: Run
    tool: Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Carries tool calls out."""

    store: Store
    content: ContentStore
    gate: JudgeCall

    def __call__(self, run: Run, call: int, tool: str, arguments: Mapping[str, Any]) -> tuple[Run, ToolResult]:
        """Call a tool. call: the number of this call in the run, from 1. The run as it is afterwards, and what came of the call.

        Raises RunFailed where the call was another one when it was first made, InvalidInput for arguments that are not JSON,
        LeaseLost, ContentUnavailable, StoreUnavailable.
        """
        # Durable before the trail names them.
        kept = self.content.put(_canonical(arguments))
        with self.store.writing() as work:
            asked = Asked(run=run, call=call, arguments=arguments, delivery=_delivery(work, run))
            standing = self._so_far(work, asked, tool, kept)
        if not isinstance(standing, _Allowed):
            return standing
        given = standing.tool(asked)
        content = None if given.data is None else self.content.put(given.data)
        labels = join(standing.tool.spec.labels, given.labels)
        result = ToolResult(call=call, result=given.result, labels=texts(labels), content=content, reason=given.reason)
        with self.store.writing() as work:
            return _end(work, standing.run, result)

    def _so_far(self, work: Work, asked: Asked, name: str, kept: Blob) -> _Allowed | tuple[Run, ToolResult]:
        known = calls_of(work.runs.trail(asked.run.id)).get(asked.call)
        if known is None:
            return self._rule(work, asked, name, [ToolCall(call=asked.call, tool=name, arguments=kept)])
        if (known.asked.tool, known.asked.arguments) != (name, kept):
            raise RunFailed(f"call {asked.call} of this run was another one when it was first made")
        if known.result is not None:
            return asked.run, known.result
        if known.standing is Standing.ASKED:
            return self._rule(work, asked, name, [])
        tool = self.gate.tools.get(name)
        if tool is not None and tool.spec.effect is Effect.READ:
            return _Allowed(run=asked.run, tool=tool)
        return _end(work, asked.run, ToolResult(call=asked.call, result=ResultKind.FAILED, reason=UNKNOWN))

    def _rule(self, work: Work, asked: Asked, name: str, steps: list[Body]) -> _Allowed | tuple[Run, ToolResult]:
        tool = self.gate.allowed(work, asked.run, name)
        if tool is not None:
            # In the trail before the tool begins: whoever takes the run up again must know that it may have begun.
            ruling = GateRuling(call=asked.call, ruling=Ruling.ALLOW, rule=CAPABILITY)
            return _Allowed(run=work.runs.append(asked.run, [*steps, ruling], now_ms()), tool=tool)
        reason = f"this run has no tool {name!r}"
        ruling = GateRuling(call=asked.call, ruling=Ruling.BLOCK, rule=CAPABILITY, reason=reason)
        run = work.runs.append(asked.run, [*steps, ruling], now_ms())
        return _end(work, run, ToolResult(call=asked.call, result=ResultKind.REFUSED, reason=reason))


def _end(work: Work, run: Run, result: ToolResult) -> tuple[Run, ToolResult]:
    """Keep what came of a call, and its labels, which are the run's from now on (A-8)."""
    run = work.runs.append(run, [result], now_ms())
    return work.runs.take_on(run, parse_labels(result.labels)), result


def _canonical(arguments: Mapping[str, Any]) -> bytes:
    try:
        return canonical_json(dict(arguments)).encode()
    except ValueError:
        remedy = "send JSON values: no NaN, no lone surrogates, no integers beyond 2**53"
        raise InvalidInput([Violation(field="arguments", reason="are not JSON", remedy=remedy)]) from None


def _delivery(work: Work, run: Run) -> Delivery | None:
    [first] = work.runs.trail(run.id, size=1)
    opening = first.read()
    return opening.delivery if isinstance(opening, Opening) else None
