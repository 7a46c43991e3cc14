"""Handing work on: a ticket for another agent, and that agent's run on it, in one transaction or not at all (D-1, D-4, D-6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from agentplat.content.port import ContentStore
from agentplat.domain.access import Person
from agentplat.domain.budgets import Unit, run_holder
from agentplat.domain.chains import OpenedBy
from agentplat.domain.contracts import OutputContract
from agentplat.domain.delegated import delegated
from agentplat.domain.delegation import HIDDEN, STRUCTURE, Guard, Key, Levels, Lineage, Link, Resolvers, depth_of, way_from
from agentplat.domain.errors import InvalidInput, Refused, Violation
from agentplat.domain.labels import crossing, label_of
from agentplat.domain.registry import Agent
from agentplat.domain.runs import Run
from agentplat.domain.scopes import contains
from agentplat.domain.spaces import Space, Workplace
from agentplat.domain.tickets import Author, Involved, MessageKind, NewTicket, Party, PartyKind, Ticket, TicketRole
from agentplat.domain.times import now_ms
from agentplat.domain.workspaces import Workspace
from agentplat.loop_check import check_name, check_ref
from agentplat.store.port import Work
from agentplat.usecases.charging import own_ceilings
from agentplat.usecases.circumstances import autonomy_in
from agentplat.usecases.escrow import has_something_left, set_aside
from agentplat.usecases.lineage import lineage_of, run_key, ticket_key
from agentplat.usecases.make_ticket import Guarded, make_ticket
from agentplat.usecases.open_work import NewWork, open_work

_CALL: Key = ("call", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Work to be handed on. source: the run that does, None where a person does. person: on whose behalf. space: held.

    parent: the ticket that it is part of. ceilings: the most that the delegate may spend. may_name: whether whoever hands it on may
    know the name of an agent of a scope.
    """

    source: Run | None
    person: Person
    workspace: Workspace
    space: Space
    delegate: Agent
    title: str
    description: str
    may_name: Callable[[str], bool]
    parent: Ticket | None = None
    contract: OutputContract | None = None
    ceilings: Mapping[Unit, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """What came of it. ceilings: what the delegate's run may spend at most."""

    ticket: Ticket
    run: Run
    ceilings: Mapping[Unit, int]


def find_delegate(work: Work, workspace: Workspace, named: str) -> Agent:
    """The agent of a workspace that a reference or a name means. Raises InvalidInput where it is none, or might be several."""
    if ":" in named:
        ref = check_ref(named, "agent")
        agent = work.registry.find(ref) if contains(workspace.scope, ref.scope) else None
        found = [] if agent is None else [agent]
    else:
        found = work.registry.named(check_name(named, "agent"), [workspace.scope], 2)
    if len(found) == 1:
        return found[0]
    if found:
        remedy = "write the whole reference, such as acme/platform:developer"
        raise InvalidInput([Violation(field="agent", reason="means several agents of this workspace", remedy=remedy)])
    remedy = "name an agent of the workspace's scope or below"
    raise InvalidInput([Violation(field="agent", reason="means no agent of this workspace", remedy=remedy)])


def guards_of(given: HandOver) -> Sequence[Guard]:
    """The guards that the delegation has to pass: all, unless a person delegates (D-2, D-5)."""
    return STRUCTURE if given.source is None else tuple(Guard)


def resolvers_of(work: Work, given: HandOver) -> Resolvers:
    """How the guards come to their facts in a transaction."""
    source, parent = given.source, given.parent
    before = {run_key(source.id): False} if source is not None else {}
    before |= {ticket_key(parent.id): False} if parent is not None else {}

    @cache
    def lineage() -> Lineage:
        who = () if source is None else (source.agent_id,)
        return {**lineage_of(work, *before), _CALL: Link(agents=who, before=before)}

    def depth() -> int:
        # Where a person hands on work that is part of nothing, nothing was delegated yet, not even by this.
        return depth_of(lineage()) if before else -1

    def cycle() -> Sequence[str] | None:
        way = way_from(lineage(), _CALL, given.delegate.id)
        refs = [] if way is None else [work.registry.by_id(agent_id).ref for agent_id in (*way, given.delegate.id)]
        return [ref.text if given.may_name(ref.scope) else HIDDEN for ref in refs] or None

    if source is None:
        return Resolvers(depth=depth, cycle=cycle)

    def autonomy() -> Levels:
        levels = (autonomy_in(work, given.space.id, agent_id) for agent_id in (source.agent_id, given.delegate.id))
        delegator, delegate = levels
        return Levels(delegator=delegator, delegate=delegate)

    return Resolvers(depth=depth, cycle=cycle, autonomy=autonomy, budget=lambda: has_something_left(work, source))


Resolve = Callable[[Work, HandOver], Resolvers]


def hand_over(work: Work, content: ContentStore, given: HandOver, resolve: Resolve = resolvers_of) -> HandedOver:
    """Hand work on within a transaction.

    Raises Refused with the reason of the guard that objects, or of what keeps the run from being opened; ContentUnavailable. The
    transaction is then to be undone.
    """
    source = given.source
    new = NewTicket(
        workspace_id=given.workspace.id,
        title=given.title,
        description=given.description,
        parent_id=None if given.parent is None else given.parent.id,
        delegated_by_id=None if source is None else source.agent_id,
        made_by_id=given.person.id if source is None else None,
        made_in_run_id=None if source is None else source.id,
        space_id=given.space.id,
    )
    ticket = make_ticket(work, new, Guarded(guards=guards_of(given), given=resolve(work, given)))
    _demand_passage(given)
    party = Party(kind=PartyKind.AGENT, id=given.delegate.id, ref=given.delegate.ref)
    work.tickets.involve(ticket, Involved(role=TicketRole.ASSIGNEE, party=party))
    run = _opened(work, content, given, ticket)
    if given.contract is not None:
        work.contracts.declare(run.id, given.contract.schema, given.contract.mode)
    # Last, as every other tool does: whoever locks budgets waits for nothing else any more.
    return HandedOver(ticket=ticket, run=run, ceilings=_limited(work, given, run))


def _demand_passage(given: HandOver) -> None:
    """Raises Refused where the barrier keeps the data away; the scope is named only to whoever may know it (A-9)."""
    stopped = None if given.source is None else crossing(given.source.labels, given.delegate.ref.scope)
    if stopped is not None:
        into = stopped.into if given.may_name(stopped.into) else "the scope of that agent"
        raise Refused(f"{stopped.label} may not go to {into}: {stopped.rule}")


def _opened(work: Work, content: ContentStore, given: HandOver, ticket: Ticket) -> Run:
    """The delegate's run on the ticket, and the message that tells of it."""
    source, delegate = given.source, given.delegate
    author = Author(person_id=given.person.id) if source is None else Author(run_id=source.id)
    told = f"#{ticket.number} is delegated to {delegate.ref}: {ticket.title}"
    message_id = work.spaces.say(given.space, MessageKind.NOTICE, author, told, now_ms(), [ticket.id])
    by = given.person.ref if source is None else source.agent
    # The delegate's people may not know the delegator, whose scope may be a broader one.
    shown = by.text if contains(delegate.ref.scope, by.scope) else None
    workplace = Workplace(
        workspace_id=given.workspace.id,
        space_id=given.space.id,
        mode=given.space.mode,
        message_id=message_id,
        ticket_id=ticket.id,
    )
    new = NewWork(
        agent=delegate,
        opened_by=OpenedBy.PERSON if source is None else OpenedBy.DELEGATION,
        on_behalf_of=given.person,
        source=source,
        workplace=workplace,
        text=delegated(given.workspace, given.space, ticket, shown),
        labels=label_of(given.workspace.scope),
    )
    return open_work(work, content, new)


def _limited(work: Work, given: HandOver, run: Run) -> Mapping[Unit, int]:
    """The ceilings of the delegate's run, set aside from the delegator's budgets where an agent delegates."""
    if given.source is not None:
        return set_aside(work, given.source, run, given.ceilings)
    own = own_ceilings(work, run)
    ceilings = {unit: min(most, own.get(unit, most)) for unit, most in given.ceilings.items()}
    work.budgets.hold((run_holder(run.id),), tuple(ceilings), ceilings)
    return own | ceilings
