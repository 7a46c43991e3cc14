"""Small random graphs with a version to judge and a reader, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from graphsvc.domain.names import AgentRef, parse_agent
from graphsvc.graph import Graph
from tests.graphsvc.folding import fold
from tests.oracle import Agent, agent

SCOPES = ("*", "acme", "acme/platform", "acme/finance", "globex", "globex/platform")
# Their order by code point is not that of an alphabet, of a length or of a number.
NAMES = ("10", "9", "B", "a", "a b", "ab", "é", "ה", "😀")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """history: everything ever published or retired, in order. published: what is published now, by first publication."""

    history: tuple[Agent | AgentRef, ...]
    published: tuple[Agent, ...]
    proposed: Agent
    reader: tuple[str, ...]
    folded_at_once: bool

    def graph(self) -> Graph:
        """The graph after the whole history."""
        return fold(self.history, at_once=self.folded_at_once)


def worlds(first: int, count: int) -> Iterator[World]:
    """As many worlds, from the seed `first` on."""
    return (world(random.Random(seed)) for seed in range(first, first + count))


def world(rng: random.Random) -> World:
    """A world with at most eight agents, whatever history led to it, and a version of one of them or of a new agent."""
    published = _agents(rng)
    history: list[Agent | AgentRef] = []
    for one in published:
        # An earlier version, or a retired one, leaves its traces in the rows but keeps the agent's place (G-15).
        if rng.random() < 0.2:
            history.append(_other_version(rng, one))
            if rng.random() < 0.3:
                history.append(parse_agent(one.ref))
    first = {ref: i for i, ref in reversed(list(enumerate(_ref(one) for one in history)))}
    current = rng.sample(published, len(published))
    history += current
    for one in current:
        first.setdefault(one.ref, len(first) + len(history))
    published = sorted(current, key=lambda one: first[one.ref])
    chosen = rng.choice(published)
    proposed = chosen if rng.random() < 0.6 else _other_version(rng, chosen)
    if rng.random() < 0.15:
        proposed = agent("new", proposed.hears, proposed.emits, rng.choice(SCOPES))
    return World(
        history=tuple(history),
        published=tuple(published),
        proposed=proposed,
        reader=_reader(rng),
        folded_at_once=rng.random() < 0.8,
    )


def _ref(one: Agent | AgentRef) -> str:
    return one.ref if isinstance(one, Agent) else one.text


def _reader(rng: random.Random) -> tuple[str, ...]:
    return ("*",) if rng.random() < 0.3 else tuple(rng.sample(SCOPES[1:], rng.randint(0, 3)))


def _agents(rng: random.Random) -> list[Agent]:
    count = rng.choice([1, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 8])
    refs = rng.sample([(name, scope) for name in NAMES for scope in SCOPES], count)
    if rng.random() < 0.5:
        events = [f"e{i}" for i in range(rng.randint(1, 6))]
        return [agent(name, _some(rng, events), _some(rng, events), scope) for name, scope in refs]
    # An event for each edge, and some of them shared by edges that have one end in common.
    density = rng.choice([0.25, 0.4, 0.5])
    edges = [(i, j) for i in range(count) for j in range(count) if i != j and rng.random() < density]
    merged = rng.random() < 0.5
    names = {(i, j): f"from {i}" if merged and rng.random() < 0.5 else f"{i} to {j}" for i, j in edges}
    return [
        agent(name, {names[e] for e in edges if e[1] == i}, {names[e] for e in edges if e[0] == i}, scope)
        for i, (name, scope) in enumerate(refs)
    ]


def _some(rng: random.Random, events: list[str]) -> list[str]:
    return rng.sample(events, min(rng.choice([0, 1, 2, 2, 3]), len(events)))


def _other_version(rng: random.Random, one: Agent) -> Agent:
    events = sorted({*one.hears, *one.emits, "e0", "e1", "0 to 1", "1 to 0", "unknown"})
    return agent(one.name, _some(rng, events), _some(rng, events), one.scope)
