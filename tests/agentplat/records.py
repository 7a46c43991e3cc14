"""People, agents and versions for tests of the store."""

from __future__ import annotations

import hashlib

from agentplat.domain.access import Person
from agentplat.domain.outbox import Entry, EntryKind
from agentplat.domain.registry import Agent, Content, Emission
from agentplat.domain.scopes import Ref
from agentplat.store.port import Store, Work


def content(ref: Ref, emits: tuple[str, ...] = (), listens: tuple[str, ...] = (), note: str = "") -> Content:
    """What a publisher wrote. note: makes contents differ."""
    emissions = tuple(Emission(event=event, context=None, artifacts=(f"{event}.text",)) for event in emits)
    digest = hashlib.sha256(repr((ref, emits, listens, note)).encode()).hexdigest()
    return Content(agent=ref, manifest={"note": note}, digest=digest, emits=emissions, listens=listens)


def person(work: Work, name: str = "ana", scope: str = "acme") -> Person:
    """A person, added if need be."""
    ref = Ref(scope, name)
    found = work.people.find(ref) or work.people.add(ref, 1)
    assert found is not None
    return found


def published(store: Store, ref: Ref, number: int, emits: tuple[str, ...] = (), owner: str = "test", lease_s: float = 0.0) -> Entry:
    """Store a version with its entry of the outbox, which nobody holds."""
    with store.writing() as work:
        agent = work.registry.hold(ref)
        publisher = person(work)
        work.registry.add(agent, number, content(ref, emits, note=str(number)), publisher, number)
        return work.outbox.append(agent, EntryKind.PUBLISH, number, publisher, owner, lease_s)


def found(store: Store, ref: Ref) -> Agent:
    """An agent that must be there."""
    with store.reading() as work:
        agent = work.registry.find(ref)
    assert agent is not None
    return agent
