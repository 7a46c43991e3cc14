"""The graph to audit as arrays: numbers for agents and events in name order, so that no arrival order can show anywhere."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import Reader

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows of ascending numbers in one flat array: row r is ``values[starts[r] : starts[r + 1]]``."""

    starts: Longs
    values: Ints

    def row(self, number: int) -> Ints:
        """A view of one row."""
        return self.values[self.starts[number] : self.starts[number + 1]]

    @property
    def numbers(self) -> Ints:
        """For each value, the number of its row."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))


def rows_from(numbers: Ints, values: Ints, count: int) -> RowSet:
    """The rows 0 … count-1 that have values[i] in row numbers[i]."""
    order = np.lexsort((values, numbers))
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=count), out=starts[1:])
    return RowSet(starts, values[order])


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """Agents 0 … in the order of G-5 and events 0 … in the order of their names.

    emits, hears: the events of an agent. guarded: agent and event, as one number, of the emissions that carry artifacts, ascending.
    scopes: the scopes there are. scope_of: per agent, the number of its scope.
    """

    agents: list[AgentRef]
    events: list[str]
    emits: RowSet
    hears: RowSet
    guarded: Longs
    scopes: list[Scope]
    scope_of: Ints

    def readable_by(self, reader: Reader) -> Flags:
        """Per agent, whether the reader may read it."""
        by_scope = np.array([reader.may_read(scope) for scope in self.scopes] or [False])
        return by_scope[self.scope_of]

    def within(self, scopes: Iterable[Scope]) -> Flags:
        """Per agent, whether it lies in one of the scopes."""
        asked = list(scopes)
        by_scope = np.array([any(outer.contains(scope) for outer in asked) for scope in self.scopes] or [False])
        return by_scope[self.scope_of]

    def is_guarded(self, agent: int, event: int) -> bool:
        """Whether what the agent emits with the event carries artifacts."""
        number = agent * len(self.events) + event
        at = int(np.searchsorted(self.guarded, number))
        return at < len(self.guarded) and int(self.guarded[at]) == number

    @cached_property
    def heard_by(self) -> RowSet:
        """The listeners of an event."""
        return rows_from(self.hears.values, self.hears.numbers, len(self.events))

    @cached_property
    def emitted_by(self) -> RowSet:
        """The emitters of an event."""
        return rows_from(self.emits.values, self.emits.numbers, len(self.events))

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hexadecimal over the whole graph."""
        digest = sha256()
        for names in ((agent.text for agent in self.agents), self.events):
            # No name has a line end in it.
            digest.update("\n".join([*names, ""]).encode() + b"\n")
        for numbers in (self.emits.starts, self.emits.values, self.hears.starts, self.hears.values, self.guarded):
            digest.update(np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()


class _Reading:
    """Collects versions as numbers in the order they come in; the versions themselves are let go."""

    def __init__(self) -> None:
        self.agents: list[AgentRef] = []
        self.scopes: dict[Scope, int] = {}
        self.scope_of = array("i")
        self.events: dict[str, int] = {}
        self.emits = (array("i"), array("i"))
        self.hears = (array("i"), array("i"))
        self.guards = array("b")

    def add(self, version: AgentVersion) -> None:
        number = len(self.agents)
        ref, events = version.agent, self.events
        self.agents.append(ref)
        self.scope_of.append(self.scopes.setdefault(ref.scope, len(self.scopes)))
        for emit in version.declaration.emits:
            self.emits[0].append(number)
            self.emits[1].append(events.setdefault(emit.event, len(events)))
            self.guards.append(bool(emit.artifacts))
        for event in version.declaration.listens:
            self.hears[0].append(number)
            self.hears[1].append(events.setdefault(event, len(events)))


def _ranks(order: list[int]) -> Ints:
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def read_tenant(versions: Iterable[AgentVersion]) -> Tenant:
    """The graph that these versions make, every agent given once; the order they come in leaves no trace."""
    read = _Reading()
    for version in versions:
        read.add(version)
    names = list(read.events)
    event_order = sorted(range(len(names)), key=names.__getitem__)
    scope_order = sorted(range(len(read.scopes)), key=[scope.text for scope in read.scopes].__getitem__)
    scopes = list(read.scopes)
    agents = read.agents
    texts = [scope.text for scope in scopes]
    agent_order = sorted(range(len(agents)), key=lambda i: (agents[i].name, texts[read.scope_of[i]]))
    agent_rank, event_rank, scope_rank = _ranks(agent_order), _ranks(event_order), _ranks(scope_order)

    def numbered(pair: tuple[array[int], array[int]]) -> tuple[Ints, Ints]:
        return agent_rank[np.frombuffer(pair[0], np.int32)], event_rank[np.frombuffer(pair[1], np.int32)]

    emitters, emitted = numbered(read.emits)
    hearers, heard = numbered(read.hears)
    carries = np.frombuffer(read.guards, np.bool_)
    return Tenant(
        agents=[agents[i] for i in agent_order],
        events=[names[i] for i in event_order],
        emits=rows_from(emitters, emitted, len(agents)),
        hears=rows_from(hearers, heard, len(agents)),
        guarded=np.sort(emitters[carries].astype(np.int64) * len(names) + emitted[carries]),
        scopes=[scopes[i] for i in scope_order],
        scope_of=scope_rank[np.frombuffer(read.scope_of, np.int32)[agent_order]],
    )
