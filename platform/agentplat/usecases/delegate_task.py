"""delegate_task: the tool by which an agent hands a sub-problem on to another one (D-1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.budgets import ceilings_of
from agentplat.domain.contracts import MODE_FIELD, SCHEMA_FIELD, ContractMode, declared
from agentplat.domain.delegation import OTHER_AGENT, OTHER_TICKET, no_parent
from agentplat.domain.errors import Refused
from agentplat.domain.scopes import contains
from agentplat.domain.spaces import Workplace
from agentplat.domain.tickets import Ticket
from agentplat.domain.tools import DELEGATE_TASK, Effect, Given, Place, ToolSpec
from agentplat.store.port import Work
from agentplat.usecases.hand_over import HandedOver, HandOver, Resolve, find_delegate, hand_over, resolvers_of
from agentplat.usecases.place_tools import CHAT, LONGEST_MS, PlaceTool, Where, told
from agentplat.usecases.texts import MOST_TITLE_CHARACTERS, check_description, check_title

_AMOUNTS = {
    "money_usd": {"type": "number", "minimum": 0, "maximum": 1_000_000_000},
    "tokens": {"type": "integer", "minimum": 0, "maximum": 2**52},
    "tool_calls": {"type": "integer", "minimum": 0, "maximum": 2**52},
    "seconds": {"type": "integer", "minimum": 0, "maximum": 2**42},
}
_PROPERTIES: dict[str, Any] = {
    "agent": {"type": "string", "minLength": 1, "description": "Whom to delegate to: SCOPE:NAME, or a name that only one has."},
    "title": {"type": "string", "minLength": 1, "maxLength": MOST_TITLE_CHARACTERS},
    "description": {"type": "string", "description": "All that the agent needs to know: it sees nothing else of this run."},
    "parent_ticket_id": {
        "description": "The number of the ticket that this run works on, as in #12. May be left out.",
        "anyOf": [{"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, {"type": "string", "pattern": "^#?[1-9][0-9]{0,8}$"}],
    },
    "from_agent_id": {"type": "string", "description": "The agent of this run. May be left out."},
    SCHEMA_FIELD: {"type": "object", "description": "JSON Schema 2020-12 that the output has to fit."},
    MODE_FIELD: {"enum": [mode.value for mode in ContractMode], "description": "strict unless said otherwise."},
    "budget": {
        "type": "object",
        "description": "The most that the agent may spend; it is set aside from what this run has left.",
        "properties": _AMOUNTS,
        "additionalProperties": False,
    },
}
SPEC = ToolSpec(
    name=DELEGATE_TASK,
    description="Hands a sub-problem on: makes a ticket for another agent and starts its run on it, in this space.",
    schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": _PROPERTIES,
        "required": ["agent", "title", "description"],
        "additionalProperties": False,
    },
    effect=Effect.WRITE,
    longest_ms=LONGEST_MS,
    labels=frozenset(),
    # It stays in the platform, behind guards of its own.
    free_from=Autonomy.ACT_WITH_APPROVAL,
    place=Place(modes=CHAT, named=True),
)


@dataclass(frozen=True, kw_only=True)
class DelegateTask(PlaceTool):
    """The tool. resolve: how its guards come to their facts."""

    content: ContentStore
    resolve: Resolve = resolvers_of

    @property
    @override
    def spec(self) -> ToolSpec:
        return SPEC

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        return _told(hand_over(work, self.content, _asked_for(work, where, arguments), self.resolve))


def _asked_for(work: Work, where: Where, arguments: Mapping[str, Any]) -> HandOver:
    """What is asked for; who delegates, and on which ticket, is the run's word and not the caller's (D-5).

    Raises Refused where the arguments say otherwise, InvalidInput.
    """
    run = where.run
    if arguments.get("from_agent_id", run.agent.text) not in (run.agent.text, run.agent.name):
        raise Refused(OTHER_AGENT)
    return HandOver(
        source=run,
        person=work.people.by_id(run.on_behalf_of_id),
        workspace=where.workspace,
        space=where.space,
        delegate=find_delegate(work, where.workspace, arguments["agent"]),
        title=check_title(arguments["title"]),
        description=check_description(arguments["description"]),
        # Whoever reads the run's trail may read its agent's scope, and perhaps no more.
        may_name=lambda scope: contains(run.agent.scope, scope),
        parent=_parent(work, where.workplace, arguments.get("parent_ticket_id")),
        contract=declared(arguments.get(SCHEMA_FIELD), arguments.get(MODE_FIELD)),
        ceilings=ceilings_of({"spec": {"budget": arguments.get("budget")}}),
    )


def _parent(work: Work, workplace: Workplace, named: int | str | None) -> Ticket | None:
    """The ticket that the run works on. Raises Refused where another one is named.

    A run that works on no ticket may name one of its workspace: the chain then is that of the run and that of the ticket.
    """
    own = None if workplace.ticket_id is None else work.tickets.find(workplace.ticket_id)
    if named is None:
        return own
    number = int(str(named).removeprefix("#"))
    ticket = work.tickets.numbered(workplace.workspace_id, number)
    if ticket is None:
        raise Refused(no_parent(f"#{number}"))
    if own is not None and own.id != ticket.id:
        raise Refused(OTHER_TICKET)
    return ticket


def _told(handed: HandedOver) -> Given:
    return told(
        {
            "ticket": handed.ticket.number,
            "depth": handed.ticket.depth,
            "run": handed.run.id,
            "agent": handed.run.agent.text,
            "ceilings": {unit.value: amount for unit, amount in sorted(handed.ceilings.items())},
        }
    )
