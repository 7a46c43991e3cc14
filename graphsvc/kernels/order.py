"""The index: a weak topological number of every agent and event.

number(x) ≤ number(y) on every incidence x → y, so that nothing leads from a higher number to a lower one. Bulk loading numbers the
strongly connected components in topological order (Tarjan 1972); a single incidence that goes against the numbers is put right
within the interval between its two ends, by two looks from both that go in the order of the numbers (after Bender, Fineman, Gilbert
and Tarjan 2016). Removing incidences never makes a number wrong, it only leaves some equal that could differ.
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
def _push(heap: Longs, nodes: Ints, size: int, key: int, node: int) -> None:
    """Add to a heap with the least key on top."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > key:
        heap[at], nodes[at] = heap[(at - 1) // 2], nodes[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at], nodes[at] = key, node


@numba.njit(cache=True, nogil=True)
def _pop(heap: Longs, nodes: Ints, size: int) -> int:
    """Take away the top; returns its node. size: before."""
    top, key, node = nodes[0], heap[size - 1], nodes[size - 1]
    size -= 1
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at], nodes[at] = heap[child], nodes[child]
        at = child
    heap[at], nodes[at] = key, node
    return int(top)


@numba.njit(cache=True, nogil=True)
def _stands(ahead: Table, behind: Table, number: Longs, agent: int) -> bool:
    """Whether an agent and all its events have numbers, none of which goes against an incidence of the agent."""
    now = number[agent]
    heads, data = behind.heads, behind.data
    for j in range(heads[agent, START], heads[agent, START] + heads[agent, SIZE]):
        if not 0 < number[data[j]] <= now:
            return False
    heads, data = ahead.heads, ahead.data
    for j in range(heads[agent, START], heads[agent, START] + heads[agent, SIZE]):
        if number[data[j]] < now:
            return False
    return bool(now > 0)


@numba.njit(cache=True, nogil=True)
def _between_ends(
    ahead: Table, behind: Table, number: Longs, marks: npt.NDArray[np.uint8], source: int, target: int
) -> tuple[Ints, Ints, int, int, bool]:
    """Look from the target on by rising numbers and from the source back by falling ones, the cheaper side first, until the two
    have passed each other.

    Returns the nodes looked at from the target and from the source, the lowest number that was not looked at on the one side, the
    highest on the other, and whether the sides met at a node. marks: all 0, and so again when this returns: it costs what it looks
    at, however large the graph is.
    """
    low, high = number[target], number[source]
    heaps, queues = np.empty((2, 64), np.int64), np.empty((2, 64), np.int32)
    size, cost, done = np.ones(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    found = np.empty((2, 64), np.int32)
    heaps[0, 0], queues[0, 0] = low, target
    heaps[1, 0], queues[1, 0] = -high, source
    marks[target] |= _AHEAD
    marks[source] |= _BEHIND
    met = False
    while True:
        first = heaps[0, 0] if size[0] else high
        last = -heaps[1, 0] if size[1] else low
        if first >= last or not size[0] or not size[1]:
            break
        side = 0 if cost[0] <= cost[1] else 1
        heads, data = (ahead.heads, ahead.data) if side == 0 else (behind.heads, behind.data)
        mark = _AHEAD if side == 0 else _BEHIND
        node = _pop(heaps[side], queues[side], size[side])
        size[side] -= 1
        if done[side] == found.shape[1]:
            more = np.empty((2, 2 * done[side]), np.int32)
            more[:, : done[side]] = found
            found = more
        found[side, done[side]] = node
        done[side] += 1
        cost[side] += 1 + heads[node, SIZE]
        if size[side] + heads[node, SIZE] > heaps.shape[1]:
            room = 2 * (size[side] + heads[node, SIZE])
            wider, longer_queues = np.empty((2, room), np.int64), np.empty((2, room), np.int32)
            for each in range(2):
                for i in range(size[each]):
                    wider[each, i], longer_queues[each, i] = heaps[each, i], queues[each, i]
            heaps, queues = wider, longer_queues
        for j in range(heads[node, START], heads[node, START] + heads[node, SIZE]):
            other = data[j]
            # An incidence that goes against the numbers has its own turn, and is none to go along now.
            onward = number[node] <= number[other] <= high if side == 0 else low <= number[other] <= number[node]
            if marks[other] & mark or not onward:
                continue
            marks[other] |= mark
            met = met or marks[other] == _AHEAD | _BEHIND
            _push(heaps[side], queues[side], size[side], number[other] if side == 0 else -number[other], other)
            size[side] += 1
    for each in range(2):
        for i in range(done[each]):
            marks[found[each, i]] = 0
        for i in range(size[each]):
            marks[queues[each, i]] = 0
    return found[0, : done[0]], found[1, : done[1]], int(first), int(last), met


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
        self._marks = np.zeros(0, np.uint8)

    def rebuild(self, rows: Rows) -> None:
        """Number everything anew, as finely as can be, in time linear in the incidences."""
        self.of = longer(self.of, rows.nodes)
        _number_all(rows.ahead, rows.nodes, self.of)
        self._changes = 0

    def follow(self, rows: Rows, agents: Sequence[int]) -> None:
        """Put the numbers right after these agents' rows have changed. As many changes as there are incidences make it worth
        while to number everything anew, since what was taken away has left numbers equal that could differ; so does a change of
        many agents at once, as each takes as long as some hundreds of incidences do then."""
        self._changes += len(agents)
        if len(agents) > max(1_000, rows.incidences // 512) or self._changes > max(100_000, rows.incidences):
            self.rebuild(rows)
            return
        self.of = longer(self.of, rows.nodes)
        for agent in agents:
            if not _stands(rows.ahead, rows.behind, self.of, agent):
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
        if below.min(initial=1) == 0 or above.min(initial=1) == 0:
            now = int(number[agent])
            own = np.intersect1d(heard, emits)
            number[own[number[own] == 0]] = now
            number[heard[number[heard] == 0]] = now - _GAP
            number[emits[number[emits] == 0]] = now + _GAP

    def _repair(self, rows: Rows, source: int, target: int) -> None:
        """Make number(source) ≤ number(target), which it is not, and keep it so for all that was put right before.

        What the target leads to goes up and what leads to the source goes down, as far as the two looks came before they passed
        each other, so that a large component between the ends stays where it is. They come to lie on both sides of a cut in the gap
        where the looks passed, in the order they had; where the looks met, all of them lie on it, as a cycle may go through them.
        """
        if self.of[source] <= self.of[target]:
            return
        # Only put back when the look is over: one that failed, for want of memory, would leave its marks.
        marks, self._marks = longer(self._marks, rows.nodes), self._marks[:0]
        up, down, high, low, met = _between_ends(rows.ahead, rows.behind, self.of, marks, source, target)
        self._marks = marks
        risen, lowered = np.unique(self.of[up]), np.unique(self.of[down])
        # Nothing that goes up may fall by it, and nothing that goes down rise.
        least, most = max([low, *risen[-1:].tolist()]), min([high, *lowered[:1].tolist()])
        cut = least + (most - least) // 2
        fall, rise = (cut - low) // max(1, lowered.size), (high - cut) // (risen.size + 1)
        if met or fall == 0 or rise == 0:
            self.of[up] = self.of[down] = cut
            return
        self.of[down] = cut - fall * (lowered.size - 1 - np.searchsorted(lowered, self.of[down]))
        self.of[up] = cut + rise * (1 + np.searchsorted(risen, self.of[up]))

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
    nodes, emits, hears = question.rows.nodes, question.emits, question.hears
    return emits[emits < nodes], hears[hears < nodes]


def _between(low: int, high: int) -> int:
    """A number from low to high, as far from both as can be; low 0 and high _LAST stand for none."""
    if low == 0:
        return _FIRST if high == _LAST else high - _GAP
    return low + _GAP if high == _LAST else low + (high - low) // 2
