"""Calling a tool in a run: asked for, ruled on and answered, each a step of the trail (A-12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentplat.content.port import ContentStore
from agentplat.domain.canonical import canonical_json
from agentplat.domain.errors import InvalidInput
from agentplat.domain.labels import Labels, texts
from agentplat.domain.recovery import PastCall
from agentplat.domain.runs import Run
from agentplat.domain.steps import GateRuling, ResultKind, Ruling, ToolCall, ToolResult
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Effect, ToolSpec
from agentplat.store.port import Store

CAPABILITY = "capability"
"""The rule that a run calls the tools of its surface and no others."""

UNKNOWN = "what became of this call is unknown, as its worker ended meanwhile; it may have had its effect and is not repeated"
"""What a call is answered with that may have had an effect and whose result nobody knows (R-4)."""


class Tool(Protocol):
    """What carries a call out."""

    @property
    def spec(self) -> ToolSpec:
        """How it is offered."""

    def __call__(self, run: Run, arguments: Mapping[str, Any]) -> tuple[str, Labels]:
        """The result and its labels. Raises InvalidInput where the arguments are not right, which the caller is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Carries tool calls out. tools: by name."""

    store: Store
    content: ContentStore
    tools: Mapping[str, Tool] = field(default_factory=dict)

    def surface(self, run: Run) -> list[ToolSpec]:  # noqa: ARG002 - the same for every run as yet
        """The tools that the run may call, by name."""
        return [self.tools[name].spec for name in sorted(self.tools)]

    def __call__(self, run: Run, call: int, tool: str, arguments: Mapping[str, Any]) -> tuple[Run, ToolResult]:
        """Call a tool. call: the number of this call in the run, from 1. The run as it is afterwards, and what came of the call.

        Raises LeaseLost, ContentUnavailable, StoreUnavailable, and ValueError for arguments that JSON does not have.
        """
        asked = ToolCall(call=call, tool=tool, arguments=self.content.put(canonical_json(arguments).encode()))
        found = self.tools.get(tool)
        if found is None:
            refused = self._refused(asked)
            ruling = GateRuling(call=call, ruling=Ruling.BLOCK, rule=CAPABILITY, reason=refused.reason)
            with self.store.writing() as work:
                return work.runs.append(run, [asked, ruling, refused], now_ms()), refused
        # In the trail before the tool begins: whoever takes the run up again must know that it may have begun.
        ruling = GateRuling(call=call, ruling=Ruling.ALLOW, rule=CAPABILITY)
        with self.store.writing() as work:
            run = work.runs.append(run, [asked, ruling], now_ms())
        return self._carry_out(run, call, found, arguments)

    def again(self, run: Run, past: PastCall, arguments: Mapping[str, Any]) -> tuple[Run, ToolResult]:
        """Go on with a call that the trail has no result of: repeat it if it only reads, else say that its result is unknown (R-4).

        Raises as a first call does.
        """
        found = self.tools.get(past.asked.tool)
        if found is not None and (not past.begun or found.spec.effect is Effect.READ):
            return self._carry_out(run, past.asked.call, found, arguments)
        unknown = ToolResult(call=past.asked.call, result=ResultKind.FAILED, reason=UNKNOWN)
        return self._answered(run, unknown if past.begun else self._refused(past.asked))

    def _refused(self, asked: ToolCall) -> ToolResult:
        return ToolResult(call=asked.call, result=ResultKind.REFUSED, reason=f"this run has no tool {asked.tool!r}")

    def _carry_out(self, run: Run, call: int, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Run, ToolResult]:
        try:
            text, labels = tool(run, arguments)
        except InvalidInput as error:
            return self._answered(run, ToolResult(call=call, result=ResultKind.FAILED, reason=str(error)))
        content = self.content.put(text.encode())
        result = ToolResult(call=call, result=ResultKind.DONE, labels=texts(labels), content=content)
        return self._answered(run, result, labels)

    def _answered(self, run: Run, result: ToolResult, labels: Labels = frozenset()) -> tuple[Run, ToolResult]:
        with self.store.writing() as work:
            run = work.runs.append(run, [result], now_ms())
            return work.runs.take_on(run, labels), result
