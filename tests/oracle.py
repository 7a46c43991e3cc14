"""What the answers must be, found by brute force on plain texts.

Nothing of the product is imported here, so that no fault of the product can be shared. Everything is written to be read, not to be
fast: small graphs only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx

Loop = tuple["Agent", ...]


@dataclass(frozen=True, slots=True)
class Agent:
    """A version of an agent. guarded: those of its events that have artifacts."""

    name: str
    hears: frozenset[str] = frozenset()
    emits: frozenset[str] = frozenset()
    scope: str = "*"
    guarded: frozenset[str] = frozenset()

    @property
    def ref(self) -> str:
        """Which agent this is a version of."""
        return f"{self.scope}:{self.name}"

    def starts(self, other: Agent) -> bool:
        """Whether there is an edge from this agent to another one (G-1)."""
        return self.ref != other.ref and not self.emits.isdisjoint(other.hears)

    def without(self, triggers: Collection[str], events: Collection[str]) -> Agent:
        """The version after some of its triggers and events were taken out."""
        return replace(self, hears=self.hears.difference(triggers), emits=self.emits.difference(events))


def agent(name: str, hears: Collection[str] = (), emits: Collection[str] = (), scope: str = "*") -> Agent:
    """An agent in short."""
    return Agent(name, frozenset(hears), frozenset(emits), scope)


def may_read(reader: Collection[str], scope: str) -> bool:
    """Whether one of the reader's scopes is this one or contains it."""
    return any(own in ("*", scope) or scope.startswith(f"{own}/") for own in reader)


def as_it_will_be(published: Sequence[Agent], proposed: Agent) -> list[Agent]:
    """The published agents with the proposed version in its agent's place (G-3)."""
    if all(one.ref != proposed.ref for one in published):
        return [*published, proposed]
    return [proposed if one.ref == proposed.ref else one for one in published]


def loops(published: Sequence[Agent], proposed: Agent, reader: Collection[str] = ("*",)) -> list[Loop]:
    """Every loop of two or more agents through the proposed version, in the reader's order, the proposed one first.

    published: in the order in which the agents were first published.
    """
    ranked = _ranked(published, proposed, reader)
    leads_to = [[j for j, two in enumerate(ranked) if one.starts(two)] for one in ranked]
    found = sorted(_walk([ranked.index(proposed)], leads_to), key=lambda loop: (len(loop), loop[1:]))
    return [tuple(ranked[i] for i in loop) for loop in found]


def loops_by_networkx(published: Sequence[Agent], proposed: Agent, reader: Collection[str] = ("*",)) -> list[Loop]:
    """The same by a library's enumeration of all the loops of the graph."""
    ranked = _ranked(published, proposed, reader)
    graph = networkx.DiGraph([(one, two) for one in ranked for two in ranked if one.starts(two)])
    through = [cycle for cycle in networkx.simple_cycles(graph) if proposed in cycle]
    found = [tuple(cycle[cycle.index(proposed) :] + cycle[: cycle.index(proposed)]) for cycle in through]
    return sorted(found, key=lambda loop: (len(loop), [ranked.index(one) for one in loop[1:]]))


def _ranked(published: Sequence[Agent], proposed: Agent, reader: Collection[str]) -> list[Agent]:
    """The graph's agents in the reader's order: readable ones by name, then scope; hidden ones by first publication (G-5, G-15)."""
    around = as_it_will_be(published, proposed)
    readable = sorted((one for one in around if may_read(reader, one.scope)), key=lambda one: (one.name, one.scope))
    return readable + [one for one in around if not may_read(reader, one.scope)]


def _walk(path: list[int], leads_to: list[list[int]]) -> Iterator[list[int]]:
    for following in leads_to[path[-1]]:
        if following == path[0]:
            yield path
        elif following not in path:
            yield from _walk([*path, following], leads_to)


def report(
    published: Sequence[Agent],
    proposed: Agent,
    reader: Collection[str] = ("*",),
    *,
    max_loops: int = 10,
    max_visits: int = 1_000_000,
    chain_limit: int = 8,
) -> dict[str, Any]:
    """The report on a version as JSON values, for a search that no walk limit stops. Without visits, revision and digest, which
    nothing but the product can know, and without the set that breaks the loops, of which several may be right.
    """
    through = loops(published, proposed, reader)
    own = [(proposed,)] if proposed.hears & proposed.emits else []
    return {
        "agent": proposed.ref,
        "verification": "more_loops" if len(through) > max_loops else "complete",
        "loops": [_shown(loop, reader, chain_limit) for loop in own + through[:max_loops]],
        "notices": list(_notices(published, proposed, reader)),
        "limits": {"max_loops": max_loops, "max_visits": max_visits, "chain_limit": chain_limit},
    }


def _shown(loop: Loop, reader: Collection[str], chain_limit: int) -> dict[str, Any]:
    named = [i == 0 or may_read(reader, one.scope) for i, one in enumerate(loop)]
    hops = []
    for i, source in enumerate(loop):
        j = (i + 1) % len(loop)
        shared = sorted(source.emits & loop[j].hears)
        barrier = named[i] and named[j] and all(e in source.guarded for e in shared) and _stopped(source.scope, loop[j].scope)
        hops.append({"events": shared if named[i] or named[j] else None, "barrier": barrier})
    return {
        "agents": [one.ref if seen else None for one, seen in zip(loop, named, strict=True)],
        "length": len(loop),
        "self": len(loop) == 1,
        "over_chain_limit": len(loop) > chain_limit,
        "hops": hops,
    }


def _stopped(source: str, target: str) -> bool:
    """Whether labelled data of the source may not go to the target: up and down within one company it may, and to and from
    the whole installation."""
    if "*" in (source, target):
        return False
    return not (source == target or source.startswith(f"{target}/") or target.startswith(f"{source}/"))


def _notices(published: Sequence[Agent], proposed: Agent, reader: Collection[str]) -> Iterator[dict[str, Any]]:
    seen = [one for one in as_it_will_be(published, proposed) if one == proposed or may_read(reader, one.scope)]
    heard = {event for one in seen for event in one.hears}
    emitted = {event for one in seen for event in one.emits}
    others = sorted({event for one in seen if one != proposed for event in one.emits})
    for event in sorted(proposed.emits - heard):
        yield {"kind": "unheard_event", "event": event}
    for event in sorted(proposed.hears - emitted):
        hint = next((other for other in others if other != event and _plain(other) == _plain(event)), None)
        yield {"kind": "unfed_trigger", "event": event, "hint": hint}


def _plain(event: str) -> str:
    # Enough for names of one plain word or of several without a plural inside.
    return re.sub(r"[^a-z0-9]", "", event.casefold()).removesuffix("s")


def breaks(found: Sequence[Loop], proposed: Agent, triggers: Collection[str], events: Collection[str]) -> bool:
    """Whether none of the loops is left once these triggers and events are out of the proposed version."""
    left = proposed.without(triggers, events)
    return not any(
        left.emits & left.hears if len(loop) == 1 else left.emits & loop[1].hears and left.hears & loop[-1].emits for loop in found
    )
