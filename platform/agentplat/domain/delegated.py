"""What an agent is told that a ticket is delegated to: the ticket and where to report, and nothing of the delegator's run (W-5)."""

from __future__ import annotations

import json

from agentplat.domain.spaces import Space
from agentplat.domain.tickets import Ticket
from agentplat.domain.workspaces import Workspace


def delegated(workspace: Workspace, space: Space, ticket: Ticket, by: str | None) -> str:
    """The text. by: who delegated it, None where the agent's people may not know."""
    told = {
        "workspace": workspace.name,
        "space": {"id": space.id, "name": space.name, "mode": space.mode.value},
        "from": by,
        "ticket": {"ticket": f"#{ticket.number}", "title": ticket.title, "description": ticket.description},
    }
    said = json.dumps(told, indent=2, ensure_ascii=False)
    return f"A ticket was delegated to you. Work on it, and report in the space.\n{said}"
