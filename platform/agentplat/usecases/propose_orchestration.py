"""The tool by which a run proposes an orchestration; nothing of it happens before a person approves it (D-14, D-15)."""

from __future__ import annotations

import json

from typing_extensions import override

from agentplat.domain.autonomy import Autonomy
from agentplat.domain.errors import Refused
from agentplat.domain.modes import Mode
from agentplat.domain.steps import ResultKind
from agentplat.domain.tickets import Author
from agentplat.domain.tools import Asked, Effect, Given, Move, Place, ToolSpec
from agentplat.store.port import Work
from agentplat.usecases.propose import propose
from agentplat.usecases.tool import WorkTool
from agentplat.usecases.workrooms import Room, room_of

NAME = "propose_orchestration"

_PROPOSAL = """Goal, roles, sub_tickets, synthesis and budget, and research where it is needed. A role has a name and either agent
(one that is there, SCOPE:NAME) or hire (a manifest). A sub-ticket has key, title, description, role, and where it needs them
depends_on (keys), output_schema (JSON Schema 2020-12) and retries (0 to 3). research has description and role; synthesis has
description, role and output_schema. budget has at least one of money_microusd, tokens, tool_calls and time_ms. At most 8 roles and
16 sub-tickets."""

_SPEC = ToolSpec(
    name=NAME,
    description=(
        "Propose who works on what, in which order, for which budget. A person decides; once approved, each sub-ticket is worked on"
        " by its role's agent, and synthesis makes one result of all. Every fault of a proposal is told at once."
    ),
    schema={
        "type": "object",
        "properties": {
            "proposal": {"type": "object", "description": " ".join(_PROPOSAL.split())},
            "revises": {
                "type": "integer",
                "minimum": 1,
                "maximum": 2**53 - 1,
                "description": "The number of an undecided proposal of this space that this one takes the place of.",
            },
        },
        "required": ["proposal"],
        "additionalProperties": False,
    },
    effect=Effect.WRITE,
    longest_ms=10_000,
    labels=frozenset(),
    free_from=Autonomy.PROPOSE_ONLY,
    place=Place(modes=frozenset({Mode.ORCHESTRATE})),
)


class ProposeOrchestration(WorkTool):
    """Stores a proposal, or its next revision, with a message in the space of the run."""

    @property
    @override
    def spec(self) -> ToolSpec:
        return _SPEC

    @override
    def fault(self, asked: Asked) -> str | None:
        return None

    @override
    def artifact(self, asked: Asked) -> str | None:
        return None

    @override
    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        room = _room(work, asked)
        # Whoever reads in the workspace reads the proposal.
        return () if room is None else (Move(labels=asked.run.labels, into=room.workspace.scope),)

    @override
    def within(self, work: Work, asked: Asked) -> Given:
        room = _room(work, asked)
        if room is None:
            raise Refused("this run works in no space, so that there is nobody to propose to")
        author, revises = Author(run_id=asked.run.id), asked.arguments.get("revises")
        proposed = propose(work, room, author, asked.arguments["proposal"], revises)
        told = {"proposal": proposed.kept.id, "revision": proposed.kept.revision, "digest": proposed.digest}
        return Given(result=ResultKind.DONE, data=json.dumps(told).encode())


def _room(work: Work, asked: Asked) -> Room | None:
    workplace = work.spaces.workplace(asked.run.id)
    return None if workplace is None else room_of(work, workplace.space_id)
