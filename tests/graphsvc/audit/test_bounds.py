from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.audit.bounds import least_lengths
from graphsvc.audit.components import find_components
from graphsvc.audit.tenant import read_tenant
from graphsvc.columns import in_columns
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import AgentRef, Scope

EDGES = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda edge: edge[0] != edge[1]), min_size=2, max_size=30)


def versions(edges: set[tuple[int, int]]) -> list[AgentVersion]:
    """An event for each agent, heard by all that its edges lead to."""
    heard: dict[int, list[str]] = {node: [] for edge in edges for node in edge}
    for source, target in edges:
        heard[target].append(f"e{source}")
    return [AgentVersion(AgentRef(Scope(), f"a{node}"), 1, declare([f"e{node}"], sorted(heard[node]))) for node in sorted(heard)]


def layered(layers: int, width: int) -> set[tuple[int, int]]:
    """Every agent of a layer leads to two of the next, and the last layer to the first."""
    return {
        (layer * width + i, (layer + 1) % layers * width + j % width)
        for layer in range(layers)
        for i in range(width)
        for j in (i, i + 1)
    }


@pytest.mark.promise("O-9")
@given(EDGES, st.integers(1, 3), st.sets(st.integers(0, 9)))
def test_no_shortest_loop_is_shorter_than_what_was_proven(edges, max_length, hidden):
    tenant = read_tenant(in_columns(versions(edges)))
    core = find_components(tenant)
    names = [tenant.agents[number].name for number in core.agents.tolist()]
    readable = np.array([int(name[1:]) not in hidden for name in names], np.bool_)
    graph = nx.DiGraph(edges)
    for name, least in zip(names, least_lengths(core, readable, max_length).tolist(), strict=True):
        agent = int(name[1:])
        around = [
            nx.shortest_path_length(graph, other, agent) for other in graph.successors(agent) if nx.has_path(graph, other, agent)
        ]
        assert least <= min(around) + 1


@pytest.mark.promise("O-9")
def test_nearly_no_agent_of_many_layers_needs_a_search():
    core = find_components(read_tenant(in_columns(versions(layered(200, 5)))))
    least = least_lengths(core, np.ones(len(core.agents), np.bool_), 64)
    assert len(least) == 1_000
    assert np.count_nonzero(least <= 64) == 0
    assert least.max() <= 200
