"""Saying something in a space: the message, whom it mentions and what that starts, in one transaction (W-4, W-8, W-9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.access import Person
from agentplat.domain.autonomy import Autonomy, reaches
from agentplat.domain.chains import OpenedBy
from agentplat.domain.errors import InvalidInput, Refused, Violation, phrase
from agentplat.domain.handover import handover
from agentplat.domain.labels import join, label_of
from agentplat.domain.mentions import FIELD, Parsed, parse, resolve
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref, contains
from agentplat.domain.spaces import Mention, MentionOutcome, Space, Workplace
from agentplat.domain.tickets import Author, MessageKind, Party, PartyKind, Ticket
from agentplat.domain.times import now_ms
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Work
from agentplat.usecases.circumstances import autonomy_in_run
from agentplat.usecases.finding_work import labels_of_ticket
from agentplat.usecases.open_work import NewWork, open_work

MOST_BETWEEN_TWO = 10
"""Messages by which two agents start each other, at most, in `WITHIN_MS`."""

WITHIN_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Who says something. run: that of the agent, where one does. on_behalf_of: the person who speaks, or for whom it does."""

    on_behalf_of: Person
    run: Run | None = None

    @property
    def author(self) -> Author:
        """The author of the message."""
        return Author(person_id=self.on_behalf_of.id) if self.run is None else Author(run_id=self.run.id)

    @property
    def ref(self) -> Ref:
        """The name of whoever speaks."""
        return self.on_behalf_of.ref if self.run is None else self.run.agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """Something to be said. space: held. among: those whom the speaker may mention, None where a name in the text mentions nobody.

    where: what these belong to, in words.
    """

    workspace: Workspace
    space: Space
    speaker: Speaker
    text: str
    among: Sequence[Party] | None
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message that was said, with what became of its mentions."""

    message_id: int
    mentions: tuple[Mention, ...]


def speak(work: Work, content: ContentStore, speech: Speech) -> Said:
    """Say it within a transaction.

    A mention that starts nothing because a guard refuses is told in the space by a message that mentions nobody. Raises
    InvalidInput, without having written anything, for a name or ticket that is not there or might be several; ContentUnavailable.
    """
    parsed = parse(speech.text)
    names = () if speech.among is None else parsed.mentions
    parties = list(dict.fromkeys(resolve(name, speech.among or (), speech.where) for name in names))
    tickets = [_ticket(work, speech.workspace, number) for number in parsed.tickets]
    run, at = speech.speaker.run, now_ms()
    if run is not None:
        # In one order for everybody, so that no two wait for each other.
        for other_id in sorted(party.id for party in parties if party.kind is PartyKind.AGENT):
            work.spaces.hold_pair(run.agent_id, other_id)
    kind = MessageKind.SAID if run is None or parties else MessageKind.PROGRESS
    message_id = work.spaces.say(speech.space, kind, speech.speaker.author, speech.text, at, [ticket.id for ticket in tickets])
    calling = _Calling(work=work, content=content, speech=speech, parsed=parsed, message_id=message_id, tickets=tickets, at=at)
    mentions = tuple(calling.mention(party) for party in parties)
    work.spaces.mention(message_id, mentions)
    for mention in mentions:
        if mention.outcome is MentionOutcome.REFUSED:
            told = f"{mention.party.ref.name} was not started: {mention.reason}."
            work.spaces.say(speech.space, MessageKind.REFUSAL, speech.speaker.author, told, at)
    return Said(message_id=message_id, mentions=mentions)


def _ticket(work: Work, workspace: Workspace, number: int) -> Ticket:
    found = work.tickets.numbered(workspace.id, number)
    if found is None:
        remedy = "refer to a ticket that is there, or write the number between backticks"
        reason = phrase("%(ticket)s is no ticket of this workspace", ticket=f"#{number}")
        raise InvalidInput([Violation(field=FIELD, reason=reason, remedy=remedy)])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Calling:
    """What the mentions of one message do."""

    work: Work
    content: ContentStore
    speech: Speech
    parsed: Parsed
    message_id: int
    tickets: list[Ticket]
    at: int

    def mention(self, party: Party) -> Mention:
        """What becomes of the mention of somebody."""
        run = self.speech.speaker.run
        if party.kind is PartyKind.PERSON:
            return Mention(party=party, outcome=MentionOutcome.NOTIFIED)
        if run is not None and party.id == run.agent_id:
            return _ignored(party, "an agent's mention of itself does nothing")
        if self.parsed.alone:
            return _ignored(party, "a message of mentions alone starts nothing")
        try:
            if run is not None:
                self._demand_start(run, party)
            opened = open_work(self.work, self.content, self._new(party))
        except Refused as refusal:
            return Mention(party=party, outcome=MentionOutcome.REFUSED, reason=str(refusal))
        return Mention(party=party, outcome=MentionOutcome.OPENED, run_id=opened.id)

    def _demand_start(self, run: Run, party: Party) -> None:
        """Raises Refused where the agent of a run may not start another one just now."""
        if not reaches(autonomy_in_run(self.work, run), Autonomy.ACT_WITH_APPROVAL):
            raise Refused(f"{run.agent.name} may only propose, so that its mentions start nothing")
        made = self.work.spaces.mentions_between(run.agent_id, party.id, self.at - WITHIN_MS)
        if made >= MOST_BETWEEN_TWO:
            names = " and ".join(sorted((run.agent.name, party.ref.name)))
            raise Refused(f"{names} have sent each other {made} messages within a minute, which is the most")

    def _new(self, party: Party) -> NewWork:
        speech, speaker = self.speech, self.speech.speaker
        # A person whom readers of the workspace might not know by name has none here.
        known = speaker.run is not None or contains(speech.workspace.scope, speaker.ref.scope)
        author = speaker.ref.text if known else "a person"
        labels = [labels_of_ticket(self.work, speech.workspace, ticket) for ticket in self.tickets]
        return NewWork(
            agent=self.work.registry.by_id(party.id),
            opened_by=OpenedBy.MENTION,
            on_behalf_of=speaker.on_behalf_of,
            source=speaker.run,
            workplace=Workplace(
                workspace_id=speech.workspace.id,
                space_id=speech.space.id,
                mode=speech.space.mode,
                message_id=self.message_id,
                ticket_id=self.tickets[0].id if self.tickets else None,
            ),
            text=handover(speech.workspace, speech.space, self.message_id, author, speech.text, self.tickets),
            labels=join(label_of(speech.workspace.scope), *labels),
        )


def _ignored(party: Party, reason: str) -> Mention:
    return Mention(party=party, outcome=MentionOutcome.IGNORED, reason=reason)
