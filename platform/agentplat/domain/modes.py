"""Modes: what a space is for. The mode decides which tools a run that works there has (W-6, W-7)."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a space is for. Review is set where a pull request is reviewed, and nobody chooses it."""

    CHAT = "chat"
    PLAN = "plan"
    ORCHESTRATE = "orchestrate"
    REVIEW = "review"


CHOSEN = (Mode.CHAT, Mode.PLAN, Mode.ORCHESTRATE)
"""The modes that a person may choose."""
