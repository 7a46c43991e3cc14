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
    """A git repository that a workspace links. host: the name of the host that holds it. path: its folder there."""

    id: int
    workspace_id: int
    name: str
    host: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTree:
    """A work tree that a host keeps for a space. branch: the space's own, in the linked repository."""

    space_id: int
    repository: Repository
    path: str
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTree:
    """A work tree as a run gets it. name: the repository's. branch: what commits go to; None where the tree is only read."""

    name: str
    path: str
    branch: str | None
