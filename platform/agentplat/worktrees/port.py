"""What keeps work trees promises. They lie on one host, and so do the repositories that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentplat.domain.workspaces import KeptTree, Repository, WorkTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What removing a work tree left. branch: the one that stays, as it has commits that are nowhere else; None where none does.

    committed: whether changes that nobody had committed went onto it.
    """

    branch: str | None
    committed: bool


class WorkTrees(Protocol):
    """The work trees of this host. The checkout, the index and the HEAD of a linked repository are never touched.

    Each method raises Conflict where git does not do what is needed; its message is for whoever asked.
    """

    @property
    def host(self) -> str:
        """The name of this host."""

    def check(self, path: str) -> str:
        """The path of a repository that can be linked, without links in it. Raises InvalidInput where there is none."""

    def branch_of(self, space_id: int, name: str) -> str:
        """The branch of a space. name: the space's."""

    def path_of(self, space_id: int, repository: Repository) -> str:
        """Where the work tree of a space is."""

    def open(self, repository: Repository, space_id: int, branch: str) -> WorkTree:
        """The work tree of a space on its branch, made if need be, from whatever an earlier try left."""

    def snapshot(self, repository: Repository, space_id: int, branch: str, run_id: int) -> WorkTree:
        """The files as the space's branch had them when this was first asked for the run, else as the repository's HEAD has them.

        They can only be read, and there is no repository among them.
        """

    def remove(self, tree: KeptTree) -> Left:
        """Take a work tree away, and never a commit. What was not committed is committed first."""

    def spaces(self) -> list[int]:
        """The spaces that this host keeps anything of."""

    def remove_snapshots(self, space_id: int) -> None:
        """Take away all that can only be read of a space."""
