"""What passes between a driver and its run."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.steps import ResultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What a tool call gave. text: the result, or the reason of the refusal word for word."""

    result: ResultKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of a model. content: what it said, as text. tokens: read and written. money_microusd: None where nobody
    knows the price."""

    model: str
    content: str
    tokens_read: int
    tokens_written: int
    money_microusd: int | None = None
