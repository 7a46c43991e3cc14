from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.parquet import read_parquet, write_parquet
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import AgentVersion, Emit, declare
from graphsvc.domain.names import parse_agent
from tests.graphsvc.declarations.worlds import versions


def stored(columns: dict[str, object] | pa.Table) -> io.BytesIO:
    stream = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), stream)
    stream.seek(0)
    return stream


def read(stream: io.BytesIO) -> list[tuple[int, AgentVersion]]:
    faults = Faults()
    found = list(read_parquet(stream, "team.parquet", faults))
    faults.raise_if_any()
    return found


@pytest.mark.promise("O-3")
def test_events_may_be_names_or_structs():
    columns = {"agent": ["a", "b"], "company": ["acme", None], "listens": [["x"], None], "version": [None, 4]}
    names = stored({**columns, "emits": [["one"], []]})
    structs = stored({**columns, "emits": [[{"event": "one", "context": None, "artifacts": None}], []]})
    expected = [
        (1, AgentVersion(parse_agent("acme:a"), 0, declare(["one"], ["x"]))),
        (2, AgentVersion(parse_agent("*:b"), 4, declare([], []))),
    ]
    assert read(names) == read(structs) == expected


def test_contracts_are_kept():
    emits = [[{"event": "code", "context": "diff", "artifacts": ["patch", "log"]}]]
    [(_, version)] = read(stored({"agent": ["a"], "emits": emits}))
    assert version.declaration.emits == (Emit("code", "diff", ("log", "patch")),)


def test_columns_may_be_encoded_as_other_writers_do():
    table = pa.table(
        {
            "agent": pa.array(["a", "b"]).dictionary_encode(),
            "company": pa.array(["acme", "acme"], pa.large_string()),
            "area": pa.nulls(2),
            "emits": pa.array([["e"], None], pa.large_list(pa.large_string())),
            "listens": pa.array([[], None], pa.list_(pa.null())),
            "version": pa.array([1, 2], pa.uint8()),
        }
    )
    assert [version.agent.text for _, version in read(stored(table))] == ["acme:a", "acme:b"]


def test_rows_of_many_batches_keep_their_numbers():
    names = [f"agent-{i}" for i in range(10_000)]
    found = read(stored({"agent": names}))
    assert [(row, version.agent.name) for row, version in found] == list(enumerate(names, start=1))
    with pytest.raises(InvalidInput) as caught:
        read(stored({"agent": [*names, ""]}))
    assert [violation.place for violation in caught.value.violations] == ["team.parquet:10001"]


@given(versions(st.integers(min_value=0, max_value=9)))
def test_what_is_written_is_read_again_as_it_was(catalogue):
    streams = [io.BytesIO(), io.BytesIO()]
    assert [write_parquet(catalogue, stream) for stream in streams] == [len(catalogue)] * 2
    assert streams[0].getvalue() == streams[1].getvalue()
    assert [version for _, version in read(streams[0])] == catalogue


@pytest.mark.promise("G-24")
def test_every_faulty_column_is_told_before_any_row_is_read():
    names, numbers = pa.array(["a"]), pa.array([1])
    table = pa.Table.from_arrays([names, names, numbers, names, numbers], names=["agent", "agent", "company", "owner", "emits"])
    faults = Faults()
    assert list(read_parquet(stored(table), "team.parquet", faults)) == []
    with pytest.raises(InvalidInput) as caught:
        faults.raise_if_any()
    assert [(v.place, v.field) for v in caught.value.violations] == [
        ("team.parquet", name) for name in ("agent", "company", "emits", "owner")
    ]


_SOUND = stored({"agent": ["a", "b"] * 50, "emits": [["e"]] * 100, "listens": [["h"]] * 100}).getvalue()


@given(st.integers(min_value=0, max_value=len(_SOUND) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_file_is_read_or_refused(at, damage):
    faults = Faults()
    content = _SOUND[:at] + damage + _SOUND[at + len(damage) :]
    list(read_parquet(io.BytesIO(content), "damaged.parquet", faults))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content):
    faults = Faults()
    assert list(read_parquet(io.BytesIO(content), "any.parquet", faults)) == []
    assert len(faults) == 1
