"""The workspace that a page belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Path

from agentplat.domain.workspaces import Workspace

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace with what the person may do there. writes: whether they may say and change things."""

    workspace: Workspace
    writes: bool

    @property
    def path(self) -> str:
        """Where its pages are."""
        return f"/workspaces/{self.workspace.id}"
