"""Real graphs with figures that others published or found: a vertex is an agent with one event, heard by all its edges lead to."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from graphsvc.domain.limits import Limits
from graphsvc.domain.model import Declaration, Emit, EntryKind, LogEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.graph import Graph, Kernel
from tests.graphsvc.folding import KERNELS

PLAIN = ("celegansneural", "polblogs", "python311-stdlib-imports")
"""The graphs on which the plain kernel is quick enough for a test."""
ALL = (
    *PLAIN,
    "bitcoin-alpha",
    "email-Eu-core",
    "p2p-Gnutella04",
    "p2p-Gnutella08",
    "p2p-Gnutella24",
    "p2p-Gnutella31",
    "soc-Epinions1",
    "wiki-Vote",
)
FEW_LOOPS = 700
"""Where a vertex has more loops of length 2 and 3, only its shortest one is looked for."""
FEW_PATHS = 1_000
VISITS = 100_000_000

Graphs = dict[str, Declaration]


def read_edges(path: Path) -> Graphs:
    heard: defaultdict[str, set[str]] = defaultdict(set)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for source, target in (line.split() for line in lines):
            heard[target].add(source)
            heard[source].update()
    # Made directly: some vertices have more edges than a declaration may have events.
    return {vertex: Declaration((Emit(vertex),), tuple(sorted(events))) for vertex, events in heard.items()}


def ref(vertex: str) -> AgentRef:
    return AgentRef(Scope("graph"), vertex)


def fold(declared: Graphs) -> Graph:
    graph = Graph()
    versions = enumerate(declared.items(), start=1)
    graph.apply([LogEntry(revision, EntryKind.PUBLISH, ref(vertex), 1, each) for revision, (vertex, each) in versions])
    return graph


def lengths(graph: Graph, vertex: str, declared: Declaration, kernel: Kernel, max_loops: int) -> list[int]:
    """The lengths of the first loops through a vertex."""
    limits = Limits(max_loops=max_loops, max_visits=VISITS)
    return [len(loop) for loop in graph.search(ref(vertex), declared, EVERYTHING, limits, kernel).loops]


def answers(shared_data: Path, file: str) -> Any:
    return json.loads((shared_data / "answers" / file).read_text(encoding="utf-8"))


def edges_of(shared_data: Path, name: str) -> Path:
    (path,) = (shared_data / "graphs").glob(f"{name}.edges*")
    return path


def test_every_real_graph_has_its_test(shared_data: Path) -> None:
    assert answers(shared_data, "graphs.json").keys() == set(ALL)
    assert {path.name.partition(".")[0] for path in (shared_data / "graphs").iterdir()} == set(ALL)


@pytest.mark.promise("G-1", "G-2", "G-5")
@pytest.mark.parametrize(("name", "kernel"), [(name, "jit") for name in ALL] + [(name, "reference") for name in PLAIN])
def test_the_shortest_loop_and_the_number_of_short_ones_are_what_others_found(name: str, kernel: str, shared_data: Path) -> None:
    declared = read_edges(edges_of(shared_data, name))
    graph = fold(declared)
    counted = 0
    for vertex, shortest, own, of_two, of_three in answers(shared_data, "graphs.json")[name]["rows"]:
        assert own == (vertex in declared[vertex].listens)
        few = of_two + of_three <= FEW_LOOPS
        found = lengths(graph, vertex, declared[vertex], KERNELS[kernel], of_two + of_three + 1 if few else 1)
        # A loop of its own is told by the declaration alone and does not come from the search.
        if shortest != 1:
            assert found[:1] == ([shortest] if shortest else []), vertex
        if few:
            number = Counter(found)
            assert (number[2], number[3]) == (of_two, of_three), vertex
            assert found == sorted(found)
            counted += 1
    assert counted > 30


@pytest.mark.promise("G-2", "G-3")
def test_paths_of_at_most_four_hops_between_two_vertices_are_as_many_as_was_published(shared_data: Path) -> None:
    """A version of the first vertex that hears the last one alone closes a loop for each path between the two."""
    published = answers(shared_data, "epinions-4-hop-paths.json")
    declared = read_edges(edges_of(shared_data, published["graph"]))
    graph = fold(declared)
    rows = [row for row in published["rows"] if row["paths"] <= FEW_PATHS]
    assert len(rows) > 15
    for row in rows:
        first, last = str(row["s"]), str(row["t"])
        proposed = Declaration(declared[first].emits, (last,))
        found = lengths(graph, first, proposed, KERNELS["jit"], row["paths"] + 1)
        assert len(list(takewhile(lambda length: length <= published["k"] + 1, found))) == row["paths"], row
