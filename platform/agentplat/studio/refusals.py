"""Refusals as people read them on a page: in its language, with names and numbers as they are."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.errors import InvalidInput, PlatformError


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One thing that is wrong. field: the faulty one, empty where it is no field. reason, remedy: phrases that the page words.

    A refusal that is one sentence has it as its reason, and no remedy beside it.
    """

    reason: str
    field: str = ""
    remedy: str = ""


def told(error: PlatformError) -> tuple[Told, ...]:
    """What a refusal says."""
    if isinstance(error, InvalidInput):
        return tuple(Told(field=one.field, reason=one.reason, remedy=one.remedy) for one in error.violations)
    # The argument, not its text: that has forgotten how it was made.
    return (Told(reason=error.args[0]),)
