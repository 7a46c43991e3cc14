"""Loop components: which agents lead to each other, and the rows between them alone.

The components are those of the incidence graph (agents and events), cut down to agents: two agents lead to each other there exactly
when they do over edges of agents, and the edges, which may be many more, are never built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import rustworkx

from graphsvc.audit.tenant import Ints, Longs, RowSet, Tenant, rows_from

_EDGES_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What lies in loop components, numbered anew: agents 0 … in order of component and then of name, the events after them.

    agents, events: their numbers in the tenant. starts: component c has the agents starts[c] … starts[c + 1] - 1; the largest
    component comes first, and of equals the one whose first agent does.
    event_component: per event, its component.
    ahead: the events an agent emits and the listeners of an event; behind: the events an agent hears and the emitters of an event.
    """

    agents: Ints
    events: Ints
    starts: Longs
    event_component: Ints
    ahead: RowSet
    behind: RowSet

    @property
    def components(self) -> int:
        """How many components there are."""
        return len(self.starts) - 1


def _incidences(tenant: Tenant) -> tuple[Ints, Ints]:
    """Sources and targets over one sequence of nodes, the events after the agents."""
    first = np.int32(len(tenant.agents))
    sources = np.concatenate([tenant.emits.numbers, tenant.hears.values + first])
    targets = np.concatenate([tenant.emits.values + first, tenant.hears.numbers])
    return sources.astype(np.int32), targets.astype(np.int32)


def strong_components(nodes: int, sources: Ints, targets: Ints) -> list[list[int]]:
    """The sets of at least two nodes 0 … nodes-1 that lead to each other along sources[i] → targets[i], in any order."""
    graph = rustworkx.PyDiGraph(node_count_hint=nodes, edge_count_hint=len(sources))
    graph.add_nodes_from(range(nodes))
    for at in range(0, len(sources), _EDGES_AT_ONCE):
        pairs = zip(sources[at : at + _EDGES_AT_ONCE].tolist(), targets[at : at + _EDGES_AT_ONCE].tolist(), strict=True)
        graph.add_edges_from_no_data(list(pairs))
    return [nodes for nodes in rustworkx.strongly_connected_components(graph) if len(nodes) > 1]


def find_components(tenant: Tenant) -> Core:
    """The loop components: sets of at least two agents that lead to each other."""
    agents = len(tenant.agents)
    nodes = agents + len(tenant.events)
    sources, targets = _incidences(tenant)
    found = []
    for members in strong_components(nodes, sources, targets):
        numbers = np.sort(np.array(members, np.int32))
        size = int(np.searchsorted(numbers, agents))
        if size > 1:
            found.append((-size, numbers[:size], numbers[size:]))
    found.sort(key=lambda component: (component[0], int(component[1][0])))
    return _core(agents, nodes, found, sources, targets)


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def _core(agents: int, nodes: int, found: list[tuple[int, Ints, Ints]], sources: Ints, targets: Ints) -> Core:
    component_of = np.full(nodes, -1, np.int32)
    for number, (_, inner_agents, inner_events) in enumerate(found):
        component_of[inner_agents] = number
        component_of[inner_events] = number
    members = _joined([inner for _, inner, _ in found])
    events = _joined([inner for _, _, inner in found])
    number_of = np.full(nodes, -1, np.int32)
    number_of[members] = np.arange(len(members), dtype=np.int32)
    number_of[events] = len(members) + np.arange(len(events), dtype=np.int32)
    inside = (component_of[sources] >= 0) & (component_of[sources] == component_of[targets])
    sources, targets = number_of[sources[inside]], number_of[targets[inside]]
    count = len(members) + len(events)
    return Core(
        agents=members,
        events=events - np.int32(agents),
        starts=np.append(0, np.cumsum([len(inner) for _, inner, _ in found])).astype(np.int64),
        event_component=component_of[events],
        ahead=rows_from(sources, targets, count),
        behind=rows_from(targets, sources, count),
    )
