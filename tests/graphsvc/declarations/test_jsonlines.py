from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.jsonlines import MAX_LINE_BYTES, json_line, read_json_lines, write_json_lines
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import AgentVersion, Emit, declare
from graphsvc.domain.names import parse_agent
from tests.graphsvc.declarations.worlds import versions


def read(content: bytes) -> list[tuple[int, AgentVersion]]:
    faults = Faults()
    found = list(read_json_lines(io.BytesIO(content), "team.jsonl", faults))
    faults.raise_if_any()
    return found


def refused(content: bytes) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read(content)
    return [f"{violation.place} {violation.field}" for violation in caught.value.violations]


@pytest.mark.promise("O-3")
def test_a_line_declares_an_agent_with_bare_events_and_events_with_contracts():
    record = {
        "agent": "developer",
        "company": "acme",
        "area": "platform",
        "emits": ["opened", {"event": "code", "context": "diff", "artifacts": ["patch", "log"]}],
        "listens": ["review", "assigned"],
        "version": 7,
    }
    [(line, version)] = read(json.dumps(record).encode())
    assert (line, version.agent, version.number) == (1, parse_agent("acme/platform:developer"), 7)
    assert version.declaration.emits == (Emit("code", "diff", ("log", "patch")), Emit("opened"))
    assert version.declaration.listens == ("assigned", "review")


@pytest.mark.promise("O-3")
@pytest.mark.parametrize(
    ("scope", "reference"),
    [
        ({"company": "acme", "area": "x"}, "acme/x:a"),
        ({"company": "acme", "area": None}, "acme:a"),
        ({"company": "acme"}, "acme:a"),
        ({"company": None, "area": None}, "*:a"),
        ({}, "*:a"),
    ],
)
def test_area_and_company_may_be_null_or_left_out(scope, reference):
    [(_, version)] = read(json.dumps({"agent": "a", **scope}).encode())
    assert (version.agent.text, version.number, version.declaration) == (reference, 0, declare([], []))


def test_blank_lines_and_line_ends_of_other_systems_are_no_faults():
    content = b'\n  \r\n{"agent": "a"}\r\n\n\t{"agent": "b"} \n{"agent": "c"}'
    assert [(line, version.agent.name) for line, version in read(content)] == [(3, "a"), (5, "b"), (6, "c")]


def test_an_empty_stream_declares_nothing():
    assert read(b"") == []


@given(versions(st.integers(min_value=0, max_value=9)))
def test_what_is_written_is_read_again_as_it_was(catalogue):
    stream = io.BytesIO()
    assert write_json_lines(catalogue, stream) == len(catalogue)
    assert [version for _, version in read(stream.getvalue())] == catalogue


def test_a_written_line_has_the_promised_fields_and_a_number_where_there_is_one():
    numbered = AgentVersion(parse_agent("acme:a"), 3, declare(["e"], ["h"]))
    assert json_line(numbered) == '{"agent": "a", "company": "acme", "area": null, "emits": ["e"], "listens": ["h"], "version": 3}'
    assert "version" not in json.loads(json_line(AgentVersion(numbered.agent, 0, numbered.declaration)))


@pytest.mark.promise("G-24")
def test_every_faulty_line_is_told_and_good_lines_between_them_are_not():
    content = b'{"agent": ""}\n{"agent": "a"}\n{"agent": "b", "emits": [1]}\nnonsense\n{"agent": "c", "x": 1, "listens": 2}\n'
    assert refused(content) == [
        "team.jsonl:1 agent",
        "team.jsonl:3 emits[0]",
        "team.jsonl:4:1 line",
        "team.jsonl:5 x",
        "team.jsonl:5 listens",
    ]


@pytest.mark.promise("G-24")
def test_the_line_after_one_that_is_too_long_has_its_own_number():
    content = b'{"agent": "' + b"a" * (2 * MAX_LINE_BYTES) + b'"}\n{"agent": ""}\n'
    assert refused(content) == ["team.jsonl:1 line", "team.jsonl:2 agent"]


@pytest.mark.promise("G-24")
def test_a_list_of_faults_ends_with_how_many_more_there_are():
    with pytest.raises(InvalidInput) as caught:
        read(b"{}\n" * 137)
    assert len(caught.value.violations) == 101
    assert "37 more" in caught.value.violations[-1].reason


def test_versions_come_while_the_stream_is_still_open():
    class Endless(io.RawIOBase):
        given = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            line = json.dumps({"agent": f"agent-{self.given}"}).encode() + b"\n"
            self.given += 1
            buffer[: len(line)] = line
            return len(line)

    stream = Endless()
    reading = read_json_lines(io.BufferedReader(stream, buffer_size=256), "pipe", Faults())
    assert [next(reading)[1].agent.name for _ in range(3)] == ["agent-0", "agent-1", "agent-2"]
    assert stream.given < 100


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b'{"agent": "a"}', b'{"agent":', b"[]", b"\xff", b'"\\ud800"'])))
def test_any_bytes_are_read_or_refused(pieces):
    faults = Faults()
    list(read_json_lines(io.BytesIO(b"\n".join(pieces)), "any", faults))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["agent", "company", "area", "emits", "listens", "version", "event", "x"]), inner)
        ),
        max_leaves=12,
    )
)
def test_any_json_value_is_read_or_refused(value):
    faults = Faults()
    found = list(read_json_lines(io.BytesIO(json.dumps(value).encode()), "any", faults))
    assert bool(found) is not bool(faults)
