"""Delegating by a person, outside any run, and the tree that delegations make (D-1, D-5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access
from agentplat.domain.budgets import Unit
from agentplat.domain.calls import ABOUT_CALLS, calls_of
from agentplat.domain.contracts import OutputContract
from agentplat.domain.delegation import no_parent
from agentplat.domain.errors import Refused
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import ResultKind
from agentplat.domain.tickets import PartyKind, Ticket, TicketRole
from agentplat.domain.tools import DELEGATE_TASK
from agentplat.store.port import Store, Work
from agentplat.usecases.finding_work import held_space, open_workspace, person_of, readable_workspace, ticket_in
from agentplat.usecases.hand_over import HandedOver, HandOver, find_delegate, hand_over
from agentplat.usecases.texts import check_description, check_title

MOST_NODES = 200
"""Tickets that a tree is shown with, at most."""

MOST_RUNS = 20
"""Runs that a ticket of a tree is shown with, at most; the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks for. agent: a reference, or a name that one agent of the workspace has. parent: the number of a ticket."""

    space_id: int
    agent: str
    title: str
    description: str
    parent: int | None = None
    contract: OutputContract | None = None
    ceilings: Mapping[Unit, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRun:
    """A run on a ticket. refusals: why delegations from it were refused. Of a hidden agent's run only the state is left."""

    id: int | None
    agent: Ref | None
    state: RunState
    refusals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A ticket of a tree. assignee, delegated_by: None too where they are outside the reader's access.

    by_agent: whether an agent delegated it. more: whether it has more tickets below it than are shown.
    """

    ticket: Ticket
    assignee: Ref | None
    by_agent: bool
    delegated_by: Ref | None
    runs: tuple[TreeRun, ...]
    children: tuple[Node, ...]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateTicket:
    """Delegates for people, who have neither a level of autonomy nor a budget: depth and cycle are asked alone (D-5)."""

    store: Store
    content: ContentStore

    def __call__(self, access: Access, workspace_id: int, asked: Asked) -> HandedOver:
        """Make the ticket and open the delegate's run on it in the space.

        Raises NotFound, AccessDenied where the caller may not write in the workspace or not open runs of the agent, InvalidInput,
        Refused with the reason of the guard, Unauthenticated, ContentUnavailable, StoreUnavailable.
        """
        by = person_of(access)
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            space = held_space(work, workspace, asked.space_id)
            delegate = find_delegate(work, workspace, asked.agent)
            access.demand_publishing(delegate.ref.scope)
            parent = None if asked.parent is None else work.tickets.numbered(workspace.id, asked.parent)
            if parent is None and asked.parent is not None:
                raise Refused(no_parent(f"#{asked.parent}"))
            handed = HandOver(
                source=None,
                person=by,
                workspace=workspace,
                space=space,
                delegate=delegate,
                title=check_title(asked.title),
                description=check_description(asked.description),
                may_name=access.may_read,
                parent=parent,
                contract=asked.contract,
                ceilings=asked.ceilings,
            )
            return hand_over(work, self.content, handed)

    def tree(self, access: Access, workspace_id: int, number: int) -> Node:
        """A ticket with all that was delegated from it, as the reader may see it. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            ticket = ticket_in(work, readable_workspace(work, access, workspace_id), number)
            return _Tree(work=work, access=access, left=[MOST_NODES - 1]).node(ticket)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """Draws a tree for a reader. left: how many tickets it may still show."""

    work: Work
    access: Access
    left: list[int]

    def node(self, ticket: Ticket) -> Node:
        """The ticket and those below it, each before its next sister."""
        below = self.work.tickets.children(ticket.id)
        children = []
        for child in below:
            if self.left[0] == 0:
                break
            self.left[0] -= 1
            children.append(self.node(child))
        by = None if ticket.delegated_by_id is None else self.work.registry.by_id(ticket.delegated_by_id).ref
        runs = (self.work.runs.find(run_id) for run_id in self.work.spaces.runs_on(ticket.id, MOST_RUNS))
        return Node(
            ticket=ticket,
            assignee=self._assignee(ticket),
            by_agent=by is not None,
            delegated_by=self.access.visible(by),
            runs=tuple(self._run(run) for run in runs if run is not None),
            children=tuple(children),
            more=len(children) < len(below),
        )

    def _assignee(self, ticket: Ticket) -> Ref | None:
        found = self.work.tickets.involved(ticket.id)
        agents = (one.party for one in found if one.role is TicketRole.ASSIGNEE and one.party.kind is PartyKind.AGENT)
        return self.access.visible(next((party.ref for party in agents), None))

    def _run(self, run: Run) -> TreeRun:
        """The run; what was refused in it is read from its trail, as a refusal is written nowhere else (D-4)."""
        if not self.access.may_read(run.agent.scope):
            return TreeRun(id=None, agent=None, state=run.state, refusals=())
        calls = calls_of(self.work.runs.trail(run.id, kinds=ABOUT_CALLS)).values()
        results = (call.result for call in calls if call.asked.tool == DELEGATE_TASK and call.result is not None)
        refusals = tuple(one.reason for one in results if one.result is ResultKind.REFUSED and one.reason is not None)
        return TreeRun(id=run.id, agent=run.agent, state=run.state, refusals=refusals)
