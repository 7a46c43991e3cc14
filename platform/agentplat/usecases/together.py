"""The use cases of working together: workspaces, tickets, spaces and what is said in them, with the tools of runs there."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.store.port import Store
from agentplat.usecases.converse import Converse
from agentplat.usecases.manage_spaces import ManageSpaces
from agentplat.usecases.manage_tickets import ManageTickets
from agentplat.usecases.manage_workspaces import ManageWorkspaces
from agentplat.usecases.space_tools import PostMessage, ReadSpace, SubmitPlan
from agentplat.usecases.ticket_tools import AssignTicket, CommentTicket, CreateTicket, ListTickets, MoveTicket, ReadTicket
from agentplat.usecases.tool import WorkTool
from agentplat.worktrees.port import WorkTrees


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What people do in workspaces."""

    workspaces: ManageWorkspaces
    tickets: ManageTickets
    spaces: ManageSpaces
    converse: Converse


def build_together(store: Store, content: ContentStore, trees: WorkTrees | None) -> Together:
    """All of them on one store, one content store and the work trees of this host."""
    return Together(
        workspaces=ManageWorkspaces(store=store, trees=trees),
        tickets=ManageTickets(store=store),
        spaces=ManageSpaces(store=store, trees=trees),
        converse=Converse(store=store, content=content),
    )


def working_together(content: ContentStore) -> tuple[WorkTool, ...]:
    """The tools of runs that work in a space."""
    return (
        ReadSpace(),
        PostMessage(content=content),
        SubmitPlan(),
        ListTickets(),
        ReadTicket(),
        CommentTicket(),
        CreateTicket(),
        MoveTicket(),
        AssignTicket(),
    )
