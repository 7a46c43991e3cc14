"""Audits of real catalogues and of a large real graph."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
import rustworkx

from graphsvc.audit.components import find_components
from graphsvc.audit.local import audit
from graphsvc.audit.tenant import read_tenant
from graphsvc.columns import in_columns
from graphsvc.declarations.files import read_files
from graphsvc.domain.audit import Finding, LoopComponent, Progress, ShortestLoop, TriggersToDrop
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.redaction import EVERYTHING
from tests.catalogues import CATALOGUES
from tests.data.test_graphs import read_edges, ref

EPINIONS = "soc-Epinions1.edges.gz"


@pytest.mark.promise("O-9")
def test_the_components_of_a_large_real_graph_are_those_of_its_edges(shared_data: Path) -> None:
    path = shared_data / "graphs" / EPINIONS
    declared = read_edges(path)
    graph = rustworkx.PyDiGraph()
    numbers = {vertex: graph.add_node(vertex) for vertex in declared}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        graph.add_edges_from_no_data([(numbers[source], numbers[target]) for source, target in map(str.split, lines)])
    wanted = {frozenset(map(graph.get_node_data, members)) for members in rustworkx.strongly_connected_components(graph)}
    told: list[Progress] = []
    findings: list[Finding] = list(
        audit(in_columns(AgentVersion(ref(vertex), 1, each) for vertex, each in declared.items()), EVERYTHING, tell=told.append)
    )
    components = [finding for finding in findings if isinstance(finding, LoopComponent)]
    assert {frozenset(one.name for one in component.agents) for component in components} == {c for c in wanted if len(c) > 1}
    # Every agent of a component lies on a loop that is listed for it, and no search was cut short.
    served = Counter(one for finding in findings if isinstance(finding, ShortestLoop) for one in finding.shortest_for)
    assert served == Counter(one for component in components for one in component.agents)
    assert {progress.step for progress in told} >= {"reading agents", "searching loops", "describing loops"}
    for drops in (finding for finding in findings if isinstance(finding, TriggersToDrop)):
        assert 1 <= drops.at_least <= len(drops.triggers)


@pytest.mark.promise("O-9")
@pytest.mark.parametrize("name", CATALOGUES)
def test_dropping_what_an_audit_says_leaves_a_real_catalogue_without_loops(name: str, shared_data: Path) -> None:
    path = str(shared_data / "declarations" / f"{name}.jsonl")
    versions = list(read_files([path]))
    dropped = {
        (trigger.agent, trigger.event)
        for finding in audit(in_columns(versions), EVERYTHING)
        if isinstance(finding, TriggersToDrop)
        for trigger in finding.triggers
    }
    left = [_without(version, {event for agent, event in dropped if agent == version.agent}) for version in versions]
    assert find_components(read_tenant(in_columns(left))).components == 0
    assert bool(dropped) is (find_components(read_tenant(in_columns(versions))).components > 0)


def _without(version: AgentVersion, triggers: set[str]) -> AgentVersion:
    declaration = version.declaration
    listens = tuple(event for event in declaration.listens if event not in triggers)
    return AgentVersion(version.agent, version.number, type(declaration)(declaration.emits, listens))
