"""Autonomy: how far an agent acts by itself in a space (D-9)."""

from __future__ import annotations

from enum import StrEnum


class Autonomy(StrEnum):
    """How far an agent may act by itself, from the least."""

    PROPOSE_ONLY = "proposeOnly"
    ACT_WITH_APPROVAL = "actWithApproval"
    ACT_FREELY = "actFreely"


def autonomy_of(text: str) -> Autonomy:
    """The level of this name; anything unknown counts as the safest."""
    return Autonomy(text) if text in {level.value for level in Autonomy} else Autonomy.PROPOSE_ONLY


_ORDER = (Autonomy.PROPOSE_ONLY, Autonomy.ACT_WITH_APPROVAL, Autonomy.ACT_FREELY)


def reaches(level: Autonomy, needed: Autonomy) -> bool:
    """Whether a level is at least the one that is needed."""
    return _ORDER.index(level) >= _ORDER.index(needed)
