"""Shortest loops through agents, in numbers: compiled, without the interpreter's lock, one call for a part of the agents.

From an agent both ways at once, always on the side whose next level is cheaper, until the two meet. Then the ways of that length
alone are followed back inside what the forward side reached, and the first of them by name is read off forwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from graphsvc.audit.components import Core
from graphsvc.audit.tenant import Flags, Ints, Longs
from graphsvc.domain.audit import AuditLimits

BEYOND = 0
CUT = -1
HIDDEN = -1


class Found(NamedTuple):
    """lengths: per agent asked about, how many agents its shortest loop has, BEYOND or CUT. ends: where each loop ends in `loops`.

    loops: the loops one after the other, each from its agent on, HIDDEN for an agent that the auditor may not read.
    """

    lengths: Ints
    ends: Longs
    loops: Ints


@numba.njit(cache=True, nogil=True)
def _grown(values, size):
    if size <= values.size:
        return values
    larger = np.empty(max(size, 2 * values.size), values.dtype)
    larger[: values.size] = values
    return larger


@numba.njit(cache=True, nogil=True)
def _reach(agent, distance, distances, reached, count, starts, values, pushed, events, event_count):
    """Take an agent into a side and its events, where they are new, into the side's next level. Returns the counts and the cost."""
    distances[agent] = distance
    reached[count] = agent
    cost = 0
    for at in range(starts[agent], starts[agent + 1]):
        event = values[at]
        if not pushed[event]:
            pushed[event] = True
            events[event_count] = event
            event_count += 1
            cost += starts[event + 1] - starts[event]
    return count + 1, event_count, starts[agent + 1] - starts[agent], cost


@numba.njit(cache=True, nogil=True)
def _search(ahead_starts, ahead, behind_starts, behind, readable, asked, max_length, max_visits):
    nodes = ahead_starts.size - 1
    agents = readable.size
    distances = np.full((2, nodes), -1, np.int32)  # of agents: how far from the root (0), how far to it (1)
    pushed = np.zeros((2, nodes), np.bool_)  # events that a side has in one of its levels
    reached = np.empty((2, agents), np.int32)
    events = np.empty((2, nodes - agents), np.int32)
    layer = np.empty(agents, np.int32)
    other = np.empty(agents, np.int32)
    seen = np.zeros(nodes, np.int64)  # the last pass that looked at this node
    passes = 0
    lengths = np.zeros(asked.size, np.int32)
    ends = np.zeros(asked.size, np.int64)
    loops = np.empty(256, np.int32)
    used = 0
    for number in range(asked.size):
        root = asked[number]
        visits = 0
        counts = np.zeros(2, np.int64)
        event_counts = np.zeros(2, np.int64)
        event_done = np.zeros(2, np.int64)
        levels = np.zeros(2, np.int64)
        costs = np.zeros(2, np.int64)
        for side in range(2):
            starts, values = (ahead_starts, ahead) if side == 0 else (behind_starts, behind)
            counts[side], event_counts[side], read, cost = _reach(
                root, 0, distances[side], reached[side], 0, starts, values, pushed[side], events[side], 0
            )
            visits += read
            costs[side] = cost
        length = 0
        while length == 0:
            if levels[0] == 0 or levels[1] == 0:
                side = levels[0]  # each goes once at first: then all loops of up to both levels together have been met
            else:
                side = 0 if costs[0] <= costs[1] else 1
            if levels[0] + levels[1] + 1 > max_length:
                length = BEYOND
                break
            if visits + costs[side] > max_visits:
                length = CUT
                break
            visits += costs[side]
            costs[side] = 0
            starts, values = (ahead_starts, ahead) if side == 0 else (behind_starts, behind)
            levels[side] += 1
            first, last = event_done[side], event_counts[side]
            event_done[side] = last
            for at in range(first, last):
                event = events[side, at]
                for i in range(starts[event], starts[event + 1]):
                    agent = values[i]
                    if distances[side, agent] == -1:
                        if distances[1 - side, agent] != -1:
                            length = levels[0] + levels[1]
                        counts[side], event_counts[side], read, cost = _reach(
                            agent,
                            levels[side],
                            distances[side],
                            reached[side],
                            counts[side],
                            starts,
                            values,
                            pushed[side],
                            events[side],
                            event_counts[side],
                        )
                        visits += read
                        costs[side] += cost
        lengths[number] = length
        if length > 0:
            # Inside what the forward side reached, on from where the two met, back towards the root.
            size = 0
            for at in range(counts[1]):
                agent = reached[1, at]
                if distances[1, agent] == levels[1] and distances[0, agent] == levels[0]:
                    layer[size] = agent
                    size += 1
            passes += 1
            for back in range(levels[1] + 1, length):
                next_size = 0
                for at in range(size):
                    for i in range(behind_starts[layer[at]], behind_starts[layer[at] + 1]):
                        event = behind[i]
                        if seen[event] == passes:
                            continue
                        seen[event] = passes
                        for j in range(behind_starts[event], behind_starts[event + 1]):
                            agent = behind[j]
                            if distances[0, agent] == length - back and distances[1, agent] == -1:
                                distances[1, agent] = back
                                other[next_size] = agent
                                next_size += 1
                layer, other = other, layer
                size = next_size
            # Forwards: of the agents that lie on a way of this length, the first readable one by name, else all hidden ones.
            loops = _grown(loops, used + length)
            loops[used] = root if readable[root] else HIDDEN
            layer[0] = root
            size = 1
            for step in range(1, length):
                passes += 1
                best = -1
                next_size = 0
                for at in range(size):
                    for i in range(ahead_starts[layer[at]], ahead_starts[layer[at] + 1]):
                        event = ahead[i]
                        if seen[event] == passes:
                            continue
                        seen[event] = passes
                        for j in range(ahead_starts[event], ahead_starts[event + 1]):
                            agent = ahead[j]
                            if distances[1, agent] != length - step or seen[agent] == passes:
                                continue
                            seen[agent] = passes
                            if readable[agent]:
                                if best == -1 or agent < best:
                                    best = agent
                            elif best == -1:
                                other[next_size] = agent
                                next_size += 1
                if best != -1:
                    other[0] = best
                    next_size = 1
                loops[used + step] = best
                layer, other = other, layer
                size = next_size
            used += length
        ends[number] = used
        for side in range(2):
            for at in range(counts[side]):
                distances[0, reached[side, at]] = -1
                distances[1, reached[side, at]] = -1
            for at in range(event_counts[side]):
                pushed[side, events[side, at]] = False
    return lengths, ends, loops[:used].copy()


def shortest_loops(core: Core, readable: Flags, asked: Ints, limits: AuditLimits) -> Found:
    """The shortest loop, and of those the first by name, through each of these agents of the core.

    readable: per agent of the core. An agent whose search would look at more than max_visits incidences is CUT; one that has no
    loop of at most max_length agents is BEYOND.
    """
    found = _search(
        core.ahead.starts,
        core.ahead.values,
        core.behind.starts,
        core.behind.values,
        readable,
        asked,
        limits.max_length,
        limits.max_visits,
    )
    return Found(*found)
