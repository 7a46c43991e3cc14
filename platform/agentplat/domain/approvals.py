"""Approvals: what exactly would run, and what a person said to it (A-14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.canonical import canonical_json
from agentplat.domain.gate import Consent
from agentplat.domain.labels import texts
from agentplat.domain.runs import Run
from agentplat.domain.tools import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question to a person, and the answer once there is one. digest: over the order, which is what exactly would run.

    granted: None while nobody has decided. Times in milliseconds since 1970, UTC.
    """

    id: int
    run_id: int
    call: int
    digest: str
    tool: str
    asked_at: int
    granted: bool | None
    decided_at: int | None
    decided_by_id: int | None
    reason: str | None


def order_of(run: Run, call: int, tool: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """What exactly would run, as canonical JSON: an approver sees this text, approves its digest, and the worker makes it anew.

    All that decides what the call does is in it, so that a changed argument, another version of the agent, another tool of the same
    name or a label that came meanwhile makes it another order. Raises ValueError for arguments that JSON does not have.
    """
    effect = None if tool.effect is None else tool.effect.value
    return canonical_json(
        {
            "run": run.id,
            "agent": run.agent.text,
            "version": run.number,
            "call": call,
            "tool": tool.name,
            "tool_digest": tool.digest,
            "description": tool.description,
            "effect": effect,
            "arguments": dict(arguments),
            "labels": list(texts(run.labels)),
        }
    )


def consent_to(approval: Approval | None, digest: str) -> Consent:
    """What a person said to the order with this digest."""
    if approval is None or approval.granted is None:
        return Consent.NONE
    if not approval.granted:
        return Consent.REFUSED
    return Consent.GRANTED if approval.digest == digest else Consent.CHANGED
