"""Workspaces, tickets and messages on the wire. A name that its reader may not know is null."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from agentplat.api.models import Wire
from agentplat.domain.access import Access
from agentplat.domain.runs import Run
from agentplat.domain.tickets import Involved, Party, Status, Ticket, TicketChange, TicketComment
from agentplat.domain.times import iso
from agentplat.domain.workspaces import Repository, Workspace
from agentplat.usecases.converse import Completion, Notice, ShownMention, ShownMessage
from agentplat.usecases.manage_tickets import Delegated
from agentplat.usecases.manage_workspaces import ShownWorkspace


class PartyOut(Wire):
    """An agent or a person. name: SCOPE:NAME."""

    kind: str
    name: str | None

    @classmethod
    def of(cls, party: Party, access: Access) -> Self:
        """The party on the wire."""
        seen = access.visible(party.ref)
        return cls(kind=party.kind.value, name=None if seen is None else seen.text)


class WorkspaceIn(Wire):
    """A workspace to create. scope: ``*``, ``acme`` or ``acme/platform``."""

    scope: str
    name: str


class WorkspaceOut(Wire):
    """A workspace."""

    id: int
    scope: str
    name: str
    created_at: str

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """The workspace on the wire."""
        return cls(id=workspace.id, scope=workspace.scope, name=workspace.name, created_at=iso(workspace.created_at))


class WorkspacesOut(Wire):
    """A page of workspaces by id. next: what to give as `after` for the next page, null on the last."""

    workspaces: list[WorkspaceOut]
    next: int | None


class RepositoryIn(Wire):
    """A git repository of the server's host to link. path: its folder, from / on."""

    name: str
    path: str = Field(max_length=4_096)


class RepositoryOut(Wire):
    """A linked repository."""

    name: str
    host: str
    path: str

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """The repository on the wire."""
        return cls(name=repository.name, host=repository.host, path=repository.path)


class WorkspaceDetailsOut(WorkspaceOut):
    """A workspace with the agents that it has, the members whom the reader may know, and what it links."""

    members: list[str]
    agents: list[str]
    repositories: list[RepositoryOut]

    @classmethod
    def shown(cls, shown: ShownWorkspace) -> Self:
        """The workspace on the wire."""
        return cls(
            members=[ref.text for ref in shown.members],
            agents=[agent.ref.text for agent in shown.agents],
            repositories=[RepositoryOut.of(repository) for repository in shown.repositories],
            **dict(WorkspaceOut.of(shown.workspace)),
        )


class TicketIn(Wire):
    """A ticket to make."""

    title: str
    description: str = ""
    status: Status = Status.OPEN


class ChangeIn(Wire):
    """What to change of a ticket. version: the one that was seen."""

    version: int = Field(ge=1, le=2**31 - 1)
    title: str | None = None
    description: str | None = None
    status: Status | None = None


class TicketOut(Wire):
    """A ticket. number: as in #12. depth: how many times in a row it was delegated."""

    number: int
    title: str
    description: str
    status: str
    version: int
    depth: int
    created_at: str

    @classmethod
    def of(cls, ticket: Ticket) -> Self:
        """The ticket on the wire."""
        return cls(
            number=ticket.number,
            title=ticket.title,
            description=ticket.description,
            status=ticket.status.value,
            version=ticket.version,
            depth=ticket.depth,
            created_at=iso(ticket.created_at),
        )


class TicketsOut(Wire):
    """A page of tickets, newest first. next: what to give as `before` for the next page, null on the last."""

    tickets: list[TicketOut]
    next: int | None


class InvolvedOut(PartyOut):
    """Somebody in a role."""

    role: str

    @classmethod
    def having(cls, involved: Involved, access: Access) -> Self:
        """The role on the wire."""
        return cls(role=involved.role.value, **dict(PartyOut.of(involved.party, access)))


class ChangeOut(Wire):
    """A change of a ticket. run: that of the agent who made it. changed: the new values."""

    version: int
    by: PartyOut
    run: int | None
    changed: dict[str, Any]
    at: str

    @classmethod
    def of(cls, change: TicketChange, access: Access) -> Self:
        """The change on the wire."""
        by = PartyOut.of(change.author, access)
        return cls(version=change.version, by=by, run=change.run_id, changed=dict(change.body), at=iso(change.at))


class CommentIn(Wire):
    """A comment to add."""

    body: str


class CommentOut(Wire):
    """A comment. kind: refusal for a delegation that a guard refused."""

    id: int
    kind: str
    by: PartyOut
    run: int | None
    body: str
    at: str

    @classmethod
    def of(cls, comment: TicketComment, access: Access) -> Self:
        """The comment on the wire."""
        by = PartyOut.of(comment.author, access)
        return cls(id=comment.id, kind=comment.kind.value, by=by, run=comment.run_id, body=comment.body, at=iso(comment.at))


class DelegatedOut(Wire):
    """A ticket below another one, with those below it. by: the agent who delegated it."""

    number: int
    title: str
    status: str
    by: str | None
    children: list[DelegatedOut]

    @classmethod
    def of(cls, delegated: Delegated, access: Access) -> Self:
        """The tree on the wire."""
        seen = access.visible(delegated.by)
        return cls(
            number=delegated.ticket.number,
            title=delegated.ticket.title,
            status=delegated.ticket.status.value,
            by=None if seen is None else seen.text,
            children=[cls.of(child, access) for child in delegated.children],
        )


class PlaceRunOut(Wire):
    """A run that works in a space."""

    run: int
    agent: str | None
    state: str

    @classmethod
    def of(cls, run: Run, access: Access) -> Self:
        """The run on the wire."""
        seen = access.visible(run.agent)
        return cls(run=run.id, agent=None if seen is None else seen.text, state=run.state.value)


class MentionOut(Wire):
    """Somebody whom a message mentions, and what became of it: opened, notified, ignored or refused."""

    kind: str
    name: str | None
    outcome: str
    run: int | None
    reason: str | None

    @classmethod
    def of(cls, mention: ShownMention) -> Self:
        """The mention on the wire."""
        return cls(
            kind=mention.kind.value,
            name=None if mention.ref is None else mention.ref.text,
            outcome=mention.outcome.value,
            run=mention.run_id,
            reason=mention.reason,
        )


class MessageIn(Wire):
    """Something to say. @name mentions somebody, #12 refers to a ticket."""

    body: str


class MessageOut(Wire):
    """A message. tickets: the numbers of those that it refers to."""

    id: int
    kind: str
    by: PartyOut
    run: int | None
    body: str
    at: str
    tickets: list[int]
    mentions: list[MentionOut]

    @classmethod
    def of(cls, message: ShownMessage) -> Self:
        """The message on the wire."""
        return cls(
            id=message.id,
            kind=message.kind.value,
            by=PartyOut(kind=message.author_kind.value, name=None if message.author is None else message.author.text),
            run=message.run_id,
            body=message.body,
            at=iso(message.at),
            tickets=list(message.tickets),
            mentions=[MentionOut.of(mention) for mention in message.mentions],
        )


class MessagesOut(Wire):
    """Messages, oldest first. next: what to give as `after` from now on; it misses none."""

    messages: list[MessageOut]
    next: int


class NoticeOut(MessageOut):
    """A message that mentions the caller, with where it was said."""

    workspace: int
    space: int

    @classmethod
    def telling(cls, notice: Notice) -> Self:
        """The notice on the wire."""
        return cls(workspace=notice.workspace_id, space=notice.space_id, **dict(MessageOut.of(notice.message)))


class NoticesOut(Wire):
    """Messages that mention the caller, newest first."""

    messages: list[NoticeOut]


class TicketDetailsOut(TicketOut):
    """A ticket with all that belongs to it."""

    parent: int | None
    made_by: PartyOut
    involved: list[InvolvedOut]
    changes: list[ChangeOut]
    comments: list[CommentOut]
    children: list[DelegatedOut]
    runs: list[PlaceRunOut]
    messages: list[MessageOut]


class ChangedOut(Wire):
    """Whether anything changed by this."""

    changed: bool


class CompletionOut(Wire):
    """What the composer may put in. insert: the text; label: what it shows."""

    insert: str
    label: str

    @classmethod
    def of(cls, completion: Completion) -> Self:
        """The completion on the wire."""
        return cls(insert=completion.insert, label=completion.label)


class CompletionsOut(Wire):
    """What fits, the best first."""

    completions: list[CompletionOut]
