"""The order of agents by name, then by the text of their scope, as a number for each that rarely changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from graphsvc.kernels.nodes import Arrays, Nodes
from graphsvc.kernels.rows import Ints, Longs, longer

_WIDEST = 1 << 61
_FEW = 64


@numba.njit(cache=True, nogil=True)
def _before(arrays: Arrays, rank: Ints, one: int, other: int) -> bool:
    """Whether one agent comes before another, both by agent number. UTF-8 sorts as its code points do."""
    text, start = arrays.text, arrays.start
    a, b = arrays.node[one], arrays.node[other]
    i, j = np.int64(start[a]), np.int64(start[b])
    i_end, j_end = np.int64(start[a + 1]), np.int64(start[b + 1])
    while i < i_end and j < j_end:
        if text[i] != text[j]:
            return bool(text[i] < text[j])
        i += 1
        j += 1
    if i < i_end or j < j_end:
        return bool(i == i_end)
    return bool(rank[arrays.scope[one]] < rank[arrays.scope[other]])


@numba.njit(cache=True, nogil=True)
def _sort(arrays: Arrays, rank: Ints, agents: Ints) -> None:
    """Sort agents by merging ever longer runs."""
    source, target = agents, np.empty_like(agents)
    width = 1
    while width < agents.size:
        for low in range(0, agents.size, 2 * width):
            middle, high = min(low + width, agents.size), min(low + 2 * width, agents.size)
            i, j = low, middle
            for at in range(low, high):
                if j == high or (i < middle and not _before(arrays, rank, source[j], source[i])):
                    target[at] = source[i]
                    i += 1
                else:
                    target[at] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    agents[:] = source


@numba.njit(cache=True, nogil=True)
def _merge(arrays: Arrays, rank: Ints, held: Ints, fresh: Ints, merged: Ints) -> None:
    """Merge two sorted lists, the short `fresh` into the long `held`, by looking up where each fresh one goes."""
    at, low = 0, 0
    for agent in fresh:
        first, end = low, held.size
        while first < end:
            middle = (first + end) // 2
            if _before(arrays, rank, held[middle], agent):
                first = middle + 1
            else:
                end = middle
        for i in range(low, first):
            merged[at] = held[i]
            at += 1
        merged[at] = agent
        at += 1
        low = first
    for i in range(low, held.size):
        merged[at] = held[i]
        at += 1


@numba.njit(cache=True, nogil=True)
def _place(arrays: Arrays, rank: Ints, held: Ints, late: Ints, place: Longs, agent: int, widest: int) -> int:
    """A number between those of the agent's neighbours in two sorted lists; returns where it goes in `late`, -1 for no number."""
    low, high, at = 0, widest, 0
    for which in range(2):
        agents = held if which == 0 else late
        first, end = 0, agents.size
        while first < end:
            middle = (first + end) // 2
            if _before(arrays, rank, agents[middle], agent):
                first = middle + 1
            else:
                end = middle
        if first:
            low = max(low, place[agents[first - 1]])
        if first < agents.size:
            high = min(high, place[agents[first]])
        at = first
    place[agent] = (low + high) // 2
    return at if high - low > 1 else -1


class Places:
    """The order. `number`: by agent number."""

    def __init__(self) -> None:
        self.number: Longs = np.zeros(0, np.int64)
        self._sorted: Ints = np.empty(0, np.int32)
        self._late: Ints = np.empty(0, np.int32)  # sorted too, and short: agents that came since

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, as long as what they hold."""
        count = self._sorted.size + self._late.size
        return {"place": self.number[:count], "sorted": self._sorted, "late": self._late}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Hold what `state` gave."""
        self.number, self._sorted, self._late = arrays["place"], arrays["sorted"], arrays["late"]

    def settle(self, nodes: Nodes, rank: Ints) -> None:
        """Give a place to every agent that has none yet. rank: of each scope's text among all scopes', by scope number."""
        known, count = self._sorted.size + self._late.size, nodes.agents
        self.number = longer(self.number, count)
        fresh = np.arange(known, count, dtype=np.int32)
        if count - known <= _FEW:
            while fresh.size and self._placed(nodes, rank, fresh[0]):
                fresh = fresh[1:]
        if fresh.size or self._late.size > 32 + _FEW * int(self._sorted.size**0.5):
            self._spread(nodes, rank, fresh)

    def _placed(self, nodes: Nodes, rank: Ints, agent: int) -> bool:
        at = _place(nodes.arrays, rank, self._sorted, self._late, self.number, agent, _WIDEST)
        if at >= 0:
            self._late = np.insert(self._late, at, agent)
        return bool(at >= 0)

    def _spread(self, nodes: Nodes, rank: Ints, fresh: Ints) -> None:
        _sort(nodes.arrays, rank, fresh)
        for more in (self._late, fresh):
            merged = np.empty(self._sorted.size + more.size, np.int32)
            _merge(nodes.arrays, rank, self._sorted, more, merged)
            self._sorted = merged
        self._late = self._late[:0]
        gap = _WIDEST // (self._sorted.size + 1)
        self.number[self._sorted] = np.arange(1, self._sorted.size + 1, dtype=np.int64) * gap

    def __iter__(self) -> Iterator[int]:
        """Agent numbers in order."""
        both = np.concatenate([self._sorted, self._late])
        return iter(both[np.argsort(self.number[both])].tolist())
