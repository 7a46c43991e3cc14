"""From the numbers of shortest loops to the few of them that serve every agent, in words and with their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graphsvc.audit.shortest import HIDDEN, Found
from graphsvc.audit.view import View
from graphsvc.domain.redaction import barrier_stops
from graphsvc.domain.report import Hop, Loop

Events = tuple[int, ...]
Steps = list[Events | None]


class Way:
    """A loop in numbers: agents of the core, HIDDEN for hidden ones; events[i] leads from agent i on, None between hidden ones."""

    __slots__ = ("agents", "events", "shortest_for")

    def __init__(self, agents: list[int], events: Steps, shortest_for: list[int]) -> None:
        """The loop is turned so that it begins with its first readable agent by name."""
        at = agents.index(min(agent for agent in agents if agent != HIDDEN))
        self.agents = agents[at:] + agents[:at]
        self.events = events[at:] + events[:at]
        self.shortest_for = shortest_for

    @property
    def order(self) -> tuple[int, list[int]]:
        """By length, then by names, hidden agents last."""
        last = max(self.agents) + 1
        return len(self.agents), [last if agent == HIDDEN else agent for agent in self.agents]


def serving_loops(view: View, asked: Sequence[int], found: Found, first: int) -> list[Way]:
    """Loops such that every agent asked for lies on one that is as short as its shortest, in order of length and names.

    asked[i] has found.lengths[first + i]. The agents take their loops in order of length and name; who lies on one already taken
    and has none shorter needs no other.
    """
    lengths = dict(zip(asked, found.lengths[first : first + len(asked)].tolist(), strict=True))
    place = {agent: first + i for i, agent in enumerate(asked)}
    served: set[int] = set()
    ways = []
    for agent in sorted((agent for agent in asked if lengths[agent] > 0), key=lambda agent: (lengths[agent], agent)):
        if agent in served:
            continue
        end, length = int(found.ends[place[agent]]), lengths[agent]
        around = found.loops[end - length : end].tolist()
        serves = sorted(other for other in around if lengths.get(other) == length and other not in served)
        served.update(serves)
        ways.append(Way(around, hop_events(view, around), serves))
    return sorted(ways, key=lambda way: way.order)


def _shared(view: View, source: int, target: int) -> Events:
    heard = set(view.core.behind.row(target).tolist())
    return tuple([event for event in view.core.ahead.row(source).tolist() if event in heard])


def hop_events(view: View, around: list[int]) -> Steps:
    """The events of each hop of a loop, of which every step is shortest; the first agent is readable.

    Where hidden agents could stand at a place, those are taken whose events come first by name: so nothing but what the auditor
    may read decides.
    """
    if HIDDEN not in around:
        return [_shared(view, source, target) for source, target in zip(around, around[1:] + around[:1], strict=True)]
    layers = _layers(view, around)
    steps: Steps = []
    here = layers[0]
    for ahead in layers[1:]:
        if not _readable(view, here) and not _readable(view, ahead):
            steps.append(None)
            here = _ahead(view, here) & ahead
            continue
        shared = [(_shared(view, source, target), target) for source in sorted(here) for target in sorted(ahead)]
        least = min(events for events, _ in shared if events)
        steps.append(least)
        here = {target for events, target in shared if events == least}
    return steps


def _readable(view: View, agents: Iterable[int]) -> bool:
    return all(view.readable_inside[agent] for agent in agents)


def _layers(view: View, around: list[int]) -> list[set[int]]:
    """The agents that could stand at each place of a redacted loop, the first once more at the end."""
    layers = [{around[0]}]
    for agent in around[1:]:
        layers.append({a for a in _ahead(view, layers[-1]) if not view.readable_inside[a]} if agent == HIDDEN else {agent})
    layers.append({around[0]})
    for at in range(len(layers) - 2, 0, -1):
        layers[at] &= _behind(view, layers[at + 1])
    return layers


def _ahead(view: View, agents: set[int]) -> set[int]:
    events = {event for agent in agents for event in view.core.ahead.row(agent).tolist()}
    return {agent for event in events for agent in view.core.ahead.row(event).tolist()}


def _behind(view: View, agents: set[int]) -> set[int]:
    events = {event for agent in agents for event in view.core.behind.row(agent).tolist()}
    return {agent for event in events for agent in view.core.behind.row(event).tolist()}


def loop_of(view: View, way: Way) -> Loop:
    """The loop in words."""
    agents = way.agents
    return Loop(
        agents=tuple([None if agent == HIDDEN else view.agent(agent) for agent in agents]),
        hops=tuple(_hops(view, way)),
        over_chain_limit=len(agents) > view.limits.chain_limit,
    )


def _hops(view: View, way: Way) -> Iterator[Hop]:
    for source, target, events in zip(way.agents, way.agents[1:] + way.agents[:1], way.events, strict=True):
        names = None if events is None else tuple([view.event(event) for event in events])
        yield Hop(events=names, barrier=events is not None and _is_barrier(view, source, target, events))


def _is_barrier(view: View, source: int, target: int, events: Events) -> bool:
    if HIDDEN in (source, target) or not barrier_stops(view.agent(source).scope, view.agent(target).scope):
        return False
    first = len(view.core.agents)
    number = int(view.core.agents[source])
    return all(view.tenant.is_guarded(number, int(view.core.events[event - first])) for event in events)
