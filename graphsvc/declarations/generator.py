"""Made catalogues of a known shape and any size, for load tests and benchmarks: the same seed gives the same catalogue.

The arrays come first and the words from them, so that a million agents need megabytes, and a benchmark needs no words at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.model import AgentVersion, Declaration, Emit
from graphsvc.domain.names import AgentRef, Scope

MAX_AGENTS = 10_000_000
"""Most agents of a catalogue."""

_Numbers = NDArray[np.int64]
_Pairs = tuple[_Numbers, _Numbers]
_AGENTS_AT_ONCE = 8_192
_HUB_SIZE = 200_000
_COMPANY_SIZE = 200
_COMPANIES = 8


class Shape(StrEnum):
    """How agents and events hang together."""

    PIPELINES = "pipelines"
    """Chains of 3 to 12 agents; every tenth has a step back, which is a loop."""
    HUBS = "hubs"
    """One event for up to 200 000 agents: every other emits it, the rest hear it, and a few of those close loops."""
    GIANT = "giant"
    """Every agent hears two random others: most of them form one component of loops."""
    LAYERED = "layered"
    """As many layers as agents in a layer, each agent fed by three of the layer before; a few of the first by the last."""
    TENANT = "tenant"
    """Companies of 200 agents, each on its own but for a few events that all share."""
    RING = "ring"
    """One loop of all the agents."""
    DIAMONDS = "diamonds"
    """A loop of two agents, the second of which also begins a chain of diamonds that leads back to it alone."""


class _Draws:
    # Only the raw words of the generator are promised to stay the same in later versions of numpy, so everything is made from them.
    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def below(self, limit: int, count: int) -> _Numbers:
        words: NDArray[np.uint64] = self._bits.random_raw(count)
        scaled: _Numbers = (((words >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)
        return scaled

    def permutation(self, count: int) -> _Numbers:
        order: _Numbers = np.argsort(self._bits.random_raw(count), kind="stable").astype(np.int64)
        return order


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Agents 0 … agents-1 and events 0 … events-1.

    emits_start, emits: agent a emits the events emits[emits_start[a] : emits_start[a + 1]], ascending. hears_start, hears: the
    same for what it hears.
    label: the number in an agent's name, so that the order of names says nothing about the shape. company, area: -1 for none.
    """

    agents: int
    events: int
    emits_start: _Numbers
    emits: _Numbers
    hears_start: _Numbers
    hears: _Numbers
    label: _Numbers
    company: _Numbers
    area: _Numbers

    def ref(self, agent: int) -> AgentRef:
        """The reference of an agent."""
        return AgentRef(_scope(int(self.company[agent]), int(self.area[agent])), f"agent-{self.label[agent]}")

    def versions(self) -> Iterator[AgentVersion]:
        """The agents in words, unnumbered, in the order of their numbers. Every eighth event carries an artifact."""
        for first in range(0, self.agents, _AGENTS_AT_ONCE):
            last = min(first + _AGENTS_AT_ONCE, self.agents)
            emits = _rows(self.emits_start, self.emits, first, last)
            hears = _rows(self.hears_start, self.hears, first, last)
            for agent, out, heard in zip(range(first, last), emits, hears, strict=True):
                declaration = Declaration(
                    tuple(sorted(map(_emit, out), key=lambda emit: emit.event)), tuple(sorted(f"event-{event}" for event in heard))
                )
                yield AgentVersion(self.ref(agent), 0, declaration)


def _rows(start: _Numbers, values: _Numbers, first: int, last: int) -> Iterator[list[int]]:
    bounds = start[first : last + 1].tolist()
    row = values[bounds[0] : bounds[-1]].tolist()
    for begin, end in pairwise(bounds):
        yield row[begin - bounds[0] : end - bounds[0]]


def _emit(event: int) -> Emit:
    return Emit(f"event-{event}", artifacts=("notes",)) if event % 8 == 0 else Emit(f"event-{event}")


def _scope(company: int, area: int) -> Scope:
    if company < 0:
        return Scope()
    return Scope(f"company-{company}", f"area-{area}" if area >= 0 else None)


def _join(*parts: _Pairs) -> _Pairs:
    return np.concatenate([agent for agent, _ in parts]), np.concatenate([event for _, event in parts])


def _own(count: int) -> _Pairs:
    every = np.arange(count)
    return every, every


def _pipelines(count: int, draws: _Draws) -> tuple[_Pairs, _Pairs]:
    ends = np.cumsum(3 + draws.below(10, count // 3 + 1))
    ends = np.append(ends[ends < count], count)
    starts = np.append(0, ends[:-1])
    inner = np.delete(np.arange(count), starts)
    begun = count + np.arange(len(starts))
    looping = np.flatnonzero((np.arange(len(starts)) % 10 == 0) & (ends - starts >= 3))
    back = count + len(starts) + looping
    emits = _join(_own(count), (ends[looping] - 1, back))
    return emits, _join((inner, inner - 1), (starts, begun), (starts[looping] + 1, back))


def _hubs(count: int, draws: _Draws) -> tuple[_Pairs, _Pairs]:
    hubs = -(-count // _HUB_SIZE)
    every = np.arange(count)
    hub = (every // 2) % hubs
    even, odd = every[every % 2 == 0], every[every % 2 == 1]
    returning = np.unique(odd[draws.below(len(odd), 1 + len(odd) // 1_000)])
    hearing = even[even // 2 % 10 == 0]
    emits = _join((even, hub[even]), (returning, hubs + hub[returning]))
    return emits, _join((odd, hub[odd]), (hearing, hubs + hub[hearing]))


def _giant(count: int, draws: _Draws) -> tuple[_Pairs, _Pairs]:
    agent = np.repeat(np.arange(count), 2)
    source = draws.below(count - 1, 2 * count)
    return _own(count), (agent, source + (source >= agent))


def _layered(count: int, draws: _Draws) -> tuple[_Pairs, _Pairs]:
    width = max(1, int(count**0.5))
    fed = np.repeat(np.arange(width, count), 3)
    source = (fed // width - 1) * width + draws.below(width, len(fed))
    first = np.arange(0, width, 100)
    back = count - 1 - draws.below(min(width, count - 1), len(first))
    return _own(count), _join((fed, source), (first, back))


def _tenant(count: int, draws: _Draws) -> tuple[_Pairs, _Pairs]:
    agent = np.repeat(np.arange(count), 2)
    base = agent // _COMPANY_SIZE * _COMPANY_SIZE
    within = draws.below(_COMPANY_SIZE, len(agent))
    source = np.minimum(base + within, count - 1)
    kept = source != agent
    every = np.arange(count)
    sharing, taking = every[every % 50 == 0], every[every % 50 == 25]
    shared = 1 + count // 1_000
    emits = _join(_own(count), (sharing, count + draws.below(shared, len(sharing))))
    return emits, _join((agent[kept], source[kept]), (taking, count + draws.below(shared, len(taking))))


def _ring(count: int, _: _Draws) -> tuple[_Pairs, _Pairs]:
    every = np.arange(count)
    return _own(count), (every, (every - 1) % count)


def _diamonds(count: int, _: _Draws) -> tuple[_Pairs, _Pairs]:
    tops = np.arange(2, count - 2, 3)
    ahead = np.append(tops[1:], 1) if len(tops) else tops
    sides = np.concatenate([tops + 1, tops + 2])
    emits = (np.arange(count), np.arange(count))
    hears = _join(
        (np.array([0, 1]), np.array([1, 0])), (tops[:1], np.ones_like(tops[:1])), (sides, sides - np.repeat([1, 2], len(tops)))
    )
    return emits, _join(hears, (np.tile(ahead, 2), sides))


_SHAPES: dict[Shape, Callable[[int, _Draws], tuple[_Pairs, _Pairs]]] = {
    Shape.PIPELINES: _pipelines,
    Shape.HUBS: _hubs,
    Shape.GIANT: _giant,
    Shape.LAYERED: _layered,
    Shape.TENANT: _tenant,
    Shape.RING: _ring,
    Shape.DIAMONDS: _diamonds,
}


def _by_agent(pairs: _Pairs, agents: int, events: int) -> _Pairs:
    """The rows of the agents, each ascending and without repeats: where they start, and their events."""
    keys = np.sort(pairs[0] * events + pairs[1])
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    start = np.searchsorted(keys, np.arange(agents + 1) * events)
    return start.astype(np.int64), keys % events


def generate(shape: Shape, agents: int, seed: int) -> Catalogue:
    """A catalogue. agents: from 2 to MAX_AGENTS; seed: from 0. The same three give the same catalogue on every machine.

    Raises InvalidInput.
    """
    for field, value, least, most in (("agents", agents, 2, MAX_AGENTS), ("seed", seed, 0, 2**63 - 1)):
        if not least <= value <= most:
            remedy = f"use a whole number from {least} to {most}"
            raise InvalidInput([Violation(field=field, reason=f"is {value}", remedy=remedy)])
    draws = _Draws(seed)
    emits, hears = _SHAPES[shape](agents, draws)
    events = 1 + int(max(emits[1].max(), hears[1].max()))
    emits_start, emitted = _by_agent(emits, agents, events)
    hears_start, heard = _by_agent(hears, agents, events)
    company, area = _scopes(shape, agents, draws)
    return Catalogue(
        agents=agents,
        events=events,
        emits_start=emits_start,
        emits=emitted,
        hears_start=hears_start,
        hears=heard,
        label=draws.permutation(agents),
        company=company,
        area=area,
    )


def _scopes(shape: Shape, agents: int, draws: _Draws) -> _Pairs:
    every = np.arange(agents)
    company = every // _COMPANY_SIZE if shape is Shape.TENANT else every * _COMPANIES // agents
    drawn = draws.below(100, agents)
    # One agent in a hundred belongs to the whole installation, nine to a whole company, the rest to one of four areas.
    area = np.where(drawn < 10, -1, drawn % 4)
    return np.where(drawn == 0, -1, company), np.where(drawn == 0, -1, area)
