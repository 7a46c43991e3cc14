"""The index: a weak topological number of every agent and event.

number(x) ≤ number(y) on every incidence x → y, so that nothing leads from a higher number to a lower one. Bulk loading numbers the
strongly connected components in topological order (Tarjan 1972); a single incidence that goes against the numbers is put right
within the interval between its two ends (after Pearce and Kelly 2006, for graphs with cycles: what lies on a cycle through the
incidence gets one number). Removing incidences never makes a number wrong, it only leaves some equal that could differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from graphsvc.kernels.rows import SIZE, START, Ints, Longs, Question, Rows, Table, longer

_GAP = 1 << 32
_FIRST = 1 << 61
_LAST = 1 << 62
_AHEAD, _BEHIND = 1, 2


@numba.njit(cache=True, nogil=True)
def _number_all(ahead: Table, nodes: int, number: Longs) -> None:
    """Number every component, those that lead to others before them, without recursion."""
    heads, data = ahead.heads, ahead.data
    index = np.zeros(nodes, np.int32)  # order of discovery, from 1; 0: not seen
    low = np.zeros(nodes, np.int32)
    at = np.zeros(nodes, np.int32)  # the incidence that is looked at next
    open_, path = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    opened, seen, done = 0, 0, 0
    for root in range(nodes):
        if index[root]:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            node = path[depth]
            if index[node] == 0:
                seen += 1
                index[node] = low[node] = seen
                open_[opened] = node
                opened += 1
            if at[node] < heads[node, SIZE]:
                target = data[heads[node, START] + at[node]]
                at[node] += 1
                if index[target] == 0:
                    depth += 1
                    path[depth] = target
                elif low[target] > 0:  # still open
                    low[node] = min(low[node], index[target])
                continue
            if low[node] == index[node]:
                done += 1
                while True:
                    opened -= 1
                    member = open_[opened]
                    low[member] = -1
                    number[member] = _FIRST - done * _GAP
                    if member == node:
                        break
            depth -= 1
            if depth >= 0 and low[node] > 0:
                low[path[depth]] = min(low[path[depth]], low[node])


@numba.njit(cache=True, nogil=True)
def _reach(
    table: Table, number: Longs, marks: npt.NDArray[np.uint8], mark: int, start: int, low: int, high: int, found: Ints
) -> int:
    """Fill `found` with what the start leads to by numbers from low to high, marking it; returns how many."""
    heads, data = table.heads, table.data
    found[0] = start
    marks[start] |= mark
    count, i = 1, 0
    while i < count:
        node = found[i]
        i += 1
        for j in range(heads[node, START], heads[node, START] + heads[node, SIZE]):
            other = data[j]
            if not marks[other] & mark and low <= number[other] <= high:
                marks[other] |= mark
                found[count] = other
                count += 1
    return count


@numba.njit(cache=True, nogil=True)
def _leads(
    ahead: Table, number: Longs, marks: npt.NDArray[np.uint8], root: int, starts: Ints, ends: Ints, found: Ints, most: int
) -> int:
    """Whether any of the start events leads to one of the end events past the root: 1, 0, or -1 where `most` incidences did not
    tell. Whatever has a higher number than every end is left aside."""
    heads, data = ahead.heads, ahead.data
    high = number[ends[0]]
    for end in ends:
        marks[end] |= _BEHIND
        high = max(high, number[end])
    count, i, looked = 0, 0, 0
    for start in starts:
        if number[start] <= high and not marks[start] & _AHEAD:
            marks[start] |= _AHEAD
            found[count] = start
            count += 1
    while i < count:
        node = found[i]
        i += 1
        looked += heads[node, SIZE]
        if looked > most:
            return -1
        for j in range(heads[node, START], heads[node, START] + heads[node, SIZE]):
            other = data[j]
            if other == root or marks[other] & _AHEAD or number[other] > high:
                # A start may be an end as well: it counts once something else emits it.
                if other != root and marks[other] & _BEHIND:
                    return 1
                continue
            if marks[other] & _BEHIND:
                return 1
            marks[other] |= _AHEAD
            found[count] = other
            count += 1
    return 0


class Numbers:
    """The number of each node, 0 for one that is new. Not safe for concurrent use while it changes."""

    def __init__(self) -> None:
        self.of: Longs = np.zeros(0, np.int64)
        self._changes = 0

    def rebuild(self, rows: Rows) -> None:
        """Number everything anew, as finely as can be, in time linear in the incidences."""
        self.of = longer(self.of, rows.nodes)
        _number_all(rows.ahead, rows.nodes, self.of)
        self._changes = 0

    def follow(self, rows: Rows, agents: Sequence[int]) -> None:
        """Put the numbers right after these agents' rows have changed. As many changes as there are incidences make it worth
        while to number everything anew, since what was taken away has left numbers equal that could differ."""
        self._changes += len(agents)
        if len(agents) > max(1_000, rows.incidences // 16) or self._changes > max(100_000, rows.incidences):
            self.rebuild(rows)
            return
        self.of = longer(self.of, rows.nodes)
        for agent in agents:
            self._follow(rows, agent)

    def _follow(self, rows: Rows, agent: int) -> None:
        number, heard, emits = self.of, rows.behind.row(agent), rows.ahead.row(agent)
        now, below, above = int(number[agent]), number[heard], number[emits]
        low, high = int(below.max(initial=0)), int(above.min(initial=_LAST, where=above > 0))
        if not low <= now <= high or now == 0:
            if low <= high:
                now = _between(low, high)
            elif now == 0:
                now = low
            number[agent] = now
        for event in heard[below > now].tolist():
            self._repair(rows, event, agent)
        for event in emits[(above > 0) & (above < now)].tolist():
            self._repair(rows, agent, event)
        now = int(number[agent])
        own = np.intersect1d(heard, emits)
        number[own[number[own] == 0]] = now
        number[heard[number[heard] == 0]] = now - _GAP
        number[emits[number[emits] == 0]] = now + _GAP

    def _repair(self, rows: Rows, source: int, target: int) -> None:
        """Make number(source) ≤ number(target), which it is not, and keep it so for all that was put right before.

        Whatever the target leads to within the interval goes up, whatever leads to the source goes down, and what does both lies
        on a cycle through the incidence and gets one number in between. They share the numbers that they have together.
        """
        low, high = int(self.of[target]), int(self.of[source])
        if low >= high:
            return
        marks, found = np.zeros(rows.nodes, np.uint8), np.empty(rows.nodes, np.int32)
        up = found[: _reach(rows.ahead, self.of, marks, _AHEAD, target, low, high, found)].copy()
        down = found[: _reach(rows.behind, self.of, marks, _BEHIND, source, low, high, found)]
        cycle = up[marks[up] == _AHEAD | _BEHIND]
        up, down = up[marks[up] == _AHEAD], down[marks[down] == _BEHIND]
        risen, lowered = np.unique(self.of[up]), np.unique(self.of[down])
        shared = np.unique(np.concatenate([risen, lowered, self.of[cycle]]))
        if lowered.size + risen.size + (cycle.size > 0) > shared.size:
            # Numbers that were left equal for want of a finer look are too few; one number for all that goes up is right, too.
            self.of[up] = self.of[cycle] = high
            return
        self.of[down] = shared[np.searchsorted(lowered, self.of[down])]
        self.of[up] = shared[shared.size - risen.size + np.searchsorted(risen, self.of[up])]
        self.of[cycle] = shared[lowered.size]

    def closes_nothing(self, question: Question) -> bool:
        """Whether the numbers alone prove that the root closes no loop of several agents."""
        starts, ends = _known(question)
        return not starts.size or not ends.size or bool(self.of[starts].min() > self.of[ends].max())

    def leads_nowhere(self, question: Question) -> bool:
        """Whether a walk within the interval of the numbers proves the same. It gives up where a search does."""
        starts, ends = _known(question)
        rows = question.rows
        marks, found = np.zeros(rows.nodes, np.uint8), np.empty(rows.nodes, np.int32)
        return _leads(rows.ahead, self.of, marks, question.root, starts, ends, found, question.max_visits) == 0


def _known(question: Question) -> tuple[Ints, Ints]:
    nodes = question.rows.nodes
    emits, hears = ([event for event in events if event < nodes] for events in (question.emits, question.hears))
    return np.array(emits, np.int32), np.array(hears, np.int32)


def _between(low: int, high: int) -> int:
    """A number from low to high, as far from both as can be; low 0 and high _LAST stand for none."""
    if low == 0:
        return _FIRST if high == _LAST else high - _GAP
    return low + _GAP if high == _LAST else low + (high - low) // 2
