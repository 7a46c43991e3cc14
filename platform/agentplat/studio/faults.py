"""The page of a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from agentplat.studio.rendering import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPage(Page):
    """Why a page could not be shown. lines: the refusal's own words."""

    template: ClassVar[str] = "fault.html"
    status: int
    title: str
    lines: tuple[str, ...]
