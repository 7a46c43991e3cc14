"""Publishing versions: stored first, then told to the graph service, whose report warns of loops (P-3 to P-6, P-12)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentplat.domain.access import Access, Person
from agentplat.domain.errors import Unauthenticated, UnexpectedNumber
from agentplat.domain.outbox import Entry, EntryKind
from agentplat.domain.registry import Agent, Content
from agentplat.domain.scopes import Ref
from agentplat.domain.shown import ShownReport
from agentplat.domain.times import now_ms
from agentplat.loop_check import read_manifests
from agentplat.store.port import Store, Work
from agentplat.usecases.deliver_outbox import DeliverOutbox
from agentplat.usecases.read_report import ReadReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A published version. created: False where the same content was current already, so that nothing was stored."""

    created: bool
    report: ShownReport


Stored = Mapping[Ref, tuple[Entry, bool]]
"""Versions that were stored: the entry that tells of each, and whether it is new."""


def new_owner() -> str:
    """Who holds the entries of one act of publishing: a text that nobody else has."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishVersion:
    """verify_s: seconds that the publisher waits for the graph service in all; what is not verified by then is verified later."""

    store: Store
    deliver: DeliverOutbox
    read_report: ReadReport
    verify_s: float

    def __call__(self, access: Access, manifests: str, source: str, expected_number: int | None = None) -> list[Publication]:
        """Publish every manifest of a text, all of them or none.

        source: a name for the text in messages. expected_number: the number that the new version must get. Content that is current
        already is not stored again, whatever number is expected, so that a publisher who got no answer may ask again.
        Raises InvalidInput, AccessDenied, UnexpectedNumber, StoreUnavailable.
        """
        contents = read_manifests(manifests, source)
        for content in contents:
            access.demand_publishing(content.agent.scope)
        if access.person is None:
            raise Unauthenticated
        owner = new_owner()
        with self.store.writing() as work:
            stored = self.store_all(work, access.person, contents, owner, expected_number)
        return self.told(access, contents, stored, owner)

    def store_all(
        self, work: Work, publisher: Person, contents: Sequence[Content], owner: str, expected_number: int | None = None
    ) -> Stored:
        """Store versions that their publisher may publish within a transaction; from its end on they are published.

        Whoever calls this lets `told` follow with the same owner. Raises UnexpectedNumber.
        """
        # In one order everywhere, so that two publishers of the same agents never wait for each other.
        ordered = sorted(contents, key=lambda content: content.agent.text)
        return {c.agent: self._store(work, publisher, c, owner, expected_number) for c in ordered}

    def told(self, access: Access, contents: Sequence[Content], stored: Stored, owner: str) -> list[Publication]:
        """Tell the graph service of what was stored, and what it says. Raises StoreUnavailable."""
        self._verify([stored[content.agent][0] for content in contents], owner)
        return [self._publication(access, *stored[content.agent]) for content in contents]

    def _store(
        self, work: Work, publisher: Person, content: Content, owner: str, expected_number: int | None
    ) -> tuple[Entry, bool]:
        agent = work.registry.hold(content.agent)
        current = None if agent.current is None else work.registry.version(agent, agent.current)
        if current is not None and current.content.digest == content.digest:
            return work.outbox.publication(agent.id, current.number), False
        number = self._next_number(work, agent, expected_number)
        work.registry.add(agent, number, content, publisher, now_ms())
        entry = work.outbox.append(agent, EntryKind.PUBLISH, number, publisher, owner, self.verify_s + self.deliver.lease_s)
        work.acts.record(now_ms(), publisher, "publish", agent.ref, {"number": number, "digest": content.digest})
        return entry, True

    def _next_number(self, work: Work, agent: Agent, expected: int | None) -> int:
        number = work.registry.last_number(agent) + 1
        if expected is not None and expected != number:
            raise UnexpectedNumber(agent.ref.text, expected, number)
        return number

    def _verify(self, entries: list[Entry], owner: str) -> None:
        deadline = time.monotonic() + self.verify_s
        for entry in entries:
            self.deliver.until_settled(entry, owner, deadline - time.monotonic())

    def _publication(self, access: Access, entry: Entry, created: bool) -> Publication:
        return Publication(created=created, report=self.read_report(access, entry.agent, entry.number))
