"""The page of a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agentplat.studio.refusals import Told
from agentplat.studio.rendering import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPage(Page):
    """Why a page could not be shown. lines: what the refusal says."""

    template: ClassVar[str] = "fault.html"
    status: int
    lines: tuple[Told, ...]
