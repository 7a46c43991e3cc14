from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.columns import columns_of, joined
from graphsvc.declarations.bulk import read_columns
from graphsvc.declarations.files import read_files, write_file
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, EntryKind, LogEntry
from graphsvc.domain.names import Scope
from graphsvc.domain.redaction import EVERYTHING, reader_of
from graphsvc.graph import Graph
from graphsvc.judge import judge
from graphsvc.kernels import reference
from tests.graphsvc.declarations.worlds import versions

LONG = "n" * 257
SOUND = st.sampled_from(["a", "b", "c", "é", "ab", "a b", "#", "ק", "a/b", "n" * 256])
HOSTILE = st.sampled_from(
    ["", " a", "a ", "e\u0301", "a\u202eb", "\u0085", "a\tb", LONG, "é" * 129, "*", "a:b", "\x7f", "\ud7ff", "\u0378"]
)
EMIT = pa.struct([("event", pa.string()), ("context", pa.string()), ("artifacts", pa.list_(pa.string()))])
KINDS = {
    "company": [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    "area": [pa.string(), pa.string_view()],
    "emits": [pa.list_(EMIT), pa.list_(pa.string()), pa.list_(pa.struct([("context", pa.string())]))],
    "listens": [pa.list_(pa.string()), pa.large_list(pa.large_string())],
    "version": [pa.int64()],
}


def _sound(kind: pa.DataType) -> dict[str, st.SearchStrategy[object]]:
    names = st.lists(SOUND, max_size=4, unique=True)
    contract = st.fixed_dictionaries({"event": SOUND, "context": st.none() | SOUND, "artifacts": st.none() | names})
    events = names if kind == pa.string() else st.lists(contract, max_size=4, unique_by=lambda each: each["event"])
    company = st.none() if kind != EMIT else st.sampled_from(["a", "b", "acme"])
    version = st.none() | st.sampled_from([1, 2, 2**31 - 1])
    return {"agent": SOUND, "company": company, "area": st.none(), "emits": events, "listens": names, "version": version}


def _any(kind: pa.DataType) -> dict[str, st.SearchStrategy[object]]:
    name = st.one_of(SOUND, SOUND, SOUND, HOSTILE)
    names = st.lists(name | st.none(), max_size=4)
    contract = {"event": name | st.none(), "context": st.none() | name, "artifacts": st.none() | names}
    each = name | st.none() if kind == pa.string() else st.none() | st.fixed_dictionaries(contract)
    version = st.none() | st.sampled_from([1, 2, 0, -1, 2**31 - 1, 2**31])
    events = st.none() | st.lists(each, max_size=4)
    scope = st.none() | name
    return {
        "agent": name | st.none(),
        "company": scope,
        "area": scope,
        "emits": events,
        "listens": st.none() | names,
        "version": version,
    }


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of declarations; in half of them all rows are right but for agents given twice."""
    rows = draw(st.integers(min_value=0, max_value=8))
    kinds = {name: draw(st.sampled_from(choices)) for name, choices in KINDS.items()}
    values = draw(st.sampled_from([_sound, _any]))(kinds["emits"].value_type)
    columns = {
        "agent": pa.array(draw(st.lists(values["agent"], min_size=rows, max_size=rows, unique=draw(st.booleans()))), pa.string())
    }
    for name, kind in kinds.items():
        if draw(st.integers(min_value=0, max_value=3)):
            columns[name] = pa.array(draw(st.lists(values[name], min_size=rows, max_size=rows)), kind)
    return pa.table(columns)


def by_objects(paths: Sequence[str]) -> list[AgentVersion] | list[str]:
    try:
        return list(read_files(paths))
    except InvalidInput as error:
        return [str(violation) for violation in error.violations]


def by_columns(paths: Sequence[str]) -> list[AgentVersion] | list[str]:
    try:
        return [version for part in read_columns(paths) for version in part.versions()]
    except InvalidInput as error:
        return [str(violation) for violation in error.violations]


def graphs(found: Sequence[AgentVersion], paths: Sequence[str]) -> tuple[Graph, Graph]:
    """The graph of objects, and that of columns."""
    one, other = Graph(), Graph()
    one.apply(LogEntry(at, EntryKind.PUBLISH, each.agent, each.number or 1, each.declaration) for at, each in enumerate(found, 1))
    other.load(read_columns(paths))
    return one, other


def held(graph: Graph) -> list[np.ndarray]:
    """All that a graph holds in arrays, but for hashes, made with a key of its own, and slack, which holds anything."""
    arrays = graph.state().arrays
    kept = [arrays[name] for name in sorted(arrays.keys() - {"key", "slots", "look", "look_slots", "ahead_data", "behind_data"})]
    return [*kept, *(table.row(node) for table in (graph.rows.ahead, graph.rows.behind) for node in range(graph.rows.nodes))]


def reports(graph: Graph) -> list[str]:
    """The digests of what every agent's own version would close, for two readers."""
    return [
        judge(graph, version.agent, version.declaration, reader, Limits(max_loops=50), reference.search, graph.revision).digest
        for reader in (EVERYTHING, reader_of([Scope("acme"), Scope("a")]))
        for version in graph.versions()
    ]


@pytest.mark.promise("O-3", "G-24")
@given(st.lists(tables(), min_size=1, max_size=2), st.booleans())
def test_columns_give_the_graph_and_the_refusals_that_objects_give(found, with_lines):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{number}.parquet") for number in range(len(found))]
        for path, table in zip(paths, found, strict=True):
            pq.write_table(table, path, row_group_size=3)
        if with_lines:
            paths.insert(1, str(Path(folder) / "lines.jsonl"))
            lines = [{"agent": "a"}, {"agent": "", "emits": ["x", "x"]}, {"agent": "a"}, {"agent": "zz", "emits": ["a"]}]
            Path(paths[1]).write_text("\n".join(map(json.dumps, lines[:: 1 + len(found[0]) % 2])), encoding="utf-8")
        objects = by_objects(paths)
        assert by_columns(paths) == objects
        if objects and isinstance(objects[0], AgentVersion):
            one, other = graphs(objects, paths)
            assert one.versions() == other.versions()
            assert one.revision == other.revision
            assert reports(one) == reports(other)


@pytest.mark.promise("O-3")
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
@pytest.mark.parametrize("shape", [Shape.TENANT, Shape.HUBS])
def test_a_catalogue_of_many_batches_is_the_same_graph_to_the_last_number(shape, ending, tmp_path):
    path = str(tmp_path / f"made.{ending}")
    made = list(generate(shape, 10_000, 5).versions())
    write_file(path, made)
    one, other = Graph(), Graph()
    # Nodes are numbered batch by batch, agents before events, so batches of one size make graphs that are alike in every number.
    one.load(columns_of(made[at : at + 4_096]) for at in range(0, len(made), 4_096))
    other.load(read_columns([path]))
    numbered = [AgentVersion(version.agent, 1, version.declaration) for version in made]
    assert one.versions() == other.versions() == sorted(numbered, key=lambda version: version.agent.order)
    assert one.state().meta == other.state().meta
    assert all(np.array_equal(*pair) for pair in zip(held(one), held(other), strict=True))


@pytest.mark.promise("G-24")
def test_a_declaration_of_too_many_events_is_refused_alike(tmp_path):
    path = str(tmp_path / "many.parquet")
    events = [f"e{number}" for number in range(1_001)]
    pq.write_table(
        pa.table({"agent": ["a", "b", "c"], "emits": [events, events[:500], ["x"]], "listens": [[], events[:501], ["x", "x"]]}),
        path,
    )
    refused = by_columns([path])
    assert refused == by_objects([path])
    assert len(refused) == 3


@pytest.mark.promise("G-24")
def test_text_that_is_not_utf_8_is_refused_alike(tmp_path):
    path = str(tmp_path / "bytes.parquet")
    broken = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"agent": broken}), path)
    assert by_columns([path]) == by_objects([path])
    assert "is not readable Parquet" in str(by_columns([path]))


@given(versions(st.integers(min_value=0, max_value=9)), st.data())
def test_versions_become_columns_and_come_back_in_any_order(catalogue, data):
    columns = columns_of(catalogue)
    assert columns.versions() == catalogue
    assert joined([columns, columns]).versions() == catalogue * 2
    order = data.draw(st.lists(st.sampled_from(range(len(catalogue))), max_size=6)) if catalogue else []
    assert columns.taken(np.array(order, np.int64)).versions() == [catalogue[at] for at in order]
