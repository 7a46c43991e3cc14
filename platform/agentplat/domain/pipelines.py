"""Proposals and the pipelines that approved ones become (D-13 to D-16): where each stands, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar


class ProposalState(StrEnum):
    """Where a proposal stands. Only a person decides."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    DECLINED = "declined"


class PipelineState(StrEnum):
    """Where a pipeline stands."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepState(StrEnum):
    """Where a step of a pipeline stands. A step whose dependency failed is skipped; one of a cancelled pipeline is cancelled."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


UNDER_WAY = frozenset({StepState.WAITING, StepState.RUNNING})
"""States of a step that something may still come of."""

_IN_THE_WAY = frozenset({StepState.FAILED, StepState.SKIPPED, StepState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline as it stands.

    source_run_id: the run that proposed it, whose chain its steps continue at its hop; None where only people did.
    Times in milliseconds since 1970, UTC.
    """

    id: int
    project_id: int
    proposal_id: int
    space_id: int
    state: PipelineState
    on_behalf_of_id: int
    source_run_id: int | None
    opened_at: int
    finished_at: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStep:
    """A step as it stands. attempts: how many runs were opened for it; run_id: the last of them."""

    key: str
    state: StepState
    attempts: int
    run_id: int | None
    reason: str | None


class Needing(Protocol):
    """What of a template's step its turn depends on."""

    @property
    def key(self) -> str:
        """Its name in the pipeline."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The steps before it."""


Node = TypeVar("Node", bound=Needing)


def ready(nodes: Iterable[Node], states: Mapping[str, StepState]) -> list[Node]:
    """The steps whose turn it is: they wait, and all that they need has finished."""
    done = {key for key, state in states.items() if state is StepState.FINISHED}
    return [node for node in nodes if states[node.key] is StepState.WAITING and done.issuperset(node.needs)]


def out_of_reach(nodes: Iterable[Node], states: Mapping[str, StepState]) -> list[tuple[Node, str]]:
    """The waiting steps that need one which will not finish, each with the first such."""
    found = []
    for node in nodes:
        missing = next((key for key in node.needs if states[key] in _IN_THE_WAY), None)
        if states[node.key] is StepState.WAITING and missing is not None:
            found.append((node, missing))
    return found


def ending(states: Mapping[str, StepState]) -> PipelineState | None:
    """How the pipeline ends; None while something may still come of it."""
    found = set(states.values())
    if found & UNDER_WAY:
        return None
    return PipelineState.FINISHED if found == {StepState.FINISHED} else PipelineState.FAILED
