"""Spaces on the wire."""

from __future__ import annotations

from typing import Self

from agentplat.api.models import Wire
from agentplat.api.together_models import PlaceRunOut
from agentplat.domain.access import Access
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.modes import Mode
from agentplat.domain.spaces import Space
from agentplat.domain.times import iso
from agentplat.usecases.manage_spaces import Participant, ShownSpace


class SpaceIn(Wire):
    """A space to create. mode: chat, plan or orchestrate."""

    name: str
    mode: Mode = Mode.CHAT


class ReviewIn(Wire):
    """A space to create in which a pull request is reviewed. pull_request: how people refer to it."""

    pull_request: str


class ModeIn(Wire):
    """The mode from the next message on."""

    mode: Mode


class AutonomyIn(Wire):
    """How far an agent acts by itself in the space."""

    level: Autonomy


class SpaceOut(Wire):
    """A space. mode: that of what the next message opens."""

    id: int
    name: str
    mode: str
    created_at: str

    @classmethod
    def of(cls, space: Space) -> Self:
        """The space on the wire."""
        return cls(id=space.id, name=space.name, mode=space.mode.value, created_at=iso(space.created_at))


class SpacesOut(Wire):
    """A page of spaces by id. next: what to give as `after` for the next page, null on the last."""

    spaces: list[SpaceOut]
    next: int | None


class ParticipantOut(Wire):
    """An agent that takes part."""

    agent: str
    autonomy: str

    @classmethod
    def of(cls, participant: Participant) -> Self:
        """The participant on the wire."""
        return cls(agent=participant.agent.ref.text, autonomy=participant.autonomy.value)


class TreeOut(Wire):
    """A work tree of a space, on its host."""

    repository: str
    host: str
    path: str
    branch: str


class SpaceDetailsOut(SpaceOut):
    """A space with who takes part, the newest runs that work in it, and its work trees."""

    participants: list[ParticipantOut]
    runs: list[PlaceRunOut]
    work_trees: list[TreeOut]

    @classmethod
    def shown(cls, shown: ShownSpace, access: Access) -> Self:
        """The space on the wire."""
        return cls(
            participants=[ParticipantOut.of(participant) for participant in shown.participants],
            runs=[PlaceRunOut.of(run, access) for run in shown.runs],
            work_trees=[
                TreeOut(repository=tree.repository.name, host=tree.repository.host, path=tree.path, branch=tree.branch)
                for tree in shown.trees
            ],
            **dict(SpaceOut.of(shown.space)),
        )


class RemovedOut(Wire):
    """A space that was removed. branches: those that stay, as they have commits that are nowhere else."""

    space: int
    branches: list[str]
