"""Seeded graphs for benchmarks: the same seed gives the same graph on every machine."""

from __future__ import annotations

import random
from collections import defaultdict

from graphsvc.domain.model import AgentVersion, Declaration, Emit
from graphsvc.domain.names import AgentRef, Scope

Edge = tuple[int, int]


def random_edges(agents: int, edges: int, seed: int) -> list[Edge]:
    """So many different edges between so many agents, without own edges, uniformly at random, sorted."""
    rng = random.Random(seed)
    chosen: set[Edge] = set()
    while len(chosen) < edges:
        source, target = rng.randrange(agents), rng.randrange(agents)
        if source != target:
            chosen.add((source, target))
    return sorted(chosen)


def agent_name(number: int) -> str:
    """Names in the order of their numbers."""
    return f"agent-{number:07}"


def versions_of(agents: int, edges: list[Edge], *, event_of_edge: bool = False) -> list[AgentVersion]:
    """Agents with an event of their own that their successors hear, or with one event for each edge, which is more to look at."""
    emits: defaultdict[int, set[str]] = defaultdict(set)
    hears: defaultdict[int, set[str]] = defaultdict(set)
    for source, target in edges:
        event = f"{source}>{target}" if event_of_edge else f"{source}"
        emits[source].add(event)
        hears[target].add(event)
    return [
        AgentVersion(
            AgentRef(Scope("acme", f"area-{number % 50}"), agent_name(number)),
            1,
            Declaration(tuple(Emit(event) for event in sorted(emits[number])), tuple(sorted(hears[number]))),
        )
        for number in range(agents)
    ]
