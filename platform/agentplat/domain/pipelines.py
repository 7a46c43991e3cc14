"""Proposals and the pipelines that approved ones become (D-13 to D-16)."""

from __future__ import annotations

from enum import StrEnum


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
    """Where a step of a pipeline stands. A step whose dependency failed is skipped."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    SKIPPED = "skipped"
