"""What an agent is told that is handed work in a space: the message, its tickets, the space and its mode (W-5)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentplat.domain.spaces import Space
from agentplat.domain.tickets import Ticket
from agentplat.domain.workspaces import Workspace


def handover(workspace: Workspace, space: Space, message_id: int, author: str, body: str, tickets: Sequence[Ticket]) -> str:
    """The text. author: who wrote the message, as its reader may know them."""
    told = {
        "workspace": workspace.name,
        "space": {"id": space.id, "name": space.name, "mode": space.mode.value},
        "message": {"id": message_id, "from": author, "text": body},
        "tickets": [
            {
                "ticket": f"#{ticket.number}",
                "title": ticket.title,
                "status": ticket.status.value,
                "version": ticket.version,
                "description": ticket.description,
            }
            for ticket in tickets
        ],
    }
    said = json.dumps(told, indent=2, ensure_ascii=False)
    return f"You were mentioned in a space. Work on what the message asks for, and report in the space.\n{said}"
