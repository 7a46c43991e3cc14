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
def _follow_back(behind_starts, behind, distances, reached, levels, length, layers, seen, passes):
    """On from where the two sides met, back towards the root inside what the forward side reached, telling the way to the root."""
    size = 0
    for agent in reached:
        if distances[1, agent] == levels[1] and distances[0, agent] == levels[0]:
            layers[0, size] = agent
            size += 1
    now = 0
    for back in range(levels[1] + 1, length):
        next_size = 0
        for at in range(size):
            agent = layers[now, at]
            for i in range(behind_starts[agent], behind_starts[agent + 1]):
                event = behind[i]
                if seen[event] == passes:
                    continue
                seen[event] = passes
                for j in range(behind_starts[event], behind_starts[event + 1]):
                    emitter = behind[j]
                    if distances[0, emitter] == length - back and distances[1, emitter] == -1:
                        distances[1, emitter] = back
                        layers[1 - now, next_size] = emitter
                        next_size += 1
        now = 1 - now
        size = next_size


@numba.njit(cache=True, nogil=True)
def _step_ahead(ahead_starts, ahead, distances, distance, readable, layer, next_layer, seen, passes):
    """Of the agents next to a layer that are this far from the root: the first readable one by name, else all hidden ones. Returns
    how many stand in the next layer, and the readable one or HIDDEN."""
    best = HIDDEN
    size = 0
    for agent in layer:
        for i in range(ahead_starts[agent], ahead_starts[agent + 1]):
            event = ahead[i]
            if seen[event] == passes:
                continue
            seen[event] = passes
            for j in range(ahead_starts[event], ahead_starts[event + 1]):
                listener = ahead[j]
                if distances[listener] != distance or seen[listener] == passes:
                    continue
                seen[listener] = passes
                if readable[listener]:
                    if best == HIDDEN or listener < best:
                        best = listener
                elif best == HIDDEN:
                    next_layer[size] = listener
                    size += 1
    if best == HIDDEN:
        return size, best
    next_layer[0] = best
    return 1, best


@numba.njit(cache=True, nogil=True)
def _search(ahead_starts, ahead, behind_starts, behind, readable, least, asked, max_length, max_visits):
    nodes = ahead_starts.size - 1
    agents = readable.size
    distances = np.full((2, nodes), -1, np.int32)  # of agents: how far from the root (0), how far to it (1)
    pushed = np.zeros((2, nodes), np.bool_)  # events that a side has in one of its levels
    reached = np.empty((2, agents), np.int32)
    events = np.empty((2, nodes - agents), np.int32)
    layers = np.empty((2, agents), np.int32)
    seen = np.zeros(nodes, np.int64)  # the last pass that looked at this node
    passes = 0
    lengths = np.zeros(asked.size, np.int32)
    ends = np.zeros(asked.size, np.int64)
    loops = np.empty(256, np.int32)
    used = 0
    for number in range(asked.size):
        root = asked[number]
        if least[root] > max_length:
            lengths[number], ends[number] = BEYOND, used
            continue
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
            # Each side goes once at first: from then on, every loop of up to both sides' levels together has been met.
            turn = levels[0] if levels[0] == 0 or levels[1] == 0 else np.int64(costs[1] < costs[0])
            if levels[0] + levels[1] + 1 > max_length:
                length = BEYOND
                break
            if visits + costs[turn] > max_visits:
                length = CUT
                break
            visits += costs[turn]
            costs[turn] = 0
            starts, values = (ahead_starts, ahead) if turn == 0 else (behind_starts, behind)
            levels[turn] += 1
            first, last = event_done[turn], event_counts[turn]
            event_done[turn] = last
            for at in range(first, last):
                event = events[turn, at]
                for i in range(starts[event], starts[event + 1]):
                    agent = values[i]
                    if distances[turn, agent] == -1:
                        if distances[1 - turn, agent] != -1:
                            length = levels[0] + levels[1]
                        counts[turn], event_counts[turn], read, cost = _reach(
                            agent,
                            levels[turn],
                            distances[turn],
                            reached[turn],
                            counts[turn],
                            starts,
                            values,
                            pushed[turn],
                            events[turn],
                            event_counts[turn],
                        )
                        visits += read
                        costs[turn] += cost
        lengths[number] = length
        if length > 0:
            loops = _grown(loops, used + length)
            loops[used] = root if readable[root] else HIDDEN
            passes += 1
            _follow_back(behind_starts, behind, distances, reached[1, : counts[1]], levels, length, layers, seen, passes)
            layers[0, 0] = root
            size = 1
            for step in range(1, length):
                passes += 1
                size, best = _step_ahead(
                    ahead_starts,
                    ahead,
                    distances[1],
                    length - step,
                    readable,
                    layers[(step - 1) % 2, :size],
                    layers[step % 2],
                    seen,
                    passes,
                )
                loops[used + step] = best
            used += length
        ends[number] = used
        for side in range(2):
            for at in range(counts[side]):
                distances[0, reached[side, at]] = -1
                distances[1, reached[side, at]] = -1
            for at in range(event_counts[side]):
                pushed[side, events[side, at]] = False
    return lengths, ends, loops[:used].copy()


def shortest_loops(core: Core, readable: Flags, least: Ints, asked: Ints, limits: AuditLimits) -> Found:
    """The shortest loop, and of those the first by name, through each of these agents of the core.

    readable: per agent of the core; least: how many agents its shortest loop has at least. An agent whose search would look at more
    than max_visits incidences is CUT; one that has no loop of at most max_length agents is BEYOND.
    """
    found = _search(
        core.ahead.starts,
        core.ahead.values,
        core.behind.starts,
        core.behind.values,
        readable,
        least,
        asked,
        limits.max_length,
        limits.max_visits,
    )
    return Found(*found)
