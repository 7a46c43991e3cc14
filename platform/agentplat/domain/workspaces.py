"""Workspaces: where people and agents of one scope work together (W-1)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A workspace. scope: what it belongs to; its agents are those its members may read there. created_at: milliseconds since
    1970, UTC.
    """

    id: int
    scope: str
    name: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository that a workspace links. path: its folder on the hosts that hold it."""

    id: int
    workspace_id: int
    name: str
    path: str
