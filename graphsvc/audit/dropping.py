"""Which triggers to drop so that a component has no loop through a readable agent left.

A component is without loops when its agents can be put in an order in which every trigger left is emitted only by agents that come
before. So an order says what to drop, and the smallest sets are found over orders: all of them, by the sets that can stand in front
(after Held and Karp), where there are few agents, else one good order, after Eades, Lin and Smyth.

Hidden agents keep their triggers, as the auditor could not name them. Those that lead to each other through hidden agents alone
stand in one place of the order, so that loops among them do not count.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphsvc.audit.components import strong_components
from graphsvc.audit.loops import Way
from graphsvc.audit.shortest import HIDDEN
from graphsvc.audit.view import View

EXACT_UNITS = 12
"""Up to so many agents, a smallest set is always found: 2¹² sets that can stand in front are quick to go through."""

Drop = tuple[int, int]
"""A trigger as the numbers of its agent and its event in the core."""


@dataclass(frozen=True, slots=True)
class _Units:
    """What is put in order: readable agents, and groups of hidden ones. Sets of event nodes, by unit; agent is None for a group."""

    agent: list[int | None]
    emits: list[frozenset[int]]
    hears: list[frozenset[int]]

    def emitters(self) -> dict[int, list[int]]:
        return _by_event(self.emits)

    def listeners(self) -> dict[int, list[int]]:
        return _by_event(self.hears)


def _by_event(rows: Sequence[Iterable[int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for unit, events in enumerate(rows):
        for event in events:
            found.setdefault(event, []).append(unit)
    return found


def _hidden_groups(view: View, hidden: list[int]) -> list[list[int]]:
    """The hidden agents, those together that lead to each other through hidden agents alone."""
    numbers = {agent: i for i, agent in enumerate(hidden)}
    nodes: dict[int, int] = {}
    sources, targets = [], []
    for agent, i in numbers.items():
        for event in view.core.ahead.row(agent).tolist():
            sources.append(i)
            targets.append(nodes.setdefault(event, len(hidden) + len(nodes)))
        for event in view.core.behind.row(agent).tolist():
            sources.append(nodes.setdefault(event, len(hidden) + len(nodes)))
            targets.append(i)
    found = strong_components(len(hidden) + len(nodes), np.array(sources, np.int32), np.array(targets, np.int32))
    groups = [[hidden[i] for i in members if i < len(hidden)] for members in found]
    grouped = {agent for group in groups for agent in group}
    return [*groups, *([agent] for agent in hidden if agent not in grouped)]


def _units(view: View, agents: range) -> _Units:
    readable = [agent for agent in agents if view.readable_inside[agent]]
    hidden = [agent for agent in agents if not view.readable_inside[agent]]
    groups = [[agent] for agent in readable] + (_hidden_groups(view, hidden) if hidden else [])
    rows = view.core.ahead, view.core.behind
    emits, hears = ([frozenset(e for a in group for e in row.row(a).tolist()) for group in groups] for row in rows)
    return _Units([*readable, *[None] * (len(groups) - len(readable))], emits, hears)


def triggers_to_drop(view: View, agents: range, ways: Sequence[Way]) -> tuple[list[Drop], int]:
    """Triggers to drop, by agent, then event; and the least number that any set must have.

    agents: those of the component. ways: shortest loops in it, which say how few cannot do where the set is not proved smallest.
    """
    units = _units(view, agents)
    if len(units.agent) <= EXACT_UNITS:
        drops = _smallest(units)
        return drops, len(drops)
    drops = sorted(_good(units))
    return drops, min(len(drops), max(1, _disjoint(ways)))


def _smallest(units: _Units) -> list[Drop]:
    """The first of the smallest sets, found over all sets of units that can stand in front of the rest."""
    emitters = units.emitters()
    triggers = [
        (agent, event)
        for unit, agent in enumerate(units.agent)
        if agent is not None
        for event in sorted(units.hears[unit])
        if set(emitters.get(event, ())) - {unit}
    ]
    # A trigger weighs so much that fewer always weigh less, and that of as many the first by name do.
    whole = 1 << len(triggers)
    weight = {trigger: whole - (whole >> (i + 1)) for i, trigger in enumerate(triggers)}
    never = whole * (len(triggers) + 1)
    needs: list[list[tuple[int, int]]] = []
    for unit, agent in enumerate(units.agent):
        others = {event: [other for other in emitters.get(event, ()) if other != unit] for event in units.hears[unit]}
        needs.append(
            [
                (sum(1 << other for other in before), never if agent is None else weight[agent, event])
                for event, before in others.items()
                if before
            ]
        )
    best = [0] + [never * (len(units.agent) + 1)] * ((1 << len(units.agent)) - 1)
    for front, so_far in enumerate(best):
        for unit, need in enumerate(needs):
            if front >> unit & 1:
                continue
            cost = so_far + sum(weighs for before, weighs in need if before & ~front)
            if cost < best[front | 1 << unit]:
                best[front | 1 << unit] = cost
    # The total is count * whole less the sum of whole >> (i + 1) over the triggers in it.
    total = best[-1]
    taken = -total % whole
    return [trigger for i, trigger in enumerate(triggers) if taken & (whole >> (i + 1))]


class _Side:
    """For one direction: how many live units each event has at this end, and how many events each unit still needs there."""

    def __init__(self, near: Sequence[frozenset[int]], far: Sequence[frozenset[int]]) -> None:
        """near: the events by which units depend on this end. far: the events by which units are at this end."""
        self._near, self._far = near, far
        self._units_at, self._depending = _by_event(far), _by_event(near)
        self.left = Counter({event: len(units) for event, units in self._units_at.items()})
        self.open = [sum(self.left[event] > (event in far[unit]) for event in events) for unit, events in enumerate(near)]

    def is_open(self, unit: int, event: int) -> bool:
        """Whether another live unit is at this end of the unit's event."""
        return self.left[event] > (event in self._far[unit])

    def remove(self, unit: int, alive: Sequence[bool]) -> Iterator[int]:
        """Take a unit, which is not alive any more, from this end; yields the units whose count of open events fell."""
        for event in self._far[unit]:
            self.left[event] -= 1
            if self.left[event] == 1:
                closed = [u for u in self._units_at[event] if alive[u] and event in self._near[u]]
            elif self.left[event] == 0:
                closed = [u for u in self._depending.get(event, ()) if alive[u] and event not in self._far[u]]
            else:
                continue
            for other in closed:
                self.open[other] -= 1
                yield other


def _good(units: _Units) -> list[Drop]:
    """What one good order drops: whoever nobody left feeds comes first, whoever feeds nobody left last, and where there is neither,
    the readable agent comes next that feeds the most others for the fewest triggers dropped, the first by name among equals.

    Hidden units are only ever placed where every order would place them, so that nothing about them decides.
    """
    alive = [True] * len(units.agent)
    before, behind = _Side(units.hears, units.emits), _Side(units.emits, units.hears)
    free = [unit for unit in range(len(alive)) if not before.open[unit] or not behind.open[unit]]
    waiting = [(before.open[u] - behind.open[u], u) for u, agent in enumerate(units.agent) if agent is not None]
    heapq.heapify(waiting)
    drops: list[Drop] = []
    while True:
        while free:
            _place(free.pop(), units, alive, before, behind, free, waiting)
        while waiting:
            score, unit = heapq.heappop(waiting)
            if alive[unit] and score == before.open[unit] - behind.open[unit]:
                break
        else:
            return drops
        agent = units.agent[unit]
        assert agent is not None
        drops += [(agent, event) for event in units.hears[unit] if before.is_open(unit, event)]
        free.append(unit)


def _place(
    unit: int,
    units: _Units,
    alive: list[bool],
    before: _Side,
    behind: _Side,
    free: list[int],
    waiting: list[tuple[int, int]],
) -> None:
    if not alive[unit]:
        return
    alive[unit] = False
    changed = {*before.remove(unit, alive), *behind.remove(unit, alive)}
    for other in changed:
        if not before.open[other] or not behind.open[other]:
            free.append(other)
        elif units.agent[other] is not None:
            heapq.heappush(waiting, (before.open[other] - behind.open[other], other))


def _disjoint(ways: Sequence[Way]) -> int:
    """How many triggers loops that have no trigger in common cost at least: each loses a hop, and a hop all its events."""
    used: set[Drop] = set()
    least = 0
    for way in ways:
        if HIDDEN in way.agents:
            continue
        targets = way.agents[1:] + way.agents[:1]
        triggers = {(target, event) for target, events in zip(targets, way.events, strict=True) for event in events or ()}
        if used.isdisjoint(triggers):
            used |= triggers
            least += min(len(events or ()) for events in way.events)
    return least
