"""Routes of delegation: a person's own, and the tree that delegations make."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Self

from fastapi import APIRouter
from pydantic import Field

from agentplat.api.callers import Caller, Served
from agentplat.api.models import Wire
from agentplat.api.tickets import TicketNumber
from agentplat.api.workspaces import WorkspaceId
from agentplat.domain.budgets import ceilings_of
from agentplat.domain.contracts import declared
from agentplat.usecases.delegate_ticket import Asked, Node, TreeRun
from agentplat.usecases.hand_over import HandedOver

router = APIRouter(prefix="/v1", tags=["delegation"])


class AllowanceIn(Wire):
    """The most that a delegate may spend."""

    money_usd: float | None = Field(default=None, ge=0, le=1_000_000_000, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=2**52)
    tool_calls: int | None = Field(default=None, ge=0, le=2**52)
    seconds: int | None = Field(default=None, ge=0, le=2**42)


class DelegateIn(Wire):
    """Work for an agent. agent: SCOPE:NAME, or a name that one agent of the workspace has. parent_ticket_id: the number of the
    ticket that it is part of. expected_output_schema, output_contract_mode: what its output has to fit.
    """

    space_id: int = Field(ge=1, le=2**63 - 1)
    agent: str
    title: str
    description: str = ""
    parent_ticket_id: int | None = Field(default=None, ge=1, le=2**31 - 1)
    expected_output_schema: Any = None
    output_contract_mode: Any = None
    budget: AllowanceIn | None = None

    def value(self) -> Asked:
        """What is asked for. Raises InvalidInput."""
        budget = None if self.budget is None else self.budget.model_dump()
        return Asked(
            space_id=self.space_id,
            agent=self.agent,
            title=self.title,
            description=self.description,
            parent=self.parent_ticket_id,
            contract=declared(self.expected_output_schema, self.output_contract_mode),
            ceilings=ceilings_of({"spec": {"budget": budget}}),
        )


class HandedOverOut(Wire):
    """What came of a delegation. ticket: its number. ceilings: whole numbers by unit."""

    ticket: int
    depth: int
    run: int
    agent: str
    ceilings: dict[str, int]

    @classmethod
    def of(cls, handed: HandedOver) -> Self:
        """From the value."""
        return cls(
            ticket=handed.ticket.number,
            depth=handed.ticket.depth,
            run=handed.run.id,
            agent=handed.run.agent.text,
            ceilings={unit.value: amount for unit, amount in sorted(handed.ceilings.items())},
        )


class TreeRunOut(Wire):
    """A run on a ticket; without id and agent where they are outside the reader's access. refusals: word for word."""

    run: int | None
    agent: str | None
    state: str
    refusals: list[str]

    @classmethod
    def of(cls, run: TreeRun) -> Self:
        """From the value."""
        agent = None if run.agent is None else run.agent.text
        return cls(run=run.id, agent=agent, state=run.state.value, refusals=list(run.refusals))


class NodeOut(Wire):
    """A ticket of a tree. delegated: whether an agent delegated it; by whom is null where that is outside the reader's access.

    more: whether it has more tickets below it than are shown.
    """

    ticket: int
    title: str
    status: str
    depth: int
    assignee: str | None
    delegated: bool
    delegated_by: str | None
    runs: list[TreeRunOut]
    children: list[NodeOut]
    more: bool

    @classmethod
    def of(cls, node: Node) -> NodeOut:
        """From the value."""
        return cls(
            ticket=node.ticket.number,
            title=node.ticket.title,
            status=node.ticket.status.value,
            depth=node.ticket.depth,
            assignee=None if node.assignee is None else node.assignee.text,
            delegated=node.by_agent,
            delegated_by=None if node.delegated_by is None else node.delegated_by.text,
            runs=[TreeRunOut.of(run) for run in node.runs],
            children=[cls.of(child) for child in node.children],
            more=node.more,
        )


@router.post("/workspaces/{workspace}/tickets:delegate", status_code=HTTPStatus.CREATED)
def delegate(served: Served, access: Caller, workspace: WorkspaceId, given: DelegateIn) -> HandedOverOut:
    """Hand work on to an agent: a ticket for it, and its run on that ticket in the space. Refused where a guard objects."""
    return HandedOverOut.of(served.use_cases.delegate_ticket(access, workspace, given.value()))


@router.get("/workspaces/{workspace}/tickets/{number}/tree")
def show_tree(served: Served, access: Caller, workspace: WorkspaceId, number: TicketNumber) -> NodeOut:
    """A ticket with all that was delegated from it, and why delegations were refused."""
    return NodeOut.of(served.use_cases.delegate_ticket.tree(access, workspace, number))
