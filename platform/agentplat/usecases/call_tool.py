"""Calling a tool in a run: asked for, ruled on and answered, each a step of the trail (A-12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.canonical import canonical_json
from agentplat.domain.runs import Run
from agentplat.domain.steps import GateRuling, ResultKind, Ruling, ToolCall, ToolResult
from agentplat.domain.times import now_ms
from agentplat.store.port import Store

CAPABILITY = "capability"
"""The rule that a run calls the tools of its surface and no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Carries tool calls out. The surface of a run has no tools yet, so each is refused for want of the capability."""

    store: Store
    content: ContentStore

    def __call__(self, run: Run, call: int, tool: str, arguments: Mapping[str, Any]) -> tuple[Run, ToolResult]:
        """Call a tool. call: the number of this call in the run, from 1. The run as it is afterwards, and what came of the call.

        Raises LeaseLost, ContentUnavailable, StoreUnavailable, and ValueError for arguments that JSON does not have.
        """
        kept = self.content.put(canonical_json(arguments).encode())
        reason = f"this run has no tool {tool!r}"
        result = ToolResult(call=call, result=ResultKind.REFUSED, reason=reason)
        ruling = GateRuling(call=call, ruling=Ruling.BLOCK, rule=CAPABILITY, reason=reason)
        with self.store.writing() as work:
            run = work.runs.append(run, [ToolCall(call=call, tool=tool, arguments=kept), ruling, result], now_ms())
        return run, result
