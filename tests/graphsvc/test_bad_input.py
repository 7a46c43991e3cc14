"""Bad input through every file and flag: refused whole, by field, place and remedy, with status 2 and nothing stored (G-24, P-2).

What comes in by gRPC has a table of its own beside the tests of the server.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphsvc.declarations.jsonlines import MAX_LINE_BYTES
from tests.graphsvc.cli.running import Ended, run

GOOD = b'{"agent": "good", "company": "acme", "emits": ["e"], "listens": ["h"]}\n'


@dataclass(frozen=True)
class Bad:
    """A file that must be refused. place: after the file's name; said: a part of reason and remedy."""

    ending: str
    content: bytes
    place: str
    field: str
    said: str


def line(record: Any, place: str, field: str, said: str) -> Bad:
    """One bad record as JSON lines, after a good one."""
    return Bad(".jsonl", GOOD + json.dumps(record).encode() + b"\n", place, field, said)


def text(content: bytes, place: str, field: str, said: str) -> Bad:
    """Bytes as JSON lines, after a good one."""
    return Bad(".jsonl", GOOD + content, place, field, said)


def declared(field: str, said: str, **fields: Any) -> Bad:
    """An agent with a bad field as JSON lines."""
    return line({"agent": "bad", "company": "acme", **fields}, ":2", field, said)


def named(name: Any, said: str) -> Bad:
    """A bad name of an agent as JSON lines."""
    return line({"agent": name, "company": "acme"}, ":2", "agent", said)


def manifest(spec: str, place: str, field: str, said: str, metadata: str = "{name: bad, company: acme}", head: str = "") -> Bad:
    """A bad manifest; its metadata stand in line 3 and its spec in line 4."""
    head = head or "apiVersion: agentplat/v1\nkind: Agent"
    return Bad(".yaml", f"{head}\nmetadata: {metadata}\nspec: {spec}\n".encode(), place, field, said)


def table(place: str, field: str, said: str, **columns: Any) -> Bad:
    """A bad Parquet file."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return Bad(".parquet", stream.getvalue(), place, field, said)


FILES: dict[str, Bad] = {
    # JSON lines: the text
    "no JSON at all": text(b"agent: bad\n", ":2:1", "line", "write one object a line"),
    "JSON that breaks off": text(b'{"agent": "bad"', ":2:16", "line", "is not one JSON object"),
    "two objects on a line": text(b'{"agent": "a"} {"agent": "b"}\n', ":2:16", "line", "write one object a line"),
    "a line that is a list": line(["bad"], ":2", "line", "is of type list"),
    "a line that is a text": line("bad", ":2", "line", "is of type str"),
    "a line that is null": line(None, ":2", "line", "is of type NoneType"),
    "a field twice": text(b'{"agent": "a", "agent": "b"}\n', ":2", "agent", "give every field once"),
    "a field twice in a contract": text(
        b'{"agent": "a", "emits": [{"event": "x", "event": "y"}]}\n', ":2", "event", "is given twice"
    ),
    "not a number": text(b'{"agent": "a", "version": NaN}\n', ":2", "line", "has NaN, which is not JSON"),
    "infinity": text(b'{"agent": "a", "version": -Infinity}\n', ":2", "line", "has -Infinity"),
    "a number with ten thousand digits": text(b'{"agent": ' + b"9" * 10_000 + b"}\n", ":2", "line", "use shorter numbers"),
    "nesting without end": text(b'{"agent": ' + b"[" * 100_000 + b"\n", ":2", "line", "is nested too deep"),
    "bytes that are not UTF-8": text(b'{"agent": "caf\xe9"}\n', ":2:15", "line", "save the file as UTF-8"),
    "UTF-16": Bad(".jsonl", '{"agent": "bad"}\n'.encode("utf-16"), ":1:1", "line", "save the file as UTF-8"),
    "a byte order mark": Bad(".jsonl", b"\xef\xbb\xbf" + GOOD, ":1:1", "line", "save the file as UTF-8 without one"),
    "a line beyond four mebibytes": text(b'{"agent": "' + b"a" * MAX_LINE_BYTES, ":2", "line", "at most that long"),
    "a line of zero bytes": text(b"\0\0\0\n", ":2:1", "line", "is not one JSON object"),
    # JSON lines: the fields
    "a field of another format": declared("name", "use agent, company, area, emits, listens and version", name="x"),
    "no agent": line({"company": "acme"}, ":2", "agent", "name the agent"),
    "an agent that is null": named(None, "is missing"),
    "an agent that is a number": named(12, "write a text"),
    "an agent that is a list": named(["bad"], "is of type list"),
    "an empty name": named("", "is empty; give it a name"),
    "a name of white space": named("   ", "remove the white space"),
    "white space before a name": named("\u3000bad", "begins or ends with white space"),
    "a name of 257 bytes": named("a" * 257, "use at most 256 bytes of UTF-8"),
    "a name of 86 characters but 258 bytes": named("語" * 86, "is 258 bytes long"),
    "a line feed in a name": named("a\nb", "has a control character (U+000A) at character 2"),
    "a zero byte in a name": named("a\0b", "remove that character"),
    "a bidirectional override in a name": named("a\u202eb", "has a bidirectional control (U+202E)"),
    "a right-to-left mark in a name": named("a\u200fb", "U+200F"),
    "an unassigned character in a name": named("a\u0378b", "has an unassigned character"),
    "half of a surrogate pair in a name": named("a\ud800b", "has half of a surrogate pair"),
    "a line separator in a name": named("a\u2028b", "has a line separator"),
    "a company with a slash": declared("company", "use a name without '/' and ':'", company="ac/me"),
    "a company with a colon": declared("company", "has a ':'", company="ac:me"),
    "a company called *": declared("company", "stands for the whole installation", company="*"),
    "an empty company": declared("company", "is empty", company=""),
    "a company that is a mapping": declared("company", "write a text, or null for none", company={}),
    "an area with a slash": declared("area", "has a '/'", area="a/b"),
    "an area without a company": declared("area", "give the company too", company=None, area="x"),
    "an area that is a number": declared("area", "is of type int", area=3),
    "events that are a text": declared("emits", "write a list of events", emits="x"),
    "events that are a mapping": declared("emits", "is not a list", emits={"event": "x"}),
    "an event that is a number": declared("emits[1]", "write an event name or {event, context, artifacts}", emits=["x", 5]),
    "an event that is null": declared("emits[0]", "is of type NoneType", emits=[None]),
    "an empty event": declared("emits[0]", "give it a name", emits=[""]),
    "an event twice": declared("emits[2]", "repeats emits[0]; name it once", emits=["x", "y", "x"]),
    "an event twice in two normal forms": declared("emits[1]", "repeats emits[0]", emits=["caf\u00e9", "cafe\u0301"]),
    "an event twice, once with a contract": declared("emits[1]", "repeats emits[0]", emits=["x", {"event": "x"}]),
    "more than a thousand events": declared("emits", "declare at most 1000 events", emits=[f"e{i}" for i in range(1_001)]),
    "more than a thousand in both lists together": declared(
        "emits", "and listens have 1001 events together", emits=[f"e{i}" for i in range(501)], listens=[f"h{i}" for i in range(500)]
    ),
    "a contract without event": declared("emits[0].event", "name the event", emits=[{"context": "x"}]),
    "a contract with another field": declared(
        "emits[0].body", "use event, context and artifacts", emits=[{"event": "x", "body": 1}]
    ),
    "a context that is a number": declared("emits[0].context", "write a text", emits=[{"event": "x", "context": 1}]),
    "artifacts that are a text": declared(
        "emits[0].artifacts", "write a list of artifact names", emits=[{"event": "x", "artifacts": "y"}]
    ),
    "an artifact twice": declared("emits[0].artifacts[1]", "name it once", emits=[{"event": "x", "artifacts": ["y", "y"]}]),
    "triggers that are a number": declared("listens", "is not a list", listens=7),
    "a trigger with a contract": declared("listens[0]", "is of type dict", listens=[{"event": "x"}]),
    "a trigger twice": declared("listens[1]", "repeats listens[0]", listens=["x", "x"]),
    "a trigger with a tab": declared("listens[0]", "U+0009", listens=["a\tb"]),
    "a version of zero": declared("version", "use a whole number from 1 to 2147483647", version=0),
    "a version below zero": declared("version", "is -1", version=-1),
    "a version beyond 32 bits": declared("version", "is 2147483648", version=2**31),
    "a version that is a fraction": declared("version", "write a whole number, or null for none", version=1.0),
    "a version that is a truth value": declared("version", "is True", version=True),
    "a version that is a text": declared("version", "is of type str", version="1"),
    "an agent twice": text(GOOD, ":2", "agent", "give every agent once"),
    # Manifests
    "a manifest without kind": manifest("{}", ":1:1", "kind", "add 'kind:'", head="apiVersion: agentplat/v1\n# no kind"),
    "a manifest of another kind": manifest(
        "{}", ":2:7", "kind", "write 'kind: Agent'", head="apiVersion: agentplat/v1\nkind: Robot"
    ),
    "a manifest of another version": manifest("{}", ":1:13", "apiVersion", "agentplat/v1", head="apiVersion: v2\nkind: Agent"),
    "a manifest with a field twice": manifest("{emits: [], emits: []}", ":4:19", "spec.emits", "keep one of them"),
    "a manifest with an unknown field": manifest("{emit: []}", ":4:8", "spec.emit", "use emits, listens, driver"),
    "a manifest with a number as name": manifest("{}", ":3:18", "metadata.name", 'put it in quotes: "12"', metadata="{name: 12}"),
    "a manifest with a merge key": manifest("{<<: {}}", ":4:8", "spec.<<", "write the fields out"),
    "a manifest with a tag": manifest("!!python/object:os.system {}", ":4:7", "spec", "leave tags out"),
    "a manifest with an alias of nothing": manifest("{emits: *x}", ":4:15", "spec.emits", "write the value out"),
    "a manifest with an area alone": manifest(
        "{}", ":3:29", "metadata.area", "give the company too", metadata="{name: bad, area: x}"
    ),
    "a manifest that is no YAML": manifest("{", ":5:1", "document", "is not YAML"),
    "a manifest indented with a tab": Bad(".yml", b"kind:\n\tAgent\n", ":2:1", "document", "indent with spaces"),
    "a manifest with a bad event": manifest(
        "{emits: [{event: a/b, artifacts: [x, x]}]}", ":4:44", "spec.emits[0].artifacts[1]", "name it once"
    ),
    "an empty manifest": Bad(".yaml", b"", ":1:1", "document", "has no manifest"),
    # Parquet
    "Parquet that is none": Bad(".parquet", b"PAR1 or so", "", "file", "is not readable Parquet"),
    "Parquet without agents": table("", "agent", "add a column", company=["acme"]),
    "Parquet with another column": table("", "name", "use agent, company", agent=["a"], name=["b"]),
    "Parquet with numbers as agents": table("", "agent", "write a column of texts", agent=[1]),
    "Parquet with a text as events": table("", "emits", "write a column of lists", agent=["a"], emits=["x"]),
    "Parquet with fractions as versions": table("", "version", "write a column of whole numbers", agent=["a"], version=[1.5]),
    "Parquet with a row without agent": table(":2", "agent", "name the agent", agent=["a", None]),
    "Parquet with a bad event": table(":1", "emits[1]", "repeats emits[0]", agent=["a"], emits=[["x", "x"]]),
    "Parquet with an agent twice": table(":2", "agent", "give every agent once", agent=["a", "a"]),
    # Files
    "a file with an unknown ending": Bad(".csv", GOOD, "", "file", "name it .jsonl"),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    """A store with one agent; it must hold just that in the end."""
    url, good = f"sqlite:///{tmp_path / 'graph.db'}", tmp_path / "before.jsonl"
    good.write_text('{"agent": "before"}\n', encoding="utf-8")
    assert run("import", str(good), "--store", url).status == 0
    before = run("export", "--store", url).stdout
    yield url
    assert run("export", "--store", url).stdout == before


def assert_refused(ended: Ended, place: str, field: str, said: str) -> None:
    """The command ended with 2, printed no answer, and told this fault in a line of its own."""
    assert (ended.status, ended.stdout) == (2, "")
    assert [told for told in ended.stderr.splitlines() if told.startswith(f"{place}: {field}: ") and said in told], ended.stderr
    assert all("; " in told for told in ended.stderr.splitlines())
    assert "Traceback" not in ended.stderr


@pytest.mark.promise("G-24", "P-2", "O-2")
@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_refused_whole_wherever_it_is_given(name: str, store: str, tmp_path: Path) -> None:
    bad = FILES[name]
    file = tmp_path / f"bad{bad.ending}"
    file.write_bytes(bad.content)
    place = f"{file}{bad.place}"
    assert_refused(run("import", str(file), "--store", store), place, bad.field, bad.said)
    assert_refused(run("import", str(file), "--dry-run"), place, bad.field, bad.said)
    assert_refused(run("check", str(file), "--every-agent"), place, bad.field, bad.said)


TEAM = str(Path(__file__).parents[1] / "golden" / "team.jsonl")

FLAGS: dict[str, tuple[list[str], str, str]] = {
    "a file that is not there": (["check", "missing.jsonl", "--every-agent"], "missing.jsonl: file", "give the path of a file"),
    "a folder": (["check", ".", "--every-agent"], ".: file", "has an ending that no reader knows"),
    "no agent named": (["check", TEAM], "command line: --agent", "give one of the two"),
    "an agent and every agent": (["check", TEAM, "--agent", "a", "--every-agent"], "command line: --agent", "give one of the two"),
    "an agent that is not there": (["check", TEAM, "--agent", "nobody"], "command line: --agent", "one of them declares"),
    "an agent of another scope": (["check", TEAM, "--agent", "globex:triage"], "command line: --agent", "is not in the files"),
    "an ambiguous agent": (
        ["check", TEAM, "--agent", "developer"],
        "command line: --agent",
        "write one of acme/platform:developer",
    ),
    "a bad scope of a reader": (["check", TEAM, "--every-agent", "--reader", "a/b/c"], "command line: --reader.area", "has a '/'"),
    "an empty scope of a reader": (["check", TEAM, "--every-agent", "--reader", ""], "command line: --reader.company", "is empty"),
    "a bad scope to export": (["export", "--store", "memory:", "--scope", "acme/"], "command line: --scope.area", "is empty"),
    "no graph to import into": (["import", TEAM], "command line: --server", "give one of the two"),
    "two graphs to import into": (["import", TEAM, "--server", "x:1", "--store", "memory:"], "command line: --server", "give one"),
    "no graph to export": (["export"], "command line: --server", "give one of the two"),
    "a token for a store": (["export", "--store", "memory:", "--token-file", "t"], "command line: --token-file", "leave it out"),
    "encryption of a store": (["export", "--store", "memory:", "--tls"], "command line: --tls", "name a service with --server"),
    "a token file that is not there": (["export", "--server", "x:1", "--token-file", "none"], "command line: --token-file", "path"),
    "a certificate without key": (
        ["export", "--server", "x:1", "--tls-certificate", TEAM],
        "command line: --tls-certificate",
        "give both",
    ),
    "an authority that is not there": (["export", "--server", "x:1", "--tls-ca", "none"], "command line: --tls-ca", "can be read"),
    "a store of no kind": (["export", "--store", "oracle://x"], "store", "use 'memory:'"),
    "a store file that is not there": (["export", "--store", "sqlite:///none.db"], "store", "name the file of a store"),
    "an output of no kind": (["generate", "--shape", "ring", "--output", "ring.csv"], "ring.csv: file", "name it .jsonl"),
    "an output folder that is not there": (
        ["generate", "--shape", "ring", "--output", "no/ring.jsonl"],
        "no/ring.jsonl: file",
        "give a path",
    ),
}


@pytest.mark.promise("G-24", "O-2")
@pytest.mark.parametrize("name", FLAGS)
def test_a_bad_flag_is_refused_by_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, start, said = FLAGS[name]
    place, _, field = start.rpartition(": ")
    ended = run(*arguments)
    assert (ended.status, ended.stdout) == (2, "")
    [told] = ended.stderr.splitlines()
    assert told.startswith(f"{place}: {field}: " if place else f"{field}: ")
    assert said in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("O-2")
@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", TEAM, "--every-agent", "--max-loops", "0"],
        ["check", TEAM, "--every-agent", "--max-loops", "ten"],
        ["check", TEAM, "--every-agent", "--max-visits", "-1"],
        ["check", TEAM, "--every-agent", "--max-visits", str(2**53)],
        ["check", TEAM, "--every-agent", "--format", "xml"],
        ["check", TEAM, "--every-agent", "--fail-on", "always"],
        ["check", TEAM, "--every-agent", "--language", "fr"],
        ["check", TEAM, "--every-agent", "--kernel", "magic"],
        ["check", TEAM, "--every-agent", "--depth", "3"],
        ["import"],
        ["generate"],
        ["generate", "--shape", "spiral"],
        ["generate", "--shape", "ring", "--agents", "1"],
        ["generate", "--shape", "ring", "--agents", "many"],
        ["generate", "--shape", "ring", "--seed", "-1"],
        ["schema", "--format", "yaml"],
        ["publish"],
    ],
    ids=" ".join,
)
def test_a_flag_that_is_no_flag_or_out_of_bounds_is_wrong_use(arguments: list[str]) -> None:
    ended = run(*arguments)
    assert (ended.status, ended.stdout) == (2, "")
    assert "Error: " in ended.stderr
    assert "--help" in ended.stderr


@pytest.mark.promise("G-24")
def test_a_message_about_bad_input_cannot_steer_a_terminal_or_grow_without_bound(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps({"agent": "a", "\x1b[2J\n\u202eevil" + "x" * 100_000: 1}), encoding="utf-8")
    ended = run("check", str(file), "--every-agent")
    [told] = ended.stderr.splitlines()
    assert told.isprintable()
    assert len(told) < 1_000


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("ending", [".jsonl", ".yaml", ".parquet"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    content=st.binary(max_size=60)
    | st.text(max_size=40).map(str.encode)
    | st.sampled_from([b"{}", b"[", b"PAR1PAR1", b"\0", b"- \n? "])
)
def test_a_file_of_any_bytes_is_read_or_refused_without_a_fault_of_ours(ending: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"any{ending}"
    file.write_bytes(content)
    ended = run("import", str(file), "--dry-run")
    assert ended.status in (0, 2)
    assert bool(ended.stderr) is (ended.status == 2)


@pytest.mark.promise("G-24")
@settings(max_examples=50)
@given(stdin=st.binary(max_size=60), agent=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=10))
def test_standard_input_of_any_bytes_and_any_name_are_checked_or_refused(stdin: bytes, agent: str) -> None:
    assert run("check", "-", f"--agent={agent}", stdin=stdin).status == 2
