"""What the store promises about working together: the part of `store.port` that is about workspaces, tickets, spaces and contracts.

Nothing here knows who may read what: whoever asks checks that before, by the scope of the workspace (W-12).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from agentplat.domain.access import Person
from agentplat.domain.artifacts import Blob
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.contracts import ContractMode, RunContract
from agentplat.domain.modes import Mode
from agentplat.domain.registry import Agent
from agentplat.domain.spaces import Mention, Message, Space, Workplace
from agentplat.domain.tickets import Author, Involved, MessageKind, NewTicket, Status, Ticket, TicketChange, TicketComment
from agentplat.domain.workspaces import KeptTree, Repository, Workspace


class Workspaces(Protocol):
    """Workspaces and the repositories that they link."""

    def add(self, scope: str, name: str, by: Person | None, at: int) -> Workspace | None:
        """Store a workspace; None when its scope has one of that name."""

    def find(self, workspace_id: int) -> Workspace | None:
        """The workspace."""

    def page(self, scopes: Collection[str], after: int, size: int) -> list[Workspace]:
        """Workspaces of these scopes and below, by id, from behind `after`."""

    def link(self, workspace: Workspace, name: str, host: str, path: str) -> Repository | None:
        """Link a repository; None when the workspace has one of that name."""

    def repositories(self, workspace_id: int) -> list[Repository]:
        """The linked repositories, by name."""

    def members(self, workspace: Workspace) -> list[Person]:
        """People with a grant on the workspace's scope, by scope, then name."""

    def agents(self, workspace: Workspace) -> list[Agent]:
        """Agents of the workspace's scope and below that have a published version, by scope, then name (W-1)."""

    def keep_tree(self, space_id: int, repository: Repository, path: str, branch: str) -> None:
        """Keep where the work tree of a space is; one that is known already stays as it is."""

    def trees(self, space_id: int) -> list[KeptTree]:
        """The work trees of a space, by the repository's name."""

    def forget_tree(self, tree: KeptTree) -> None:
        """Forget a work tree that is gone."""

    def left_behind(self, host: str) -> list[int]:
        """Spaces that were removed and still have a work tree on the host, by id."""


class Tickets(Protocol):
    """Tickets. A change names the version that it is based on, and a stale one changes nothing."""

    def make(self, new: NewTicket, at: int) -> Ticket:
        """Store a ticket under the next number of its workspace."""

    def find(self, ticket_id: int) -> Ticket | None:
        """The ticket."""

    def numbers(self, ticket_ids: Collection[int]) -> dict[int, int]:
        """The numbers of these tickets within their workspaces, by id."""

    def numbered(self, workspace_id: int, number: int) -> Ticket | None:
        """The ticket of this number in a workspace."""

    def page(self, workspace_id: int, statuses: Collection[Status], before: int | None, size: int) -> list[Ticket]:
        """Tickets of a workspace with one of the statuses and a number under `before`, newest first."""

    def children(self, ticket_id: int) -> list[Ticket]:
        """The tickets that it is the parent of, by id."""

    def change(self, ticket: Ticket, author: Author, at: int, changed: Mapping[str, Any]) -> Ticket | None:
        """Change title, description or status; None where the ticket has another version by now."""

    def changes(self, ticket_id: int) -> list[TicketChange]:
        """Its changes, oldest first."""

    def involve(self, ticket: Ticket, involved: Involved) -> bool:
        """Give somebody a role; the assignee takes the place of the one before. False where they have it already."""

    def release(self, ticket: Ticket, involved: Involved) -> bool:
        """Take a role away; False where they do not have it."""

    def involved(self, ticket_id: int) -> list[Involved]:
        """Who is involved, by role, then in the order that they came."""

    def comment(self, ticket: Ticket, kind: MessageKind, author: Author, body: str, at: int) -> TicketComment:
        """Add a comment."""

    def comments(self, ticket_id: int, after: int, size: int) -> list[TicketComment]:
        """Comments with an id behind `after`, oldest first."""


class Spaces(Protocol):
    """Spaces, what is said in them, and which runs work there."""

    def add(self, workspace_id: int, name: str, mode: Mode, by: Person | None, at: int) -> Space | None:
        """Store a space; None when the workspace has one of that name."""

    def find(self, space_id: int) -> Space | None:
        """The space, one that was removed too."""

    def hold(self, space_id: int) -> Space | None:
        """The space, held until the transaction ends against every other writer who holds or changes it."""

    def page(self, workspace_id: int, after: int, size: int) -> list[Space]:
        """Spaces of a workspace that were not removed, by id, from behind `after`."""

    def set_mode(self, space: Space, mode: Mode) -> None:
        """Set the mode for what the next message opens."""

    def remove(self, space: Space, at: int) -> bool:
        """Remove the space; False where it was already. What was said stays."""

    def add_participant(self, space: Space, agent: Agent, by: Person, at: int) -> bool:
        """Add an agent; False where it takes part already."""

    def remove_participant(self, space: Space, agent: Agent) -> bool:
        """Take an agent out; False where it takes no part."""

    def participants(self, space_id: int) -> list[Agent]:
        """The agents that take part, in the order that they came."""

    def set_autonomy(self, space: Space, agent: Agent, level: Autonomy, by: Person, at: int) -> None:
        """Set the level of an agent in the space."""

    def autonomy(self, space_id: int, agent_id: int) -> Autonomy | None:
        """The level of an agent in the space; None where nobody set one."""

    def say(
        self,
        space: Space,
        kind: MessageKind,
        author: Author,
        body: str,
        at: int,
        tickets: Sequence[int] = (),
    ) -> int:
        """Add a message that refers to these tickets, by their ids; its id."""

    def mention(self, message_id: int, mentions: Sequence[Mention]) -> None:
        """Keep whom a message mentions, and what became of it."""

    def messages(self, space_id: int, after: int, size: int) -> list[Message]:
        """Messages with an id behind `after`, oldest first. None with a lower id than one of these appears later."""

    def newest(self, space_id: int, size: int) -> list[Message]:
        """The newest messages, oldest first."""

    def last_said(self, space_ids: Collection[int]) -> dict[int, int]:
        """The id of the last message of each of the spaces that has one."""

    def beginning(self, space_id: int, size: int) -> int:
        """Behind which message the newest so many of a space begin; 0 where there are no more than these."""

    def message(self, message_id: int) -> Message | None:
        """One message."""

    def referring(self, ticket_id: int, size: int) -> list[Message]:
        """The newest messages that refer to a ticket."""

    def hold_pair(self, agent_id: int, other_id: int) -> None:
        """Keep everybody else who holds this pair of agents from going on until the transaction ends."""

    def mentions_between(self, agent_id: int, other_id: int, since: int) -> int:
        """How many messages of either agent have started the other by a mention, in any space, since a moment."""

    def mentions_of(
        self, person_id: int, scopes: Collection[str], workspace_id: int | None, before: int | None, size: int
    ) -> list[tuple[int, Message]]:
        """Messages that mention a person with the ids of their workspaces, newest first.

        They stand in spaces that are there, in workspaces of these scopes and below; of one workspace where that is given.
        """

    def place(self, run_id: int, workplace: Workplace) -> None:
        """Keep where a run works; never changed."""

    def workplace(self, run_id: int) -> Workplace | None:
        """Where a run works; None where it works in no space."""

    def runs_of(self, space_id: int, size: int) -> list[int]:
        """The newest runs that work in the space, by id."""

    def runs_on(self, ticket_id: int, size: int) -> list[int]:
        """The newest runs that work on the ticket, by id."""

    def unended(self, space_id: int) -> list[int]:
        """The runs that work in the space and have not ended, by id."""


class Contracts(Protocol):
    """What the output of runs must look like (D-10 to D-12)."""

    def declare(self, run_id: int, schema_text: str, mode: ContractMode) -> None:
        """Give a run its contract. schema_text: canonical JSON."""

    def of_run(self, run_id: int) -> RunContract | None:
        """A run's contract and how far it was met; None where it has none."""

    def of_runs(self, run_ids: Collection[int]) -> dict[int, RunContract]:
        """The contracts of those of the runs that have one."""

    def reject(self, run_id: int) -> int:
        """Count a rejection, and how many there are."""

    def accept(self, run_id: int, output: Blob) -> bool:
        """Keep the accepted output; False where one was kept before. Its bytes must be durable already."""
