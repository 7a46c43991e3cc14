"""What goes over the wire, as pydantic models that allow no other field."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from agentplat.domain.access import Role, Token
from agentplat.domain.acts import Act
from agentplat.domain.diff import Change, Diff, LoopChange
from agentplat.domain.languages import Language
from agentplat.domain.outbox import Entry
from agentplat.domain.registry import Version
from agentplat.domain.shown import ShownReport
from agentplat.domain.times import iso
from agentplat.usecases.list_agents import ListedAgent
from agentplat.usecases.manage_people import KnownPerson
from agentplat.usecases.preview_version import Preview
from agentplat.usecases.publish_version import Publication
from agentplat.usecases.suggest_instructions import Suggestion
from agentplat.usecases.tell import preview_text, shown_text, suggestion_text, warning_lines


class Wire(BaseModel):
    """Base of everything on the wire."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ManifestIn(Wire):
    """A manifest to publish or preview. source: its name in messages, such as a file's."""

    manifest: str
    source: str = Field(default="manifest", max_length=1_024)


class ReportOut(Wire):
    """A version's report for one reader. warning: its lines in the language asked for, none where there is nothing to warn of.

    text: the warning with notices and notes, for people.
    state: verified, not_answered or late. delivery: waiting, delivered, set_aside or skipped. fresh: made just now for this reader.
    report: null while the graph service has not answered. paused: agents named in it that are paused.
    refused: why the graph service refused this or an earlier publication of the agent, null where it did not.
    """

    agent: str
    version: int
    state: str
    delivery: str
    fresh: bool
    refused: str | None
    paused: list[str]
    report: dict[str, Any] | None
    warning: list[str]
    text: str

    @classmethod
    def of(cls, shown: ShownReport, language: Language) -> Self:
        """The report on the wire."""
        return cls(
            agent=shown.agent.text,
            version=shown.number,
            state=shown.state.value,
            delivery=shown.delivery.value,
            fresh=shown.fresh,
            refused=shown.refused,
            paused=[ref.text for ref in shown.paused],
            report=None if shown.body is None else dict(shown.body),
            warning=warning_lines(shown, language),
            text=shown_text(shown, language),
        )


class PublicationOut(ReportOut):
    """A published version with its report. created: false where the content was current already."""

    created: bool

    @classmethod
    def made(cls, publication: Publication, language: Language) -> Self:
        """The publication on the wire."""
        return cls(created=publication.created, **ReportOut.of(publication.report, language).model_dump())


class PublicationsOut(Wire):
    """One entry for each manifest, in their order."""

    versions: list[PublicationOut]


class ChangeOut(Wire):
    """Names that come and go."""

    added: list[str]
    removed: list[str]

    @classmethod
    def of(cls, change: Change) -> Self:
        """The change on the wire."""
        return cls(added=list(change.added), removed=list(change.removed))


class LoopChangeOut(Wire):
    """closed: loops that only the new version closes; opened: loops that it opens up; exact: whether these are all.

    A loop is the list of its agents, null for one outside the reader's access.
    """

    closed: list[list[str | None]]
    opened: list[list[str | None]]
    exact: bool

    @classmethod
    def of(cls, loops: LoopChange) -> Self:
        """The change on the wire."""
        return cls(closed=list(map(list, loops.closed)), opened=list(map(list, loops.opened)), exact=loops.exact)


class DiffOut(Wire):
    """What the version changes against the current one; against: its number, loops: null where the graph did not answer."""

    against: int | None
    events: ChangeOut
    triggers: ChangeOut
    loops: LoopChangeOut | None

    @classmethod
    def of(cls, diff: Diff) -> Self:
        """The diff on the wire."""
        loops = None if diff.loops is None else LoopChangeOut.of(diff.loops)
        return cls(against=diff.against, events=ChangeOut.of(diff.events), triggers=ChangeOut.of(diff.triggers), loops=loops)


class SourceOut(Wire):
    """An agent that emits the trigger, with the artifacts that it exposes."""

    agent: str
    artifacts: list[str]


class SuggestionOut(Wire):
    """What to write in a listener. text: instructions to start from, empty where no readable source exposes an artifact."""

    trigger: str
    artifacts: list[str]
    sources: list[SourceOut]
    text: str

    @classmethod
    def of(cls, suggestion: Suggestion, language: Language) -> Self:
        """The suggestion on the wire."""
        return cls(
            trigger=suggestion.trigger,
            artifacts=list(suggestion.artifacts),
            sources=[SourceOut(agent=s.agent.text, artifacts=list(s.artifacts)) for s in suggestion.sources],
            text=suggestion_text(suggestion, language),
        )


class PreviewOut(Wire):
    """What publishing would tell; nothing was stored. report: null where the graph service did not answer."""

    agent: str
    unchanged: bool
    report: dict[str, Any] | None
    paused: list[str]
    text: str
    diff: DiffOut
    suggestions: list[SuggestionOut]

    @classmethod
    def of(cls, preview: Preview, language: Language) -> Self:
        """The preview on the wire."""
        return cls(
            agent=preview.agent.text,
            unchanged=preview.unchanged,
            report=None if preview.body is None else dict(preview.body),
            paused=[ref.text for ref in preview.paused],
            text=preview_text(preview, language),
            diff=DiffOut.of(preview.diff),
            suggestions=[SuggestionOut.of(suggestion, language) for suggestion in preview.suggestions],
        )


class PreviewsOut(Wire):
    """One entry for each manifest, in their order."""

    previews: list[PreviewOut]


class UnsettledOut(Wire):
    """The first publication that the graph service does not know yet. state: waiting or set_aside."""

    kind: str
    version: int
    state: str
    attempts: int
    reason: str | None

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """The entry on the wire."""
        return cls(
            kind=entry.kind.value,
            version=entry.number,
            state=entry.state.value,
            attempts=entry.attempts,
            reason=entry.reason,
        )


class AgentOut(Wire):
    """An agent. version: the published one, null where it is retired. unsettled: null where the graph service knows all."""

    agent: str
    version: int | None
    paused: bool
    unsettled: UnsettledOut | None

    @classmethod
    def of(cls, listed: ListedAgent) -> Self:
        """The agent on the wire."""
        return cls(
            agent=listed.agent.ref.text,
            version=listed.agent.current,
            paused=listed.agent.paused,
            unsettled=None if listed.unsettled is None else UnsettledOut.of(listed.unsettled),
        )


class AgentsOut(Wire):
    """A page of agents. next: what to give as `after` for the next page, null on the last."""

    agents: list[AgentOut]
    next: str | None


class VersionOut(Wire):
    """An immutable version. publisher: null where outside the reader's access."""

    agent: str
    version: int
    digest: str
    publisher: str | None
    published_at: str
    manifest: dict[str, Any]

    @classmethod
    def of(cls, version: Version) -> Self:
        """The version on the wire."""
        return cls(
            agent=version.agent.ref.text,
            version=version.number,
            digest=version.content.digest,
            publisher=None if version.publisher is None else version.publisher.text,
            published_at=iso(version.published_at),
            manifest=dict(version.content.manifest),
        )


class AgentDetailsOut(AgentOut):
    """An agent with its published version."""

    current: VersionOut | None


class VersionsOut(Wire):
    """A page of versions, newest first. next: what to give as `below` for the next page, null on the last."""

    versions: list[VersionOut]
    next: int | None


class RetirementOut(Wire):
    """created: false where the agent was retired already. delivered: whether the graph service knows yet."""

    agent: str
    created: bool
    delivered: bool


class PausedOut(Wire):
    """changed: false where it was so already."""

    agent: str
    paused: bool
    changed: bool


class ResumeDeliveryIn(Wire):
    """skip: leave the refused publication out for good instead of trying it again."""

    skip: bool = False


class GrantWire(Wire):
    """A role on a scope."""

    role: Role
    scope: str


class PersonIn(Wire):
    """A person to add: SCOPE:NAME, the home scope first."""

    person: str


class PersonOut(Wire):
    """A person with those of their grants that the caller may manage."""

    person: str
    grants: list[GrantWire]

    @classmethod
    def of(cls, known: KnownPerson) -> Self:
        """The person on the wire."""
        return cls(person=known.person.ref.text, grants=[GrantWire(role=g.role, scope=g.scope) for g in known.grants])


class PeopleOut(Wire):
    """A page of people. next: what to give as `after` for the next page, null on the last."""

    people: list[PersonOut]
    next: str | None


class TokenIn(Wire):
    """A token to make. lasts_days: how long it is valid; null for until it is revoked."""

    name: str
    lasts_days: int | None = Field(default=90, ge=1, le=3_650)


class TokenOut(Wire):
    """What is known of a token."""

    name: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None

    @classmethod
    def of(cls, token: Token) -> Self:
        """The token's facts on the wire."""
        return cls(
            name=token.name,
            created_at=iso(token.created_at),
            expires_at=None if token.expires_at is None else iso(token.expires_at),
            revoked_at=None if token.revoked_at is None else iso(token.revoked_at),
        )


class NewTokenOut(TokenOut):
    """A new token with its secret, which is shown this once."""

    token: str


class TokensOut(Wire):
    """A person's tokens, oldest first."""

    tokens: list[TokenOut]


class ActOut(Wire):
    """Who did what. actor: null for the operator, the platform itself and people outside the auditor's access."""

    id: int
    at: str
    actor: str | None
    act: str
    subject: str
    details: dict[str, Any]

    @classmethod
    def of(cls, act: Act) -> Self:
        """The act on the wire."""
        return cls(
            id=act.id,
            at=iso(act.at),
            actor=None if act.actor is None else act.actor.text,
            act=act.act,
            subject=act.subject,
            details=dict(act.details),
        )


class ActsOut(Wire):
    """A page of acts, newest first. next: what to give as `before` for the next page, null on the last."""

    acts: list[ActOut]
    next: int | None


class HealthOut(Wire):
    """The process answers."""

    status: Literal["ok"] = "ok"
