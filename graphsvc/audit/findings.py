"""From numbers to findings. One function for each part, so that parts can be worked on anywhere and put together in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphsvc.audit.dropping import triggers_to_drop
from graphsvc.audit.loops import loop_of, serving_loops
from graphsvc.audit.shortest import BEYOND, CUT, Found
from graphsvc.audit.tenant import Flags, Ints, RowSet
from graphsvc.audit.view import View
from graphsvc.domain.audit import (
    CrossingCompanies,
    EventEnds,
    Finding,
    LoopComponent,
    NearMiss,
    OwnEvent,
    SearchCut,
    ShortestLoop,
    Trigger,
    TriggersToDrop,
    UnfedHearing,
    UnheardEmission,
)
from graphsvc.domain.notices import look_alike


def component_findings(view: View, component: int, found: Found) -> Iterator[Finding]:
    """What there is to say of one component. found: the shortest loops of all agents of `view.searched()`, in that order."""
    agents = range(int(view.core.starts[component]), int(view.core.starts[component + 1]))
    searched = view.searched()
    first, last = (int(np.searchsorted(searched, at)) for at in (agents.start, agents.stop))
    asked = searched[first:last].tolist()
    ways = serving_loops(view, asked, found, first)
    readable = [agent for agent in agents if view.readable_inside[agent]]
    head = LoopComponent(
        agents=view.agents(readable),
        hidden=len(agents) - len(readable),
        events=tuple(_event_ends(view, component)),
        companies=tuple(sorted({view.agent(agent).scope.company or "" for agent in readable} - {""})),
        shortest=loop_of(view, ways[0]) if ways else None,
        beyond=int(np.count_nonzero(found.lengths[first:last] == BEYOND)),
    )
    key, companies = head.fingerprint, head.companies
    yield head
    del head  # all of a component's agents and events: not to be kept while its loops are told
    if len(companies) > 1:
        yield CrossingCompanies(component=key, companies=companies)
    for way in ways:
        yield ShortestLoop(component=key, loop=loop_of(view, way), shortest_for=view.agents(way.shortest_for))
    drops, at_least = triggers_to_drop(view, agents, ways)
    triggers = tuple([Trigger(view.agent(agent), view.event(event)) for agent, event in drops])
    yield TriggersToDrop(component=key, triggers=triggers, at_least=at_least)
    cut = [asked[i] for i in np.flatnonzero(found.lengths[first:last] == CUT)]
    if cut:
        yield SearchCut(component=key, agents=view.agents(cut))


def _event_ends(view: View, component: int) -> Iterator[EventEnds]:
    core = view.core
    first, last = (int(at) for at in np.searchsorted(core.event_component, [component, component + 1]))
    for node in range(len(core.agents) + first, len(core.agents) + last):
        emitters, listeners = core.behind.row(node), core.ahead.row(node)
        sees_emitters, sees_listeners = view.readable_inside[emitters], view.readable_inside[listeners]
        named_emitters, named_listeners = emitters[sees_emitters].tolist(), listeners[sees_listeners].tolist()
        if not _between(named_emitters, named_listeners, len(emitters), len(listeners)):
            continue
        yield EventEnds(
            event=view.event(node),
            emitters=view.agents(named_emitters),
            listeners=view.agents(named_listeners),
            hidden_emitters=bool(named_listeners) and not sees_emitters.all(),
            hidden_listeners=bool(named_emitters) and not sees_listeners.all(),
        )


def _between(emitters: list[int], listeners: list[int], all_emitters: int, all_listeners: int) -> bool:
    """Whether the event leads from a readable agent to another one, or to one from another one. The first two: readable ones."""
    only = emitters[0] if emitters else -1
    if emitters and (len(emitters) > 1 or all_listeners > (only in listeners)):
        return True
    only = listeners[0] if listeners else -1
    return bool(listeners) and (len(listeners) > 1 or all_emitters > (only in emitters))


def own_events(view: View) -> Iterator[Finding]:
    """Agents that hear their own events."""
    tenant = view.tenant
    emits, hears = (rows.numbers.astype(np.int64) * len(tenant.events) + rows.values for rows in (tenant.emits, tenant.hears))
    both = np.intersect1d(emits, hears, assume_unique=True)
    agents = both // max(1, len(tenant.events))
    mine = view.asked[agents]
    both, agents = both[mine] % max(1, len(tenant.events)), agents[mine]
    starts = np.flatnonzero(np.append(True, agents[1:] != agents[:-1])) if len(agents) else np.zeros(0, np.int64)
    for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(agents)], strict=False):
        yield OwnEvent(agent=tenant.agents[agents[first]], events=tuple([tenant.events[e] for e in both[first:last]]))


def _where_nobody(rows: RowSet, ends: RowSet, view: View) -> Iterator[tuple[int, int]]:
    """Agents asked for with those events of their rows that no readable agent has at the other end."""
    count = len(view.tenant.events)
    seen = np.bincount(ends.values[view.readable[ends.numbers]], minlength=count) > 0
    numbers, events = rows.numbers, rows.values
    alone = view.asked[numbers] & ~seen[events]
    yield from zip(numbers[alone].tolist(), events[alone].tolist(), strict=True)


def unheard_events(view: View) -> Iterator[Finding]:
    """Events that no readable agent hears, their emitter included."""
    tenant = view.tenant
    for agent, event in _where_nobody(tenant.emits, tenant.hears, view):
        yield UnheardEmission(agent=tenant.agents[agent], event=tenant.events[event])


def unfed_triggers(view: View) -> Iterator[Finding]:
    """Triggers that no readable agent emits, their listener included."""
    tenant = view.tenant
    for agent, event in _where_nobody(tenant.hears, tenant.emits, view):
        yield UnfedHearing(agent=tenant.agents[agent], event=tenant.events[event])


def near_misses(view: View) -> Iterator[Finding]:
    """Unfed triggers for which another readable agent emits an event of a similar name."""
    tenant = view.tenant
    unfed = list(_where_nobody(tenant.hears, tenant.emits, view))
    wanted: dict[str, list[int]] = {look_alike(tenant.events[event]): [] for _, event in unfed}
    for event in np.unique(tenant.emits.values[view.readable[tenant.emits.numbers]]).tolist():
        alike = wanted.get(look_alike(tenant.events[event]))
        if alike is not None:
            alike.append(event)
    for agent, event in unfed:
        similar = [other for other in wanted[look_alike(tenant.events[event])] if _emitted_elsewhere(view, other, agent)]
        if similar:
            names = tuple([tenant.events[other] for other in similar])
            yield NearMiss(agent=tenant.agents[agent], event=tenant.events[event], similar=names)


def _emitted_elsewhere(view: View, event: int, agent: int) -> bool:
    emitters: Ints = view.tenant.emitted_by.row(event)
    readable: Flags = view.readable[emitters]
    return bool((emitters[readable] != agent).any())


EVENT_FINDINGS = (own_events, unheard_events, unfed_triggers, near_misses)
"""What there is to say beside the components, in order."""
