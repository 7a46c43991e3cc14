"""The graph to audit as arrays: numbers for agents and events in name order, so that no arrival order can show anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from graphsvc.columns import Columns, starts_of
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import Reader
from graphsvc.domain.remembering import Remembered
from graphsvc.kernels.nodes import EVENT, Nodes
from graphsvc.kernels.places import Places
from graphsvc.kernels.texts import order_within

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_T = TypeVar("_T")
_NAMES_AT_ONCE = 10_000


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


class Made(Sequence[_T]):
    """What stands at each place, made when it is asked for: names stay UTF-8, as there may be millions."""

    def __init__(self, size: int, make: Callable[[int], _T]) -> None:
        self._size, self._made = size, Remembered(make)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> _T: ...

    @overload
    def __getitem__(self, at: slice) -> list[_T]: ...

    def __getitem__(self, at: int | slice) -> _T | list[_T]:
        """Raises IndexError behind the last place, where an iteration ends."""
        if isinstance(at, slice):
            return [self._made[each] for each in range(*at.indices(self._size))]
        return self._made[range(self._size)[at]]


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """Agents 0 … in the order of G-5 and events 0 … in the order of their names.

    emits, hears: the events of an agent. guarded: agent and event, as one number, of the emissions that carry artifacts, ascending.
    scopes: the scopes there are. scope_of: per agent, the number of its scope.
    """

    agents: Sequence[AgentRef]
    events: Sequence[str]
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
        for names in ((agent.text for agent in self.agents), iter(self.events)):
            while some := list(islice(names, _NAMES_AT_ONCE)):
                digest.update("\n".join([*some, ""]).encode())  # no name has a line end in it
            digest.update(b"\n")
        for numbers in (self.emits.starts, self.emits.values, self.hears.starts, self.hears.values, self.guarded):
            digest.update(np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()


_NOTHING: tuple[Ints, Ints] = (np.zeros(0, np.int32), np.zeros(0, np.int32))


class _Reading:
    """Collects versions as numbers in the order they come in; of the versions themselves nothing is kept."""

    def __init__(self) -> None:
        self.nodes = Nodes(str)  # nobody asks here what looks alike
        self.scopes: dict[Scope, int] = {}
        self.emits: list[tuple[Ints, Ints]] = []
        self.hears: list[tuple[Ints, Ints]] = []
        self.guarded: list[tuple[Ints, Ints]] = []

    def add(self, columns: Columns) -> None:
        scopes = np.array([self.scopes.setdefault(scope, len(self.scopes)) for scope in columns.scopes], np.int32)
        agents = self.nodes.add_texts(scopes[columns.scope], *columns.names)
        events = self.nodes.add_texts(np.full(columns.events.ends.size, EVENT, np.int32), *columns.events)
        sizes = np.diff(columns.ends, prepend=0)
        numbers = np.repeat(self.nodes.arrays.agent[agents], sizes)
        emitted = np.arange(numbers.size) < np.repeat(starts_of(columns.ends) + columns.emits, sizes)
        self.emits.append((numbers[emitted], events[emitted]))
        self.hears.append((numbers[~emitted], events[~emitted]))
        guarded = np.array([at for at, (_, artifacts) in columns.contracts.items() if artifacts], np.int64)
        self.guarded.append((numbers[guarded], events[guarded]))


def _ranks(order: Ints) -> Ints:
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def _event_order(nodes: Nodes) -> Ints:
    """The nodes of events by name."""
    arrays = nodes.arrays
    events = np.flatnonzero(arrays.agent[: nodes.count] == EVENT)
    starts, ends = (arrays.start[at].astype(np.int64) for at in (events, events + 1))
    order = np.empty(events.size, np.int64)
    order_within(arrays.text, starts, ends, np.array([events.size]), order, np.zeros(1, np.bool_))
    return events[order].astype(np.int32)


def read_tenant(parts: Iterable[Columns]) -> Tenant:
    """The graph that these versions make, every agent given once; the order they come in leaves no trace."""
    read = _Reading()
    for columns in parts:
        read.add(columns)
    nodes, arrays = read.nodes, read.nodes.arrays
    scopes = list(read.scopes)
    scope_rank = _ranks(np.array(sorted(range(len(scopes)), key=[scope.text for scope in scopes].__getitem__), np.int32))
    places = Places()
    places.settle(nodes, scope_rank)
    agent_order, event_order = np.fromiter(places, np.int32, nodes.agents), _event_order(nodes)
    agent_rank, event_rank = _ranks(agent_order), np.full(nodes.count, -1, np.int32)
    event_rank[event_order] = np.arange(event_order.size, dtype=np.int32)

    def numbered(pairs: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        agents, events = (np.concatenate(column) for column in zip(_NOTHING, *pairs, strict=True))
        return agent_rank[agents], event_rank[events]

    agent_node, scope = arrays.node[agent_order], arrays.scope[agent_order]
    emitters, carried = numbered(read.guarded)
    return Tenant(
        agents=Made(nodes.agents, lambda at: AgentRef(scopes[scope[at]], nodes.name(int(agent_node[at])))),
        events=Made(event_order.size, lambda at: nodes.name(int(event_order[at]))),
        emits=rows_from(*numbered(read.emits), nodes.agents),
        hears=rows_from(*numbered(read.hears), nodes.agents),
        guarded=np.sort(emitters.astype(np.int64) * event_order.size + carried),
        scopes=sorted(scopes, key=lambda scope: scope.text),
        scope_of=scope_rank[scope],
    )
