"""Tools by which a run reads and speaks in the space where it works (W-4, W-7, W-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.modes import Mode
from agentplat.domain.spaces import MentionOutcome
from agentplat.domain.tickets import Author, MessageKind, Party, PartyKind
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Effect, Given, Place, ToolSpec
from agentplat.store.port import Work
from agentplat.usecases.finding_work import as_party, labels_within
from agentplat.usecases.place_tools import EVERY_MODE, MOST_SHOWN_BYTES, PlaceTool, Where, declared, told
from agentplat.usecases.speak import Said, Speaker, Speech, speak
from agentplat.usecases.texts import check_text, clipped

MOST_READ = 20
"""Messages that one call gives, at most."""


@dataclass(frozen=True, kw_only=True)
class ReadSpace(PlaceTool):
    """Reads what was said."""

    @property
    @override
    def spec(self) -> ToolSpec:
        return declared(
            "read_space",
            f"Read the space you work in: at most {MOST_READ} messages behind a message's id, or the newest ones.",
            {"after": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "description": "the id of the last message known"}},
            (),
            Place(modes=EVERY_MODE),
            Effect.READ,
        )

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        after, space = arguments.get("after"), where.space
        found = work.spaces.newest(space.id, MOST_READ) if after is None else work.spaces.messages(space.id, int(after), MOST_READ)
        messages = [
            {
                "id": message.id,
                "kind": message.kind.value,
                "from": where.name(message.author.ref),
                "text": clipped(message.body, MOST_SHOWN_BYTES),
            }
            for message in found
        ]
        values = {
            "space": {"id": space.id, "name": space.name, "mode": where.workplace.mode.value},
            "participants": [agent.ref.text for agent in work.spaces.participants(space.id)],
            "messages": messages,
        }
        return told(values, labels_within(work, where.workspace, [message.run_id for message in found]))


@dataclass(frozen=True, kw_only=True)
class PostMessage(PlaceTool):
    """Says something; in chat a mention of another participant starts it."""

    content: ContentStore

    @property
    @override
    def spec(self) -> ToolSpec:
        return declared(
            "post_message",
            "Say something in the space you work in. In a chat, @name starts a run of another participant; #12 refers to a ticket.",
            {"text": {"type": "string", "minLength": 1}},
            ("text",),
            Place(modes=EVERY_MODE),
            Effect.WRITE,
        )

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        said = speak(work, self.content, self._speech(work, where, check_text(str(arguments["text"]), "text")))
        return told(_outcome(said))

    def _speech(self, work: Work, where: Where, text: str) -> Speech:
        return Speech(
            workspace=where.workspace,
            space=where.space,
            speaker=Speaker(on_behalf_of=work.people.by_id(where.run.on_behalf_of_id), run=where.run),
            text=text,
            among=_others(work, where) if where.workplace.mode is Mode.CHAT else None,
            where="this space's participants",
        )


def _others(work: Work, where: Where) -> list[Party]:
    """Whom a run may mention: the participants, and itself, which does nothing."""
    participants = [as_party(agent) for agent in work.spaces.participants(where.space.id)]
    own = Party(kind=PartyKind.AGENT, id=where.run.agent_id, ref=where.run.agent)
    return participants if own in participants else [*participants, own]


def _outcome(said: Said) -> dict[str, Any]:
    """What became of a message, for the run that said it; a refusal word for word."""
    started = [
        {"agent": mention.party.ref.text, "run": mention.run_id}
        for mention in said.mentions
        if mention.outcome is MentionOutcome.OPENED
    ]
    not_started = [
        {"agent": mention.party.ref.text, "reason": mention.reason}
        for mention in said.mentions
        if mention.outcome in (MentionOutcome.REFUSED, MentionOutcome.IGNORED)
    ]
    return {"message": said.message_id, "started": started, "not_started": not_started}


@dataclass(frozen=True, kw_only=True)
class SubmitPlan(PlaceTool):
    """Hands a plan in, for people to read."""

    @property
    @override
    def spec(self) -> ToolSpec:
        return declared(
            "submit_plan",
            "Hand in the plan that you were asked for. People read it in the space; nothing is done by it.",
            {"plan": {"type": "string", "minLength": 1}},
            ("plan",),
            Place(modes=frozenset({Mode.PLAN})),
            Effect.WRITE,
        )

    @override
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        plan = check_text(str(arguments["plan"]), "plan")
        own = where.workplace.ticket_id
        author, tickets = Author(run_id=where.run.id), () if own is None else (own,)
        message_id = work.spaces.say(where.space, MessageKind.PLAN, author, plan, now_ms(), tickets)
        return told({"message": message_id})
