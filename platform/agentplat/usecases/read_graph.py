"""Who starts whom in a scope, as far as the reader may see (U-8). What is outside their access is not there at all."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.registry import Declared
from agentplat.domain.scopes import Ref
from agentplat.store.port import Store, Work

MOST_AGENTS = 1_000
"""Most agents of a scope that are told at once."""

_AT_ONCE = 1_000
"""Events asked about in one query; databases take only so many values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEnds:
    """An event with the agents of the scope and around it that emit it, and that it starts, each by scope, then name."""

    event: str
    emitters: tuple[Ref, ...]
    listeners: tuple[Ref, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeGraph:
    """members: the agents of the scope. around: readable agents outside of it that start one of them or are started by one.

    events: every event that a member emits or hears, by name. cut: whether the scope has more agents than these.
    """

    members: tuple[Declared, ...]
    around: tuple[Ref, ...]
    events: tuple[EventEnds, ...]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGraph:
    """Reads the published declarations."""

    store: Store

    def __call__(self, access: Access, scope: str | None) -> ScopeGraph:
        """The graph of a scope, or of everything that may be read. Raises StoreUnavailable."""
        scopes = access.scopes if scope is None else access.scopes_in(scope)
        with self.store.reading() as work:
            found = work.registry.declared(scopes, MOST_AGENTS + 1)
            members = found[:MOST_AGENTS]
            events = _events(work, access, members)
        known = {member.agent for member in members}
        around = {ref for ends in events for ref in (*ends.emitters, *ends.listeners)} - known
        return ScopeGraph(
            members=tuple(members),
            around=tuple(sorted(around, key=lambda ref: (ref.scope, ref.name))),
            events=tuple(events),
            cut=len(found) > MOST_AGENTS,
        )


def _events(work: Work, access: Access, members: list[Declared]) -> list[EventEnds]:
    names = sorted({event for member in members for event in (*member.emits, *member.listens)})
    emitters: dict[str, list[Ref]] = {name: [] for name in names}
    listeners: dict[str, list[Ref]] = {name: [] for name in names}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        for source in work.registry.sources(some, access.scopes):
            emitters[source.event].append(source.agent)
        for event, ref in work.registry.hearers(some, access.scopes):
            listeners[event].append(ref)
    return [EventEnds(event=name, emitters=tuple(emitters[name]), listeners=tuple(listeners[name])) for name in names]
