"""Incidence rows: which events an agent emits and hears, which agents hear and emit an event.

Agents and events share one dense sequence of node numbers, given out in order of first appearance, so that two tables hold all
four kinds of row: `ahead` leads an agent to the events it emits and an event to its listeners; `behind` leads an agent to the
events it hears and an event to its emitters. Every incidence stands once in each table. Pairs of agents are never built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

_T = TypeVar("_T", bound=np.generic)


START, SIZE = range(2)
"""Columns of a table's heads."""

_SHORT = 16
"""A row up to this size has the least room for it, so that nothing has to hold it: most rows have fewer than five."""


class Table(NamedTuple):
    """Rows in one flat array: node n's row is `data[start : start + size]`, and may grow in place to its room. A short row's room
    is the least for its size; a long one's stands before it, so that a hub which wins and loses listeners is not moved each time.

    heads: (nodes, 2) start and size side by side, because latency of memory is what a search waits for.
    """

    heads: Ints
    data: Ints
    used: Longs
    """One number: how much of `data` is given out to rows. Starts are 32-bit: at most 2³¹ incidences with their slack."""

    def row(self, node: int) -> Ints:
        """A view of one row."""
        start, size = self.heads[node].tolist()
        return self.data[start : start + size]


@numba.njit(cache=True, nogil=True)
def _room(size: int) -> int:
    """The least room for a row of this size: 1, 2, 3, 4, 6, 8, 12, 16, 24 …"""
    if size <= 4:
        return size
    room = 4
    while room < size:
        room += room // 2 if room & (room - 1) == 0 else room // 3
    return room


@numba.njit(cache=True, nogil=True)
def _room_of(heads: Ints, data: Ints, node: int) -> int:
    """The room that a row has."""
    size = heads[node, SIZE]
    return _room(size) if size <= _SHORT else int(data[heads[node, START] - 1])


@numba.njit(cache=True, nogil=True)
def _room_kept(heads: Ints, data: Ints, node: int) -> int:
    """The room that a row gets when all are copied: what it has, unless that has become twice what it needs."""
    least, held = _room(heads[node, SIZE]), _room_of(heads, data, node)
    return held if held < 2 * least else least


@numba.njit(cache=True, nogil=True)
def _insert(table: Table, nodes: Ints, values: Ints) -> int:
    """Append values[i] to the row of nodes[i], nodes sorted. Returns how many were placed before `data` ran out of room."""
    heads, data, used = table
    i = 0
    while i < nodes.size:
        node = nodes[i]
        end = i
        while end < nodes.size and nodes[end] == node:
            end += 1
        size = heads[node, SIZE]
        need = size + end - i
        if need > _room_of(heads, data, node):
            room = _room(need)
            head = 1 if need > _SHORT else 0
            if used[0] + head + room > data.size:
                return i
            if head:
                data[used[0]] = room
            first = used[0] + head
            for at in range(size):
                data[first + at] = data[heads[node, START] + at]
            heads[node, START] = first
            used[0] = first + room
        for at in range(end - i):
            data[heads[node, START] + size + at] = values[i + at]
        heads[node, SIZE] = need
        i = end
    return i


@numba.njit(cache=True, nogil=True)
def _remove(table: Table, nodes: Ints, values: Ints) -> None:
    """Take values[i] out of the row of nodes[i]; sorted by node, then value. A row is passed over once, however much it loses."""
    heads, data, _ = table
    i = 0
    while i < nodes.size:
        node = nodes[i]
        end = i
        while end < nodes.size and nodes[end] == node:
            end += 1
        first = heads[node, START]
        kept = first
        for at in range(first, first + heads[node, SIZE]):
            low, high = i, end
            while low < high:
                middle = (low + high) // 2
                if values[middle] < data[at]:
                    low = middle + 1
                else:
                    high = middle
            if low == end or values[low] != data[at]:
                data[kept] = data[at]
                kept += 1
        heads[node, SIZE] = kept - first
        i = end


@numba.njit(cache=True, nogil=True)
def _rooms(table: Table) -> int:
    """How much data the rows need."""
    heads, data, _ = table
    total = 0
    for node in range(heads.shape[0]):
        total += _room_kept(heads, data, node) + (1 if heads[node, SIZE] > _SHORT else 0)
    return total


@numba.njit(cache=True, nogil=True)
def _compact(table: Table, target: Ints) -> None:
    """Copy every row into new data without gaps, in order of node number."""
    heads, data, used = table
    at = 0
    for node in range(heads.shape[0]):
        size, room = heads[node, SIZE], _room_kept(heads, data, node)
        if size > _SHORT:
            target[at] = room
            at += 1
        for i in range(size):
            target[at + i] = data[heads[node, START] + i]
        heads[node, START] = at
        at += room
    used[0] = at


@numba.njit(cache=True, nogil=True)
def _hops(nodes: Ints, sizes: Ints, which: Ints, pairs: Ints) -> int:
    """Number the hops of loops that lie one after the other: which[i] is the hop that leaves nodes[i], pairs[hop] its two ends.
    Returns how many hops there are."""
    keys = np.empty(nodes.size, np.int64)
    first = 0
    for size in sizes:
        for at in range(first, first + size):
            keys[at] = np.int64(nodes[at]) << 32 | np.int64(nodes[at + 1 if at + 1 < first + size else first])
        first += size
    order = np.argsort(keys, kind="mergesort")
    count = 0
    for i in range(order.size):
        at = order[i]
        if i == 0 or keys[at] != keys[order[i - 1]]:
            pairs[count, 0], pairs[count, 1] = keys[at] >> 32, keys[at] & 0xFFFFFFFF
            count += 1
        which[at] = count - 1
    return count


@numba.njit(cache=True, nogil=True)
def _shared(ahead: Table, behind: Table, root: int, emits: Ints, hears: Ints, pairs: Ints, ends: Longs, events: Ints) -> int:
    count = 0
    for i in range(pairs.shape[0]):
        source, target = pairs[i]
        first, size = (0, emits.size) if source == root else (ahead.heads[source, START], ahead.heads[source, SIZE])
        behind_first, behind_size = (0, hears.size) if target == root else (behind.heads[target, START], behind.heads[target, SIZE])
        for j in range(first, first + size):
            event = emits[j] if source == root else ahead.data[j]
            for k in range(behind_first, behind_first + behind_size):
                if event == (hears[k] if target == root else behind.data[k]):
                    if count < events.size:
                        events[count] = event
                    count += 1
        ends[i] = count
    return count


@numba.njit(cache=True, nogil=True)
def others(
    table: Table, nodes: int, events: Ints, root: int, agent: Ints, scope: Ints, readable: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Whether each event, those from `nodes` on being in no row, has a readable agent other than the root in its row."""
    found = np.zeros(events.size, np.bool_)
    for i in range(events.size):
        event = events[i]
        if event >= nodes:
            continue
        start = table.heads[event, START]
        for at in range(start, start + table.heads[event, SIZE]):
            other = table.data[at]
            if other != root and readable[scope[agent[other]]]:
                found[i] = True
                break
    return found


def _empty_table() -> Table:
    return Table(np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64))


def capacity(held: int, needed: int) -> int:
    """How long an array should be that has room for `held` and needs it for `needed`: half as much again while it is short, an
    eighth when it is long, since what is not used is memory lost."""
    return held if needed <= held else max(64, needed, held + (held >> 1 if held < 1 << 20 else held >> 3))


def longer(array: npt.NDArray[_T], needed: int) -> npt.NDArray[_T]:
    """The array itself, or one with room for so many that goes on with zeros."""
    room = capacity(len(array), needed)
    if room == len(array):
        return array
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


class Rows:
    """The two tables of a graph. Not safe for concurrent use while it changes."""

    def __init__(self) -> None:
        self.nodes = 0
        self.incidences = 0
        self.ahead = _empty_table()
        self.behind = _empty_table()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, as long as what they hold."""
        state: dict[str, npt.NDArray[Any]] = {"incidences": np.array([self.incidences])}
        for name, table in (("ahead", self.ahead), ("behind", self.behind)):
            state |= {f"{name}_heads": table.heads[: self.nodes], f"{name}_data": table.data[: table.used[0]]}
        return state

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Hold what `state` gave."""
        self.incidences, self.nodes = int(arrays["incidences"][0]), len(arrays["ahead_heads"])
        self.ahead, self.behind = (
            Table(arrays[f"{name}_heads"], arrays[f"{name}_data"], np.array([arrays[f"{name}_data"].size]))
            for name in ("ahead", "behind")
        )

    def add_nodes(self, count: int) -> int:
        """Make room for more nodes; returns the number of the first."""
        first = self.nodes
        if not count:
            return first
        self.nodes += count
        self.ahead = self.ahead._replace(heads=longer(self.ahead.heads, self.nodes))
        self.behind = self.behind._replace(heads=longer(self.behind.heads, self.nodes))
        return first

    def change(self, sources: Ints, targets: Ints, *, present: bool) -> None:
        """Add (or, with present=False, take away) the incidences sources[i] → targets[i].

        An incidence agent → event says that the agent emits it; event → agent that the agent hears it. None may be added twice.
        """
        if not sources.size:
            return
        if present:
            self.ahead = self._inserted(self.ahead, sources, targets)
            self.behind = self._inserted(self.behind, targets, sources)
            self.incidences += sources.size
        else:
            for table, nodes, values in ((self.ahead, sources, targets), (self.behind, targets, sources)):
                order = np.lexsort((values, nodes))
                _remove(table, nodes[order], values[order])
            self.incidences -= sources.size

    def hops(self, question: Question, answer: Answer) -> Hops:
        """The hops of the loops found, each named once; the root's rows are those that are proposed."""
        which, pairs = np.empty(answer.nodes.size, np.int32), np.empty((answer.nodes.size, 2), np.int32)
        pairs = pairs[: _hops(answer.nodes, answer.sizes, which, pairs)]
        own = question.emits, question.hears
        ends, events = np.empty(len(pairs), np.int64), np.empty(4 * len(pairs), np.int32)
        count = _shared(self.ahead, self.behind, question.root, *own, pairs, ends, events)
        if count > events.size:
            events = np.empty(count, np.int32)
            _shared(self.ahead, self.behind, question.root, *own, pairs, ends, events)
        return Hops(which, pairs[:, 0], events[:count], ends)

    def _inserted(self, table: Table, nodes: Ints, values: Ints) -> Table:
        if nodes.size > 1:
            order = np.argsort(nodes, kind="stable")
            nodes, values = nodes[order], values[order]
        while True:
            done = _insert(table, nodes, values)
            if done == nodes.size:
                return table
            nodes, values = nodes[done:], values[done:]
            # Gaps are squeezed out, and there is room for every row that has to move and for as much again as a quarter of all.
            touched, added = np.unique(nodes, return_counts=True)
            moved = int(((table.heads[touched, SIZE] + added) * 3 // 2 + 1).sum())
            held = _rooms(table)
            # What is free then lasts until a quarter as much again has moved; a long table grows by an eighth.
            spare = (held + moved) // (4 if held < 1 << 20 else 8)
            data = np.empty(max(256, held + moved + spare), np.int32)
            _compact(table, data)
            table = table._replace(data=data)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of agents for one reader: readable agents by their place in name order, then hidden ones by first appearance
    (G-15).

    agent: by node, the agent's number among agents. By that number, place: grows in name order, and scope: its scope number.
    readable: by scope number, whether the reader may read it.
    """

    agent: Ints
    place: Longs
    scope: Ints
    readable: npt.NDArray[np.bool_]

    HIDDEN = 1 << 62

    def key(self, node: int) -> int:
        """The sort key of an agent; hidden agents come after every readable one."""
        agent = self.agent[node]
        return int(self.place[agent]) if self.readable[self.scope[agent]] else Order.HIDDEN + node


@dataclass(frozen=True, slots=True)
class Question:
    """A graph as it will be, and what is asked of it.

    root: the agent asked about; its stored rows are replaced by `emits` and `hears` (event nodes, none twice). A root that the
    graph does not have yet, and events that it does not have, take numbers from `rows.nodes` on.
    max_loops: at least 1. max_visits: most incidences looked at.
    """

    rows: Rows
    order: Order
    root: int
    emits: Ints
    hears: Ints
    max_loops: int
    max_visits: int


COMPLETE, MORE_LOOPS, WALK_LIMITED, NOT_VERIFIED = range(4)


class Answer(NamedTuple):
    """nodes: the agents of the loops found, one loop after the other, each from the root on, which is not repeated at its end.
    sizes: of each loop. ended: one of the four constants. visits: incidences looked at."""

    nodes: Ints
    sizes: Ints
    ended: int
    visits: int

    @property
    def loops(self) -> list[tuple[int, ...]]:
        """The agents of each loop."""
        nodes = iter(self.nodes.tolist())
        return [tuple(islice(nodes, size)) for size in self.sizes.tolist()]


class Hops(NamedTuple):
    """which: of each agent of the loops, the number of the hop that leaves it. sources: of each hop. events: those that a hop's
    source emits and its target hears, one hop after the other; ends: where each hop's end there."""

    which: Ints
    sources: Ints
    events: Ints
    ends: Longs
