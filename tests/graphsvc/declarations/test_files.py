from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphsvc.declarations.files import read_files, write_file
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = "apiVersion: agentplat/v1\nkind: Agent\nmetadata: {name: %s, company: acme}\nspec: {}\n"
PATIENCE_S = 120


def version(agent: str, number: int = 0) -> AgentVersion:
    return AgentVersion(parse_agent(agent), number, declare([f"{agent} is done"], []))


def refused(*paths: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        list(read_files([str(path) for path in paths]))
    return str(caught.value)


@pytest.mark.promise("O-3")
@pytest.mark.parametrize("ending", [".jsonl", ".ndjson", ".parquet", ".JSONL"])
def test_what_is_written_to_a_file_is_read_from_it(ending, tmp_path):
    catalogue = [version("acme:b", 3), version("acme:a")]
    path = str(tmp_path / f"team{ending}")
    assert write_file(path, catalogue) == 2
    assert list(read_files([path])) == catalogue


@pytest.mark.promise("O-3")
def test_several_files_of_different_kinds_are_one_input_in_the_order_given(tmp_path):
    manifests, lines = tmp_path / "team.yml", tmp_path / "team.jsonl"
    manifests.write_text(f"{MANIFEST % 'a'}---\n{MANIFEST % 'b'}", encoding="utf-8")
    write_file(str(lines), [version("acme:c")])
    assert [found.agent.name for found in read_files([str(lines), str(manifests)])] == ["c", "a", "b"]


@pytest.mark.promise("G-24")
def test_an_agent_given_twice_is_refused_with_both_places(tmp_path):
    manifests, lines = tmp_path / "team.yaml", tmp_path / "team.jsonl"
    manifests.write_text(f"{MANIFEST % 'a'}---\n{MANIFEST % 'b'}", encoding="utf-8")
    write_file(str(lines), [version("globex:b"), version("acme:b")])
    assert refused(lines, manifests) == f"{manifests}:6: agent: acme:b is given already at {lines}:2; give every agent once"
    assert refused(lines, lines).count("is given already") == 2


@pytest.mark.promise("G-24")
def test_names_that_look_the_same_after_normalisation_are_one_agent(tmp_path):
    lines = tmp_path / "team.jsonl"
    lines.write_text('{"agent": "caf\\u00e9"}\n{"agent": "cafe\\u0301"}\n', encoding="utf-8")
    assert "is given already at" in refused(lines)


@pytest.mark.promise("G-24")
def test_the_faults_of_all_files_are_told_together(tmp_path):
    bad, worse, missing = tmp_path / "bad.jsonl", tmp_path / "worse.yaml", tmp_path / "missing.jsonl"
    bad.write_text("{}\n", encoding="utf-8")
    worse.write_text("kind: Robot\n", encoding="utf-8")
    told = refused(bad, worse, missing, tmp_path / "team.csv", tmp_path)
    assert [line.split(": ")[0] for line in told.splitlines()] == [
        f"{bad}:1",
        f"{worse}:1:1",
        f"{worse}:1:1",
        f"{worse}:1:1",
        f"{worse}:1:7",
        str(missing),
        str(tmp_path / "team.csv"),
        str(tmp_path),
    ]


@pytest.mark.promise("G-24")
def test_nothing_is_given_out_after_the_first_fault(tmp_path):
    lines = tmp_path / "team.jsonl"
    lines.write_text('{"agent": "a"}\n{}\n{"agent": "b"}\n', encoding="utf-8")
    given = []
    with pytest.raises(InvalidInput):
        given.extend(found.agent.name for found in read_files([str(lines)]))
    reading = read_files([str(lines)])
    assert next(reading).agent.name == "a"
    with pytest.raises(InvalidInput):
        next(reading)


def test_a_file_is_replaced_only_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "team.jsonl"
    write_file(str(path), [version("acme:a")])
    before = path.read_bytes()

    def breaking_off():
        yield version("acme:b")
        raise LookupError("the source went away")

    with pytest.raises(LookupError):
        write_file(str(path), breaking_off())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("name", ["team.csv", "team", "team.yaml"])
def test_an_ending_that_cannot_be_written_is_refused(name, tmp_path):
    with pytest.raises(InvalidInput, match=r"has an ending that no writer knows; name it \.jsonl, \.ndjson, \.parquet$"):
        write_file(str(tmp_path / name), [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("G-24")
def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be written: No such file or directory; give a path in a folder"):
        write_file(str(tmp_path / "missing" / "team.jsonl"), [])


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("call", ["list(read_files([path]))", "write_file(path, [])"])
def test_parquet_without_its_library_says_how_to_install_it(call, tmp_path):
    path = tmp_path / "team.parquet"
    path.write_bytes(b"PAR1")
    program = f"""
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
from graphsvc.declarations.files import read_files, write_file
from graphsvc.domain.errors import InvalidInput
path = {str(path)!r}
try:
    {call}
except InvalidInput as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stderr == ""
    assert re.search(
        r"pyarrow, which (reads|writes) it, is not installed; install it with: pip install 'loopwarden\[parquet\]'$", done.stdout
    )
    assert path.read_bytes() == b"PAR1"
