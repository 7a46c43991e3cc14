from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.catalogues import CATALOGUES, LONGEST_ANSWERED, MOST_ANSWERED
from tests.graphsvc.cli.running import Ended, run

GOLDEN = Path(__file__).parents[2] / "golden"
TEAM = str(GOLDEN / "team.jsonl")

SHOWN = {
    "everything": ("--agent", "acme/platform:developer"),
    "company": ("--agent", "acme/platform:developer", "--reader", "acme"),
    "area": ("--agent", "triage", "--reader", "acme/support"),
    "portuguese": ("--agent", "triage", "--language", "pt"),
    "hebrew": ("--agent", "כותב", "--language", "he"),
    "long": ("--agent", "stage-1"),
    "own-event": ("--agent", "archivist"),
    "hint": ("--agent", "announcer"),
    "more-loops": ("--agent", "acme/platform:developer", "--max-loops", "1"),
    "not-verified": ("--agent", "triage", "--max-visits", "20"),
    "every-agent": ("--every-agent",),
    "two-readers": ("--agent", "triage", "--reader", "acme/support", "--reader", "globex"),
    "json": ("--agent", "acme/platform:developer", "--reader", "acme", "--format", "json"),
    "json-lines": ("--every-agent", "--reader", "acme", "--reader", "globex", "--format", "jsonl"),
}


def check(*arguments: str, stdin: bytes = b"") -> Ended:
    return run("check", *arguments, stdin=stdin)


@pytest.mark.promise("O-3")
@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("kernel", ["jit", "reference"])
def test_the_answer_is_the_golden_one_with_either_kernel(name: str, kernel: str) -> None:
    ended = check(TEAM, *SHOWN[name], "--kernel", kernel)
    assert ended.stdout == (GOLDEN / f"check-{name}.txt").read_text(encoding="utf-8")
    assert ended.stderr == ""


@pytest.mark.promise("O-3")
def test_a_json_report_has_the_promised_keys() -> None:
    report = json.loads(check(TEAM, "--agent", "acme/platform:developer", "--reader", "acme", "--format", "json").stdout)
    assert report.keys() == {"agent", "verification", "loops", "notices", "visits", "limits", "revision", "digest"}
    assert all(loop.keys() == {"agents", "length", "self", "over_chain_limit", "hops"} for loop in report["loops"])
    assert all(hop.keys() == {"events", "barrier"} for loop in report["loops"] for hop in loop["hops"])
    assert report["agent"] == report["loops"][0]["agents"][0] == "acme/platform:developer"
    assert (report["revision"], report["visits"]) == (None, None)
    hidden = report["loops"][4]
    assert hidden["agents"][3] is None
    assert hidden["length"] == len(hidden["agents"]) == len(hidden["hops"])


@pytest.mark.promise("O-3")
def test_json_lists_every_agent_in_order_of_reference_as_json_lines_do() -> None:
    listed = json.loads(check(TEAM, "--every-agent", "--format", "json").stdout)
    lines = [json.loads(line) for line in check(TEAM, "--every-agent", "--format", "jsonl").stdout.splitlines()]
    assert listed == lines
    order = [(name, scope) for scope, _, name in (report["agent"].partition(":") for report in listed)]
    assert order == sorted(order)


@pytest.mark.promise("O-3")
def test_a_reader_of_everything_learns_the_visits() -> None:
    assert json.loads(check(TEAM, "--agent", "triage", "--format", "json").stdout)["visits"] > 0
    assert json.loads(check(TEAM, "--agent", "triage", "--format", "json", "--reader", "*").stdout)["visits"] > 0


@pytest.mark.promise("O-3")
def test_offline_the_limits_have_no_ceiling() -> None:
    asked = ("--max-loops", str(2**31 - 1), "--max-visits", str(2**53 - 1))
    report = json.loads(check(TEAM, "--agent", "triage", "--format", "json", *asked).stdout)
    assert report["limits"] == {"max_loops": 2**31 - 1, "max_visits": 2**53 - 1, "chain_limit": 8}


@pytest.mark.promise("O-3")
def test_files_of_every_kind_and_standard_input_are_one_input(tmp_path: Path) -> None:
    manifest = tmp_path / "reviewer.yaml"
    manifest.write_text(
        "apiVersion: agentplat/v1\nkind: Agent\nmetadata: {name: reviewer, company: acme}\n"
        "spec: {emits: [review.done], listens: [code.ready]}\n",
        encoding="utf-8",
    )
    developer = b'{"agent": "developer", "company": "acme", "emits": ["code.ready"], "listens": ["review.done"]}\n'
    ended = check("-", str(manifest), "--agent", "developer", stdin=developer)
    assert ended.stdout.splitlines()[1] == "  developer → reviewer → developer"


@pytest.mark.promise("O-3")
def test_an_agent_may_be_named_without_scope_where_that_is_clear(tmp_path: Path) -> None:
    both = tmp_path / "names.jsonl"
    both.write_text('{"agent": "a:b"}\n{"agent": "b", "company": "a"}\n{"agent": "c", "company": "a"}\n', encoding="utf-8")
    checked = [check(str(both), "--agent", name, "--format", "jsonl").stdout for name in ("c", "a:b", "*:a:b")]
    assert [json.loads(line)["agent"] for line in checked] == ["a:c", "a:b", "*:a:b"]


def test_a_name_in_another_normal_form_is_the_same_agent(tmp_path: Path) -> None:
    file = tmp_path / "names.jsonl"
    file.write_text('{"agent": "cafe\\u0301", "company": "acme"}\n', encoding="utf-8")
    for name in ("caf\u00e9", "cafe\u0301"):
        assert json.loads(check(str(file), "--agent", name, "--format", "json").stdout)["agent"] == "acme:caf\u00e9"


@pytest.mark.promise("O-2")
def test_an_ambiguous_name_is_refused_with_the_references_to_choose_from() -> None:
    ended = check(TEAM, "--agent", "developer")
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr == (
        "command line: --agent: 'developer' is in several scopes;"
        " write one of acme/platform:developer, globex/operations:developer\n"
    )


LOOP, OWN_EVENT, NOTICE, NOTHING = "triage", "archivist", "announcer", "writer"


@pytest.mark.promise("O-2")
@pytest.mark.parametrize(
    ("agent", "fail_on", "status"),
    [
        *((agent, "never", 0) for agent in (LOOP, OWN_EVENT, NOTICE, NOTHING)),
        *((agent, "loop", status) for agent, status in ((LOOP, 1), (OWN_EVENT, 0), (NOTICE, 0), (NOTHING, 0))),
        *((agent, "self", status) for agent, status in ((LOOP, 1), (OWN_EVENT, 1), (NOTICE, 0), (NOTHING, 0))),
        *((agent, "notice", status) for agent, status in ((LOOP, 1), (OWN_EVENT, 1), (NOTICE, 1), (NOTHING, 0))),
    ],
)
def test_the_exit_status_tells_findings_from_the_wanted_level_up(agent: str, fail_on: str, status: int) -> None:
    assert check(TEAM, "--agent", agent, "--fail-on", fail_on).status == status


@pytest.mark.promise("O-2")
def test_doubt_goes_before_findings() -> None:
    assert check(TEAM, "--agent", "acme/platform:developer", "--max-visits", "3", "--fail-on", "loop").status == 3
    assert check(TEAM, "--every-agent", "--max-visits", "3", "--fail-on", "loop").status == 3


@pytest.mark.promise("O-2")
def test_one_agent_with_a_finding_among_many_is_enough() -> None:
    assert check(TEAM, "--every-agent", "--fail-on", "loop").status == 1
    assert check(TEAM, "--every-agent").status == 0


@pytest.mark.promise("O-3", "G-5")
@pytest.mark.parametrize("name", CATALOGUES)
def test_every_agent_of_a_real_catalogue_lies_on_the_loops_that_others_found(name: str, shared_data: Path) -> None:
    answers = json.loads((shared_data / "answers" / f"{name}.json").read_text(encoding="utf-8"))["through"]
    file = shared_data / "declarations" / f"{name}.jsonl"
    ended = check(str(file), "--every-agent", "--max-loops", "1000", "--format", "jsonl")
    found: dict[str, Any] = {}
    for report in map(json.loads, ended.stdout.splitlines()):
        paths = [[agent.partition(":")[2] for agent in loop["agents"]] for loop in report["loops"]]
        found[report["agent"].partition(":")[2]] = [[*path, path[0]] for path in paths if len(path) <= LONGEST_ANSWERED]
    assert ended.status == 0
    assert len(found) == len(file.read_text(encoding="utf-8").splitlines())
    expected = {agent: answers[agent]["loops"] if agent in answers else [] for agent in found}
    assert {agent: loops[:MOST_ANSWERED] for agent, loops in found.items()} == expected
    assert {agent: len(loops) for agent, loops in found.items() if loops} == {
        agent: a["total"] for agent, a in answers.items() if a["total"]
    }
