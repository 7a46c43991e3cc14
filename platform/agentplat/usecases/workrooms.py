"""Finding spaces by what a caller may read: a workspace's scope decides about everything in it (W-12)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.errors import NotFound
from agentplat.domain.pipelines import Pipeline
from agentplat.domain.proposals import KeptProposal
from agentplat.domain.spaces import Space
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A space with its workspace."""

    space: Space
    workspace: Workspace


def room_of(work: Work, space_id: int) -> Room | None:
    """The space, one that was removed too; None where there is none."""
    space = work.spaces.find(space_id)
    workspace = None if space is None else work.workspaces.find(space.workspace_id)
    return None if space is None or workspace is None else Room(space=space, workspace=workspace)


def readable_room(work: Work, access: Access, space_id: int) -> Room:
    """The space. Raises NotFound where it is not there or its workspace is not readable."""
    room = room_of(work, space_id)
    if room is None or not access.may_read(room.workspace.scope):
        raise NotFound
    return room


def readable_proposal(work: Work, access: Access, proposal_id: int) -> tuple[KeptProposal, Room]:
    """The proposal and its space. Raises NotFound where it is not there or not readable."""
    proposal = work.proposals.find(proposal_id)
    if proposal is None:
        raise NotFound
    return proposal, readable_room(work, access, proposal.space_id)


def readable_pipeline(work: Work, access: Access, pipeline_id: int) -> tuple[Pipeline, Room]:
    """The pipeline and its space. Raises NotFound where it is not there or not readable."""
    pipeline = work.pipelines.find(pipeline_id)
    if pipeline is None:
        raise NotFound
    return pipeline, readable_room(work, access, pipeline.space_id)
