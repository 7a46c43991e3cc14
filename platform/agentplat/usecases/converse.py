"""What people say and read in spaces, and what the composer completes (W-4, W-5, W-8, W-12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access
from agentplat.domain.mentions import fold, matching, mention_of
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Mention, MentionOutcome, Message
from agentplat.domain.tickets import MessageKind, Party, PartyKind, Status, Ticket
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Store, Work
from agentplat.usecases.finding_work import (
    as_party,
    held_space,
    open_workspace,
    person_of,
    readable_members,
    readable_workspace,
    space_in,
    ticket_numbers,
)
from agentplat.usecases.speak import Speaker, Speech, speak
from agentplat.usecases.texts import check_text

MOST_COMPLETIONS = 20
NEWEST_TICKETS = 500
"""Tickets whose titles are looked through for a completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMention:
    """Somebody whom a message mentions. ref: None where the reader may not know them by name."""

    kind: PartyKind
    ref: Ref | None
    outcome: MentionOutcome
    run_id: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """A message as one reader gets it. author: None where they may not know it by name. tickets: their numbers."""

    id: int
    kind: MessageKind
    author_kind: PartyKind
    author: Ref | None
    run_id: int | None
    body: str
    at: int
    tickets: tuple[int, ...]
    mentions: tuple[ShownMention, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message that mentions its reader, and where it was said."""

    workspace_id: int
    space_id: int
    message: ShownMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What the composer may put in. insert: the text, which means this and nothing else."""

    insert: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Converse:
    """Each method raises NotFound where the workspace is not readable or has no such space, and StoreUnavailable."""

    store: Store
    content: ContentStore

    def post(self, access: Access, workspace_id: int, space_id: int, text: str) -> ShownMessage:
        """Say something. A mention of an agent starts a run, or a refusal in the space says why it does not.

        Raises AccessDenied where the caller is neither author nor admin of the workspace's scope, InvalidInput for a text that is
        none, and for a mention or reference that is ambiguous or means nothing; ContentUnavailable.
        """
        by, said = person_of(access), check_text(text, "body")
        with self.store.writing() as work:
            workspace = open_workspace(work, access, workspace_id)
            space = held_space(work, workspace, space_id)
            speech = Speech(
                workspace=workspace,
                space=space,
                speaker=Speaker(on_behalf_of=by),
                text=said,
                among=_mentionable(work, access, workspace) if "@" in said else (),
                where="this workspace",
            )
            found = work.spaces.message(speak(work, self.content, speech).message_id)
            assert found is not None  # it was just said
            return shown_messages(work, access, [found])[0]

    def messages(self, access: Access, workspace_id: int, space_id: int, after: int, size: int) -> list[ShownMessage]:
        """What was said behind `after`, oldest first. Whoever goes on from the last one misses none."""
        with self.store.reading() as work:
            space = space_in(work, readable_workspace(work, access, workspace_id), space_id)
            return shown_messages(work, access, work.spaces.messages(space.id, after, size))

    def notified(self, access: Access, before: int | None, size: int, workspace_id: int | None = None) -> list[Notice]:
        """Messages that mention the caller with an id under `before`, newest first, from spaces that they may read now; of one
        workspace where that is given.
        """
        by = person_of(access)
        with self.store.reading() as work:
            found = work.spaces.mentions_of(by.id, access.scopes, workspace_id, before, size)
            shown = shown_messages(work, access, [message for _, message in found])
        return [
            Notice(workspace_id=within, space_id=message.space_id, message=one)
            for (within, message), one in zip(found, shown, strict=True)
        ]

    def before_newest(self, access: Access, workspace_id: int, space_id: int, size: int) -> int:
        """Behind which message to begin, to get the newest so many."""
        with self.store.reading() as work:
            space = space_in(work, readable_workspace(work, access, workspace_id), space_id)
            return work.spaces.beginning(space.id, size)

    def complete(self, access: Access, workspace_id: int, text: str) -> list[Completion]:
        """What may follow ``@`` or ``#`` and these first characters; nothing for any other text."""
        with self.store.reading() as work:
            workspace = readable_workspace(work, access, workspace_id)
            if text.startswith("@"):
                return _people_and_agents(_mentionable(work, access, workspace), text[1:].lstrip('"'))
            return _tickets(work, workspace, text[1:]) if text.startswith("#") else []


def _mentionable(work: Work, access: Access, workspace: Workspace) -> list[Party]:
    """Whom a person may mention: the workspace's agents, and the members whose home they may read."""
    members = readable_members(work, access, workspace)
    return [*map(as_party, work.workspaces.agents(workspace)), *map(as_party, members)]


def _people_and_agents(among: Sequence[Party], begun: str) -> list[Completion]:
    found = matching(begun, among) if begun else among
    # A whole name may be the beginning of others, which may be meant just as well.
    longer = [party for party in among if fold(party.ref.name).startswith(fold(begun))]
    listed = list(dict.fromkeys([*found, *longer]))[:MOST_COMPLETIONS]
    return [Completion(insert=mention_of(party, among), label=f"{party.ref.text} ({party.kind.value})") for party in listed]


def _tickets(work: Work, workspace: Workspace, begun: str) -> list[Completion]:
    wanted = fold(begun.strip())
    newest = work.tickets.page(workspace.id, list(Status), None, NEWEST_TICKETS)

    def fits(ticket: Ticket) -> bool:
        return str(ticket.number).startswith(wanted) or wanted in fold(ticket.title)

    found = [ticket for ticket in newest if fits(ticket)][:MOST_COMPLETIONS]
    return [Completion(insert=f"#{ticket.number}", label=f"#{ticket.number} {ticket.title}") for ticket in found]


def shown_messages(work: Work, access: Access, messages: Sequence[Message]) -> list[ShownMessage]:
    """Messages of readable workspaces for one reader."""
    numbers = ticket_numbers(work, messages)
    return [shown_to(access, message, numbers) for message in messages]


def shown_to(access: Access, message: Message, numbers: Mapping[int, int]) -> ShownMessage:
    """A message of a readable workspace for one reader. numbers: those of tickets, by id."""
    return ShownMessage(
        id=message.id,
        kind=message.kind,
        author_kind=message.author.kind,
        author=access.visible(message.author.ref),
        run_id=message.run_id,
        body=message.body,
        at=message.at,
        tickets=tuple(numbers[ticket_id] for ticket_id in message.tickets),
        mentions=tuple(_shown_mention(access, mention) for mention in message.mentions),
    )


def _shown_mention(access: Access, mention: Mention) -> ShownMention:
    return ShownMention(
        kind=mention.party.kind,
        ref=access.visible(mention.party.ref),
        outcome=mention.outcome,
        run_id=mention.run_id,
        reason=mention.reason,
    )
