"""What can be said of speed without a clock: how much is looked at, what is never made, and how much memory is held."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest

from graphsvc.audit.local import audit
from graphsvc.columns import Columns, columns_of, in_columns
from graphsvc.declarations import parquet_columns
from graphsvc.declarations.bulk import Given, read_columns
from graphsvc.declarations.files import write_file
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.limits import Limits
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.graph import Graph
from graphsvc.judge import judge
from graphsvc.kernels import jit
from graphsvc.kernels.nodes import EVENT

AGENTS = 100_000


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("catalogue") / "tenant.parquet"
    write_file(str(path), generate(Shape.TENANT, AGENTS, 1).versions())
    graph = Graph()
    graph.load(read_columns([str(path)]))
    return graph


@pytest.mark.promise("O-12")
def test_a_graph_weighs_no_more_than_was_promised(graph: Graph) -> None:
    held = {name: array.nbytes for name, array in graph.state().arrays.items()}
    nodes = graph.rows.nodes
    events = int((graph.state().arrays["agent"] == EVENT).sum())
    node = held["ahead_heads"] + held["behind_heads"] + held["agent"] + held["numbers"]
    agent = sum(held[name] for name in ("scope", "node", "current", "last", "place", "sorted", "late"))
    names = sum(held[name] for name in ("start", "slots", "look", "look_slots"))
    assert events == nodes - AGENTS
    assert (held["ahead_data"] + held["behind_data"]) / graph.rows.incidences <= 24
    assert node / nodes <= 32
    assert node / nodes + agent / AGENTS <= 96
    assert names / nodes <= 24
    assert held.keys() - {"key", "counts", "incidences", "text"} == {
        *("ahead_heads", "behind_heads", "agent", "numbers", "scope", "node", "current", "last", "place", "sorted", "late"),
        *("start", "slots", "look", "look_slots", "ahead_data", "behind_data"),
    }


@pytest.mark.promise("O-12")
@pytest.mark.parametrize("agents", [300, 3_333, 10_000])
def test_names_of_a_small_graph_weigh_no_more_than_those_of_a_large_one(agents: int) -> None:
    graph = Graph()
    graph.load([columns_of(list(generate(Shape.TENANT, agents, 1).versions()))])
    names = sum(graph.state().arrays[name].nbytes for name in ("start", "slots", "look", "look_slots"))
    assert names / graph.rows.nodes <= 24


@pytest.mark.promise("O-12")
def test_growing_arrays_have_half_as_much_room_again_at_most(graph: Graph) -> None:
    heads, data, used = graph.rows.ahead
    for array, most in ((heads, graph.rows.nodes), (graph._nodes.arrays.agent, graph.rows.nodes), (data, int(used[0]))):
        assert most <= len(array) <= 1.5 * most + 256


@pytest.mark.promise("O-12")
def test_plain_rows_of_parquet_never_become_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "made.parquet")
    made = list(generate(Shape.TENANT, 5_000, 2).versions())
    write_file(path, made)

    def refuse(*_: object) -> None:
        raise AssertionError("a row was judged as an object")

    monkeypatch.setattr(parquet_columns, "version_from", refuse)
    assert [version for part in read_columns([path]) for version in part.versions()] == made


@pytest.mark.promise("O-12", "O-9")
def test_an_audit_of_plain_rows_makes_an_object_of_what_it_tells_and_of_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "made.parquet")
    made = list(generate(Shape.PIPELINES, 3_000, 2).versions())
    write_file(path, made)
    wanted = [finding.as_json() for finding in audit(in_columns(made), EVERYTHING)]

    def refuse(*_: object) -> None:
        raise AssertionError("a row was judged as an object")

    monkeypatch.setattr(parquet_columns, "version_from", refuse)
    monkeypatch.setattr(Columns, "versions", refuse)
    given = Given([path])
    assert [finding.as_json() for finding in audit(read_columns([path], given), EVERYTHING)] == wanted
    assert given.of(made[7].agent) == (path, None)


@pytest.mark.promise("O-12")
def test_ten_loops_in_a_giant_component_are_found_by_looking_at_a_small_part_of_it() -> None:
    graph = Graph()
    graph.load([columns_of(list(generate(Shape.GIANT, 20_000, 1).versions()))])
    visits = []
    for node, number in random.Random(1).sample(graph.agents(), 50):
        version = graph.version_at(node, number)
        assert version is not None
        report = judge(graph, version.agent, version.declaration, EVERYTHING, Limits(max_loops=10), jit.search, 1)
        if len(report.loops) == 10:
            visits.append(report.visits or 0)
    assert len(visits) > 25
    # Breadth-first search over the whole component looks at all of it for each of the ten.
    assert statistics.median(visits) < graph.rows.incidences / 10
