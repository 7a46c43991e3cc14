"""Which incidences come and which go when agents declare other events than before."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from graphsvc.kernels.rows import SIZE, START, Ints, Longs, Table

_FEW = 16


class Incidences(NamedTuple):
    """sources[i] → targets[i]; an agent leads to the events it emits, an event to the agents that hear it."""

    sources: Ints
    targets: Ints


@numba.njit(cache=True, nogil=True)
def _holds(values: Ints, ordered: Ints, value: int) -> bool:
    """Whether a value is among some. ordered: the same, sorted, where they are many."""
    if values.size <= _FEW:
        for other in values:
            if other == value:
                return True
        return False
    at = np.searchsorted(ordered, value)
    return bool(at < ordered.size and ordered[at] == value)


@numba.njit(cache=True, nogil=True)
def _ordered(values: Ints) -> Ints:
    return np.sort(values) if values.size > _FEW else values


@numba.njit(cache=True, nogil=True)
def _held(ahead: Table, behind: Table, nodes: Ints, fresh: npt.NDArray[np.bool_]) -> int:
    """How many incidences those agents have that declared something before."""
    count = 0
    for i in range(nodes.size):
        if not fresh[i]:
            count += ahead.heads[nodes[i], SIZE] + behind.heads[nodes[i], SIZE]
    return count


@numba.njit(cache=True, nogil=True)
def _differences(
    ahead: Table,
    behind: Table,
    nodes: Ints,
    fresh: npt.NDArray[np.bool_],
    emits: Longs,
    ends: Longs,
    events: Ints,
    come: Ints,
    gone: Ints,
) -> tuple[int, int]:
    """Fill `come` and `gone`, (2, n) each, sources first; returns how many there are of either."""
    first, coming, going = 0, 0, 0
    for i in range(nodes.size):
        node, middle, end = nodes[i], first + emits[i], ends[i]
        for outward in range(2):
            new = events[first:middle] if outward else events[middle:end]
            mine, other = (0, 1) if outward else (1, 0)
            if fresh[i]:
                for event in new:
                    come[mine, coming], come[other, coming] = node, event
                    coming += 1
                continue
            table = ahead if outward else behind
            at = table.heads[node, START]
            old = table.data[at : at + table.heads[node, SIZE]]
            old_ordered, new_ordered = _ordered(old), _ordered(new)
            for event in new:
                if not _holds(old, old_ordered, event):
                    come[mine, coming], come[other, coming] = node, event
                    coming += 1
            for event in old:
                if not _holds(new, new_ordered, event):
                    gone[mine, going], gone[other, going] = node, event
                    going += 1
        first = end
    return coming, going


def differences(
    ahead: Table, behind: Table, nodes: Ints, fresh: npt.NDArray[np.bool_], emits: Longs, ends: Longs, events: Ints
) -> tuple[Incidences, Incidences]:
    """The incidences that come, and those that go, when each of these agents, none twice, declares its part of the events.

    fresh: those that declared nothing before. emits, ends: as in `graphsvc.columns.Columns`.
    """
    come, gone = np.empty((2, events.size), np.int32), np.empty((2, _held(ahead, behind, nodes, fresh)), np.int32)
    coming, going = _differences(ahead, behind, nodes, fresh, emits, ends, events, come, gone)
    return Incidences(*come[:, :coming]), Incidences(*gone[:, :going])
