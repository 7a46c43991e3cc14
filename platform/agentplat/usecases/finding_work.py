"""Finding what a caller names in a workspace. What lies in one whose scope they may not read is not there for them (W-12)."""

from __future__ import annotations

from collections.abc import Iterable

from agentplat.domain.access import Access, Person
from agentplat.domain.errors import NotFound, Unauthenticated
from agentplat.domain.labels import Labels, join, label_of
from agentplat.domain.registry import Agent
from agentplat.domain.scopes import Ref, contains
from agentplat.domain.spaces import Message, Space
from agentplat.domain.tickets import Party, PartyKind, Ticket
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Work


def person_of(access: Access) -> Person:
    """Whoever acts, as a person. Raises Unauthenticated for the operator at the host, who is none."""
    if access.person is None:
        raise Unauthenticated
    return access.person


def readable_workspace(work: Work, access: Access, workspace_id: int) -> Workspace:
    """The workspace. Raises NotFound where it is not there or its scope is not readable."""
    found = work.workspaces.find(workspace_id)
    if found is None or not access.may_read(found.scope):
        raise NotFound
    return found


def open_workspace(work: Work, access: Access, workspace_id: int) -> Workspace:
    """The workspace, for a member who may write there: an author or admin. Raises NotFound, AccessDenied."""
    found = readable_workspace(work, access, workspace_id)
    access.demand_publishing(found.scope)
    return found


def space_in(work: Work, workspace: Workspace, space_id: int) -> Space:
    """A space of the workspace. Raises NotFound where there is none, or it was removed."""
    found = work.spaces.find(space_id)
    if found is None or found.workspace_id != workspace.id or found.removed_at is not None:
        raise NotFound
    return found


def held_space(work: Work, workspace: Workspace, space_id: int) -> Space:
    """A space of the workspace, held until the transaction ends. Raises NotFound."""
    space_in(work, workspace, space_id)
    found = work.spaces.hold(space_id)
    if found is None or found.removed_at is not None:
        raise NotFound
    return found


def ticket_in(work: Work, workspace: Workspace, number: int) -> Ticket:
    """The ticket of this number in the workspace. Raises NotFound."""
    found = work.tickets.numbered(workspace.id, number)
    if found is None:
        raise NotFound
    return found


def agent_in(work: Work, workspace: Workspace, ref: Ref) -> Agent:
    """An agent of the workspace (W-1). Raises NotFound."""
    found = work.registry.find(ref) if contains(workspace.scope, ref.scope) else None
    if found is None:
        raise NotFound
    return found


def as_party(found: Agent | Person) -> Party:
    """An agent or a person as somebody who may be involved."""
    kind = PartyKind.AGENT if isinstance(found, Agent) else PartyKind.PERSON
    return Party(kind=kind, id=found.id, ref=found.ref)


def readable_members(work: Work, access: Access, workspace: Workspace) -> list[Person]:
    """The members whose home the reader may read."""
    return [person for person in work.workspaces.members(workspace) if access.may_read(person.ref.scope)]


def labels_within(work: Work, workspace: Workspace, run_ids: Iterable[int | None]) -> Labels:
    """The labels of what was written in a workspace: those of its scope, and those of the runs that wrote it (A-8)."""
    wrote = {run_id for run_id in run_ids if run_id is not None}
    return join(label_of(workspace.scope), work.runs.labels(wrote))


def labels_of_ticket(work: Work, workspace: Workspace, ticket: Ticket) -> Labels:
    """The labels of a ticket's text, with all who ever changed it."""
    return labels_within(work, workspace, [ticket.made_in_run_id, *(change.run_id for change in work.tickets.changes(ticket.id))])


def ticket_numbers(work: Work, messages: Iterable[Message]) -> dict[int, int]:
    """The numbers of the tickets that messages refer to, by id."""
    return work.tickets.numbers({ticket_id for message in messages for ticket_id in message.tickets})
