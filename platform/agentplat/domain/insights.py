"""Runs looked at together: what is under way, what a period came to, and what changed since somebody looked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentplat.domain.budgets import Unit
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs. scopes: of agents of these and below. since, until: opened from the one until just before the other.

    agent: of this one alone. states: in one of these, any where empty.
    """

    scopes: tuple[str, ...]
    since: int | None = None
    until: int | None = None
    agent: Ref | None = None
    states: tuple[RunState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """A run with what it cost so far, by unit. last_at: when its last step was written."""

    run: Run
    spent: Mapping[Unit, int]
    last_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What runs came to. runs: how many, by state. took_ms: from opening to end, of those that have ended. spent: by unit."""

    runs: Mapping[RunState, int]
    took_ms: int
    spent: Mapping[Unit, int]

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.runs.values())

    @property
    def ended(self) -> int:
        """Those that nothing will happen in any more."""
        return sum(count for state, count in self.runs.items() if state in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: what tells that something happened in it. scope: its agent's."""

    run_id: int
    scope: str
    steps: int
    state: RunState
