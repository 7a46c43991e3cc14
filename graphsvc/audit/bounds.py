"""How short a loop through an agent could be: proof, in time linear in a component, that many agents have no loop worth a search.

Steps that lead no further away from one agent, the root, close every loop: a walk that only ever leads further away never comes
back. So a loop through an agent takes at least the way from it to such a step, the step, and the way from there to the agent. In a
component that goes round in a thousand layers that is a thousand for nearly every agent, where a search would look at all that its
limit allows.
"""

from __future__ import annotations

import numba
import numpy as np

from graphsvc.audit.components import Core
from graphsvc.audit.tenant import Flags, Ints, Longs


@numba.njit(cache=True, nogil=True)
def _spread(starts: Longs, values: Ints, distance: Ints, queue: Ints, size: int) -> int:
    """Distances from the `size` nodes in the queue, whose own are 0; of others, -1 before. Returns how many were reached."""
    done = 0
    while done < size:
        node = queue[done]
        done += 1
        for at in range(starts[node], starts[node + 1]):
            other = values[at]
            if distance[other] == -1:
                distance[other] = distance[node] + 1
                queue[size] = other
                size += 1
    return size


@numba.njit(cache=True, nogil=True)
def _levels(ahead_starts: Longs, ahead: Ints, root: int, level: Ints, queue: Ints) -> int:
    level[root] = 0
    queue[0] = root
    return _spread(ahead_starts, ahead, level, queue, 1)


@numba.njit(cache=True, nogil=True)
def _raise(
    ahead_starts: Longs, ahead: Ints, behind_starts: Longs, behind: Ints, level: Ints, members: Ints, least: Ints, distances: Ints
) -> None:
    """Raise the least lengths of a component's agents by what these levels prove. distances: (2, nodes), -1 for the members."""
    queue = np.empty(members.size, np.int32)
    for side in range(2):
        size = 0
        for node in members:
            for at in range(ahead_starts[node], ahead_starts[node + 1]):
                other = ahead[at]
                if level[other] <= level[node]:
                    end = node if side == 0 else other
                    if distances[side, end] == -1:
                        distances[side, end] = 0
                        queue[size] = end
                        size += 1
        if side == 0:
            _spread(behind_starts, behind, distances[0], queue, size)
        else:
            _spread(ahead_starts, ahead, distances[1], queue, size)
    for node in members:
        if node < least.size:  # an agent: its loops have two steps for each of their agents
            least[node] = max(least[node], (distances[0, node] + distances[1, node] + 2) // 2)


def least_lengths(core: Core, readable: Flags, max_length: int) -> Ints:
    """Per agent of the core, a number of agents that its shortest loop has at least. Of interest where it is above max_length.

    The roots are readable agents, so that nothing here depends on names that the auditor may not read.
    """
    least = np.full(len(core.agents), 2, np.int32)
    nodes = len(core.ahead.starts) - 1
    level, queue = np.full(nodes, -1, np.int32), np.empty(nodes, np.int32)
    rows = core.ahead.starts, core.ahead.values, core.behind.starts, core.behind.values
    distances = np.full((2, nodes), -1, np.int32)
    for first, last in zip(core.starts[:-1].tolist(), core.starts[1:].tolist(), strict=True):
        roots = first + np.flatnonzero(readable[first:last])
        if last - first <= max_length or not roots.size:
            continue
        root = int(roots[0])
        for turn in range(2):
            members = queue[: _levels(*rows[:2], root, level, queue)].copy()
            _raise(*rows, level, members, least, distances)
            if turn == 0:
                # What the first root leaves in doubt lies around it; the second is one half-way round.
                root = int(roots[np.argmin(np.abs(level[roots] - level[members].max() // 2))])
            level[members] = distances[0, members] = distances[1, members] = -1
    return least
