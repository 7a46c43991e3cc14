"""Incidence rows: which events an agent emits and hears, which agents hear and emit an event.

Agents and events share one dense sequence of node numbers, given out in order of first appearance, so that two tables hold all
four kinds of row: `ahead` leads an agent to the events it emits and an event to its listeners; `behind` leads an agent to the
events it hears and an event to its emitters. Every incidence stands once in each table. Pairs of agents are never built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


START, SIZE, ROOM = range(3)
"""Columns of a table's heads."""


class Table(NamedTuple):
    """Rows in one flat array: node n's row is `data[start : start + size]`, and may grow to `room` in place.

    heads: (nodes, 3) start, size and room side by side, because latency of memory is what a search waits for.
    """

    heads: Ints
    data: Ints
    used: Longs
    """One number: how much of `data` is given out to rows. Starts are 32-bit: at most 2³¹ incidences with their slack."""

    def row(self, node: int) -> Ints:
        """A view of one row."""
        start, size, _ = self.heads[node]
        return self.data[start : start + size]


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
        if need > heads[node, ROOM]:
            # A fresh row gets just its room, so that bulk loading wastes nothing; one that grows again gets half as much more.
            fresh = need if heads[node, ROOM] == 0 else need + need // 2 + 1
            if used[0] + fresh > data.size:
                return i
            for at in range(size):
                data[used[0] + at] = data[heads[node, START] + at]
            heads[node, START] = used[0]
            heads[node, ROOM] = fresh
            used[0] += fresh
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
def _compact(table: Table, target: Ints) -> None:
    """Copy every row into new data without gaps, in order of node number."""
    heads, data, used = table
    at = 0
    for node in range(heads.shape[0]):
        size = heads[node, SIZE]
        for i in range(size):
            target[at + i] = data[heads[node, START] + i]
        heads[node, START] = at
        heads[node, ROOM] = size
        at += size
    used[0] = at


def _empty_table() -> Table:
    return Table(np.zeros((0, 3), np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64))


def _with_capacity(table: Table, nodes: int) -> Table:
    heads = np.zeros((nodes, 3), np.int32)
    heads[: len(table.heads)] = table.heads
    return table._replace(heads=heads)


class Rows:
    """The two tables of a graph. Not safe for concurrent use while it changes."""

    def __init__(self) -> None:
        self.nodes = 0
        self.incidences = 0
        self.ahead = _empty_table()
        self.behind = _empty_table()

    def add_nodes(self, count: int) -> int:
        """Make room for more nodes; returns the number of the first."""
        first = self.nodes
        self.nodes += count
        if self.nodes > len(self.ahead.heads):
            capacity = max(64, self.nodes, len(self.ahead.heads) * 3 // 2)
            self.ahead = _with_capacity(self.ahead, capacity)
            self.behind = _with_capacity(self.behind, capacity)
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

    def _inserted(self, table: Table, nodes: Ints, values: Ints) -> Table:
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
            held = int(table.heads[:, SIZE].sum(dtype=np.int64))
            data = np.empty(max(256, (held + moved) * 5 // 4), np.int32)
            _compact(table, data)
            table = table._replace(data=data)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of agents for one reader, by node number: readable agents by their place in name order, then hidden ones by
    first appearance (G-15).

    place: a number per node that grows in name order. scope: the scope number of an agent, -1 for an event.
    readable: per scope number, whether the reader may read it.
    """

    place: Longs
    scope: Ints
    readable: npt.NDArray[np.bool_]

    HIDDEN = 1 << 62

    def key(self, node: int) -> int:
        """The sort key of an agent; hidden agents come after every readable one."""
        return int(self.place[node]) if self.readable[self.scope[node]] else Order.HIDDEN + node


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
    emits: Sequence[int]
    hears: Sequence[int]
    max_loops: int
    max_visits: int


COMPLETE, MORE_LOOPS, WALK_LIMITED, NOT_VERIFIED = range(4)


class Answer(NamedTuple):
    """loops: agent nodes from the root on, root not repeated. ended: one of the four constants. visits: incidences looked at."""

    loops: list[tuple[int, ...]]
    ended: int
    visits: int
