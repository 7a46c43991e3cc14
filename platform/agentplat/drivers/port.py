"""What a driver is given, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentplat.domain.artifacts import Answer
from agentplat.domain.runs import DriverKind, Run
from agentplat.domain.steps import Opening, ResultKind
from agentplat.domain.trail import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A run to be driven.

    manifest: that of the run's version. opening: the first step, with the event and the contract. input: what the opener wrote,
    None where there is nothing or it was erased. trail: the steps so far, more than the opening where the run is taken up again.
    """

    run: Run
    manifest: Mapping[str, Any]
    opening: Opening
    input: str | None
    trail: Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What a tool call gave. text: the result, or the reason of the refusal word for word."""

    result: ResultKind
    text: str


class Hands(Protocol):
    """What a driver does in its run."""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        """Call a tool; a refusal is an answer like any other. Raises LeaseLost, which a driver lets through."""


class Driver(Protocol):
    """Thinks. One driver serves many runs, one after the other or at once."""

    @property
    def kind(self) -> DriverKind:
        """Which runs it drives."""

    def drive(self, task: Task, hands: Hands) -> Answer:
        """Carry the run to its answer. Raises RunFailed where there will be none, and whatever `hands` raises."""
