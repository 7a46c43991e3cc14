"""What an audit must find, by brute force on plain texts: every simple cycle, every set of triggers. Small graphs only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Any

import networkx

from tests.oracle import Agent, may_read

Reader = Collection[str]
Redacted = tuple[str | None, ...]
Events = tuple[tuple[str, ...] | None, ...]


def pairs(agents: Sequence[Agent]) -> Any:
    """The graph of agents with an edge for each hop."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(agents)))
    edges = [(i, j) for i, one in enumerate(agents) for j, other in enumerate(agents) if one.starts(other)]
    graph.add_edges_from(edges)
    return graph


def order(ref: str) -> tuple[str, str]:
    scope, _, name = ref.partition(":")
    return name, scope


def components(agents: Sequence[Agent], reader: Reader) -> set[tuple[tuple[str, ...], int]]:
    """The readable agents of each component that has some, in order, and its size."""
    found = set()
    for members in networkx.strongly_connected_components(pairs(agents)):
        named = sorted((agents[i].ref for i in members if may_read(reader, agents[i].scope)), key=order)
        if len(members) > 1 and named:
            found.add((tuple(named), len(members)))
    return found


def members_of(agents: Sequence[Agent], ref: str) -> set[int]:
    """The component of an agent."""
    return next(set(c) for c in networkx.strongly_connected_components(pairs(agents)) if any(agents[i].ref == ref for i in c))


def shortest(agents: Sequence[Agent], ref: str, reader: Reader) -> list[tuple[Redacted, Events]]:
    """The shortest loops from an agent on, as the reader may see them, the first by name first; none where it is on no loop."""
    loops = []
    for cycle in networkx.simple_cycles(pairs(agents)):
        refs = [agents[i].ref for i in cycle]
        if len(refs) > 1 and ref in refs:
            at = refs.index(ref)
            loops.append([agents[i] for i in cycle[at:] + cycle[:at]])
    least = min(map(len, loops), default=0)
    seen = {_redacted(loop, reader) for loop in loops if len(loop) == least}
    last = ("\U0010ffff", "")
    return sorted(seen, key=lambda loop: ([last if one is None else order(one) for one in loop[0]], [e or () for e in loop[1]]))


def _redacted(loop: Sequence[Agent], reader: Reader) -> tuple[Redacted, Events]:
    named = [may_read(reader, one.scope) for one in loop]
    ahead = [*range(1, len(loop)), 0]
    events = [tuple(sorted(loop[i].emits & loop[j].hears)) if named[i] or named[j] else None for i, j in enumerate(ahead)]
    return tuple(one.ref if seen else None for one, seen in zip(loop, named, strict=True)), tuple(events)


def smallest_drops(agents: Sequence[Agent], members: set[int], reader: Reader) -> tuple[tuple[str, str], ...]:
    """The first of the smallest sets of triggers of readable agents without which no readable member is on a loop of members."""
    inside = [agents[i] for i in sorted(members)]
    readable = [one for one in inside if may_read(reader, one.scope)]
    triggers = sorted(((one.ref, event) for one in readable for event in one.hears), key=lambda t: (order(t[0]), t[1]))
    for count in range(len(triggers) + 1):
        for chosen in combinations(triggers, count):
            if not _loops_left(inside, set(chosen), reader):
                return chosen
    raise AssertionError("dropping every trigger breaks every loop")


def _loops_left(agents: Sequence[Agent], dropped: set[tuple[str, str]], reader: Reader) -> bool:
    left = [one.without({event for ref, event in dropped if ref == one.ref}, ()) for one in agents]
    found = networkx.strongly_connected_components(pairs(left))
    return any(len(c) > 1 and any(may_read(reader, left[i].scope) for i in c) for c in found)


def drops_suffice(agents: Sequence[Agent], members: set[int], dropped: Collection[tuple[str, str]], reader: Reader) -> bool:
    """Whether no readable member is on a loop any more."""
    return not _loops_left([agents[i] for i in members], set(dropped), reader)


def events_between(agents: Sequence[Agent], members: set[int], reader: Reader) -> set[str]:
    """The events of hops between members one of which is readable."""
    return {
        event
        for i in members
        for j in members
        if i != j and (may_read(reader, agents[i].scope) or may_read(reader, agents[j].scope))
        for event in agents[i].emits & agents[j].hears
    }


def notices(agents: Sequence[Agent], reader: Reader) -> Iterator[tuple[str, str, str]]:
    """Own events, events unheard and triggers unfed: (rule, agent, event)."""
    readable = [one for one in agents if may_read(reader, one.scope)]
    for one in readable:
        yield from (("LW201", one.ref, event) for event in one.emits & one.hears)
        yield from (("LW301", one.ref, event) for event in one.emits if all(event not in other.hears for other in readable))
        yield from (("LW302", one.ref, event) for event in one.hears if all(event not in other.emits for other in readable))
