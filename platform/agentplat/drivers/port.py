"""What a driver is given, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentplat.domain.artifacts import Answer
from agentplat.domain.budgets import Unit
from agentplat.domain.hands import Called, Turn
from agentplat.domain.runs import DriverKind, Run
from agentplat.domain.spaces import Workplace
from agentplat.domain.steps import Opening
from agentplat.domain.tools import ToolSpec
from agentplat.domain.workspaces import WorkTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A run to be driven.

    manifest: that of the run's version. opening: the first step, with the event and the contract. input: what the opener wrote,
    None where there is nothing or it was erased. tools: those that the run may call. workplace: where it works, None where it
    works in no space; trees: the work trees that it has there.
    """

    run: Run
    manifest: Mapping[str, Any]
    opening: Opening
    input: str | None
    tools: Sequence[ToolSpec]
    workplace: Workplace | None = None
    trees: Sequence[WorkTree] = ()


class Hands(Protocol):
    """What a driver does in its run.

    A driver whose run is taken up again begins at its beginning. As long as it does the same, its hands give what the trail has;
    only behind the end of the trail is anything said or done anew (R-4). Each method may raise LeaseLost, RunCancelled and what
    else ends the run for now; a driver lets all that through.
    """

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        """Call a tool; a refusal is an answer like any other."""

    def recall(self) -> str | None:
        """What a model said in the next turn of the trail; None behind its last one."""

    def expect(self, worst: Mapping[Unit, int]) -> None:
        """Set aside the most that the next turn can take, before the model is asked. Raises RunWaits at a ceiling."""

    def record(self, turn: Turn) -> None:
        """Put a turn behind the last one."""


class Driver(Protocol):
    """Thinks. One driver serves many runs, one after the other or at once."""

    @property
    def kind(self) -> DriverKind:
        """Which runs it drives."""

    def drive(self, task: Task, hands: Hands) -> Answer:
        """Carry the run to its answer. Raises RunFailed where there will be none, and whatever `hands` raises."""
