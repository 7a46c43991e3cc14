"""The shared cases about loops and redaction, each as a test of its kind, and real catalogues with the answers of others."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from graphsvc.declarations.files import read_files
from graphsvc.domain.errors import StoreUnavailable, UnknownAgent
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING, Reader
from graphsvc.domain.report import Report, UnfedTrigger, Verification
from graphsvc.domain.wording import report_text, warning_lines
from graphsvc.judge import judge
from graphsvc.kernels import reference
from graphsvc.rpc.status import fault_status, new_incident, status_for
from graphsvc.service import GraphService, check_files
from graphsvc.store.opening import MEMORY, open_store
from tests.catalogues import CATALOGUES, LONGEST_ANSWERED, MOST_ANSWERED
from tests.graphsvc.folding import KERNELS, declaration_of, fold, reader, version_of
from tests.oracle import Agent, agent

ROOT = Path(__file__).resolve().parents[2]
POLICY = LimitPolicy(default=Limits(), ceiling=Limits(max_loops=1_000))
WAIT_S = 120
kernels = pytest.mark.parametrize("kernel", KERNELS)

AS_GIVEN = (
    "cyc-inlet-is-outlet",
    "cyc-order-dependent",
    "cyc-only-self",
    "cyc-walk-is-not-loop",
    "cyc-one-shared-name",
    "cyc-mutual-no-overlap",
    "cyc-self-not-first",
    "cyc-source-equals-target",
    "cyc-equal-not-same",
    "cyc-self-and-more",
    "cyc-not-through-published",
    "cyc-repeat-vertex",
    "cyc-fork-join",
    "cyc-shared-visited",
    "cyc-direction",
    "cyc-hidden-by-rest",
    "cyc-stable-text",
    "cyc-stack-not-popped",
)
IN_TESTS_OF_THEIR_OWN = (
    "cyc-millions",
    "red-existence-by-status",
    "red-placeholder-keeps-shape",
    "red-error-detail",
    "red-suggestion-leak",
    "red-text-for-log",
)


def read_cases(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["area"] in ("cycles", "redaction")}


def test_every_case_about_loops_and_redaction_has_its_test(shared_data: Path) -> None:
    assert read_cases(shared_data).keys() == {*AS_GIVEN, *IN_TESTS_OF_THEIR_OWN}


def given(case: dict[str, Any]) -> list[Agent]:
    return [agent(one["agent"], one["listens"], one["emits"]) for one in case["given"]["agents"]]


def report_on(published: Iterable[Agent], name: str, kernel: str, limits: Limits, who: Reader = EVERYTHING) -> Report:
    arrived = list(published)
    (proposed,) = (one for one in arrived if one.name == name)
    return judge(fold(arrived), parse_agent(proposed.ref), declaration_of(proposed), who, limits, KERNELS[kernel], None)


def rounds(report: Report) -> list[list[str]]:
    names = [[one.name if one else "?" for one in loop.agents] for loop in report.loops]
    return [[*path, path[0]] for path in names]


@pytest.mark.promise("G-1", "G-2", "G-4", "G-5")
@kernels
@pytest.mark.parametrize("case_id", AS_GIVEN)
def test_a_case_has_the_loops_that_were_computed_by_hand_and_in_their_order(case_id: str, kernel: str, shared_data: Path) -> None:
    case = read_cases(shared_data)[case_id]
    report = report_on(given(case), case["given"]["publish"], kernel, Limits(max_loops=1_000))
    assert rounds(report) == case["expect"]["loops"]
    assert len(report.loops) == case["expect"]["count"]
    assert report.verification is Verification.COMPLETE


@pytest.mark.promise("G-11")
@kernels
def test_the_order_of_arrival_makes_no_difference(kernel: str, shared_data: Path) -> None:
    case = read_cases(shared_data)["cyc-order-dependent"]
    agents = given(case)
    digests = set()
    for order in permutations(agents):
        report = report_on(order, case["given"]["publish"], kernel, Limits())
        assert rounds(report) == case["expect"]["loops"]
        digests.add(report.digest)
    assert len(digests) == 1


@pytest.mark.promise("G-11")
def test_the_text_has_the_same_bytes_whatever_the_hash_seed_and_the_order_of_the_lines(shared_data: Path, tmp_path: Path) -> None:
    case = read_cases(shared_data)["cyc-stable-text"]
    lines = [json.dumps({**one, "company": "acme"}) for one in case["given"]["agents"]]
    outputs = []
    for seed in range(10):
        file = tmp_path / f"{seed}.jsonl"
        file.write_text("\n".join(lines[:: -1 if seed % 2 else 1]) + "\n", encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "graphsvc",
            "check",
            str(file),
            "--agent",
            case["given"]["publish"],
            "--kernel",
            "reference",
        ]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=WAIT_S)
        assert ended.returncode == 0, ended.stderr.decode()
        outputs.append(ended.stdout)
    assert " → ".join(case["expect"]["loops"][0]).encode() in outputs[0]
    assert len(set(outputs)) == 1


@pytest.mark.promise("G-2")
@kernels
def test_names_that_are_equal_are_one_name_though_they_are_not_one_object(kernel: str, shared_data: Path) -> None:
    case = read_cases(shared_data)["cyc-equal-not-same"]

    def fresh(text: str) -> str:
        made = "".join(["made ", text])
        assert made is not "".join(["made ", text])
        return made

    agents = [
        agent(fresh(one["agent"]), [fresh(e) for e in one["listens"]], [fresh(e) for e in one["emits"]])
        for one in case["given"]["agents"]
    ]
    report = report_on(agents, fresh(case["given"]["publish"]), kernel, Limits())
    assert rounds(report) == [[fresh(name) for name in loop] for loop in case["expect"]["loops"]]


@pytest.mark.promise("G-8", "G-9", "G-12", "P-4")
@kernels
def test_of_millions_of_loops_the_first_are_named_and_more_are_said_to_exist(kernel: str, shared_data: Path) -> None:
    case = read_cases(shared_data)["cyc-millions"]
    limits = Limits(max_loops=case["given"]["loop_cap"], max_visits=case["given"]["walk_cap"])
    names = [f"n{i:02}" for i in range(12)]
    everybody = [agent(name, [f"by {other}" for other in names if other != name], [f"by {name}"]) for name in names]
    report = report_on(everybody, "n00", kernel, limits)
    pairs = [["n00", other, "n00"] for other in names[1:]]
    threes = [["n00", one, two, "n00"] for one, two in permutations(names[1:], 2)]
    assert rounds(report) == (pairs + threes)[: limits.max_loops]
    assert report.verification is Verification.MORE_LOOPS
    assert report.visits is not None
    assert report.visits <= limits.max_visits
    assert warning_lines(report)[-1] == "There may be more loops."


# Redaction

DEV = agent("dev", ["reviewed"], ["pushed"], "acme")
SECRET = agent("secret", ["pushed"], ["cleared"], "globex/vault")
REV = agent("rev", ["cleared"], ["reviewed"], "acme")


@pytest.mark.promise("G-16", "G-23")
def test_a_hidden_agent_and_none_at_all_have_one_status(shared_data: Path) -> None:
    assert read_cases(shared_data)["red-existence-by-status"]["expect"] == {"same_answer": True}
    with closing(GraphService(open_store(MEMORY), POLICY, reference.search)) as service:
        service.import_versions(map(version_of, [DEV, SECRET, REV]))
        statuses = []
        for ref in (SECRET.ref, "globex/vault:nobody"):
            with pytest.raises(UnknownAgent) as refused:
                service.describe(parse_agent(ref), reader(["acme"]))
            statuses.append(status_for(refused.value))
        assert statuses[0] == statuses[1]
        neighbours = service.describe(parse_agent(DEV.ref), reader(["acme"]))
        assert (neighbours.starts, [one.agent.text for one in neighbours.started_by]) == ((), [REV.ref])


@pytest.mark.promise("G-13", "G-14")
@kernels
def test_a_hidden_agent_keeps_its_place_in_the_loop(kernel: str, shared_data: Path) -> None:
    case = read_cases(shared_data)["red-placeholder-keeps-shape"]
    report = report_on([DEV, SECRET, REV], "dev", kernel, Limits(), reader(["acme"]))
    assert [loop.length for loop in report.loops] == [case["expect"]["length"]]
    assert warning_lines(report)[1].strip().replace("→", "->") == case["expect"]["text"]


@pytest.mark.promise("G-23")
def test_what_went_wrong_inside_is_for_the_log_and_the_caller_gets_a_general_sentence(
    shared_data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_cases(shared_data)["red-error-detail"]["expect"] == {"client": "general sentence", "log": "full detail"}
    place = tmp_path / "secret place"
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailable) as refused:
        open_store(f"sqlite:///{place / 'log.db'}")
    told = str(status_for(refused.value))
    for detail in ("secret place", str(tmp_path), "sqlite3", "Traceback"):
        assert detail not in told
        assert detail not in str(refused.value)
    assert "unable to open database file" in caplog.text
    assert "unable to open database file" not in told
    incident = new_incident()
    assert incident in fault_status(incident).message


@pytest.mark.promise("G-16", "G-18")
def test_suggestions_hold_readable_names_only(shared_data: Path) -> None:
    assert read_cases(shared_data)["red-suggestion-leak"]["expect"] == {"names": "only readable ones"}
    asking = agent("asks", ["Orders"], [], "acme")
    hidden, seen = agent("shop", [], ["Order"], "globex"), agent("desk", [], ["order"], "acme")
    for published, hint in (([hidden], None), ([hidden, seen], "order"), ([seen, hidden], "order")):
        report = report_on([asking, *published], "asks", "reference", Limits(), reader(["acme"]))
        assert report.notices == (UnfedTrigger("Orders", hint),)
        assert "Did you mean Order?" not in report_text(report)
    everyone = report_on([asking, hidden, seen], "asks", "reference", Limits())
    assert everyone.notices == (UnfedTrigger("Orders", "Order"),)


@pytest.mark.promise("G-13", "P-9")
def test_readers_with_less_and_more_access_read_one_form_of_sentence(shared_data: Path) -> None:
    assert "one sentence form" in read_cases(shared_data)["red-text-for-log"]["expect"]["shape"]
    whole, part = (report_on([DEV, SECRET, REV], "dev", "reference", Limits(), who) for who in (EVERYTHING, reader(["acme"])))
    full, cut = "\n".join(warning_lines(whole)), "\n".join(warning_lines(part))
    assert full.replace("secret", "an agent outside your access") == cut
    assert full != cut
    for name in ("secret", "globex", "vault"):
        assert name not in cut
        assert name not in json.dumps(part.as_json())


# Real catalogues


def test_every_real_catalogue_has_its_test(shared_data: Path) -> None:
    assert tuple(sorted(file.stem for file in (shared_data / "declarations").glob("*.jsonl"))) == CATALOGUES


@pytest.mark.promise("G-1", "G-2", "G-5")
@pytest.mark.parametrize("name", CATALOGUES)
def test_the_reference_kernel_finds_the_loops_of_real_catalogues_that_others_found(name: str, shared_data: Path) -> None:
    """Loops of up to eight agents, of which the answers list the first 200 through each agent and count all."""
    answers = json.loads((shared_data / "answers" / f"{name}.json").read_text(encoding="utf-8"))["through"]
    versions = read_files([str(shared_data / "declarations" / f"{name}.jsonl")])
    reports = list(check_files(versions, None, EVERYTHING, Limits(max_loops=1_000), reference.search))
    # An agent that hears its own event is a loop of its own in the answers too.
    found = {report.agent.name: [path for path in rounds(report) if len(path) <= LONGEST_ANSWERED + 1] for report in reports}
    assert len(found) == len(reports)
    nothing = {"loops": [], "total": 0}
    assert answers.keys() <= found.keys()
    for agent_name, loops in found.items():
        expected = answers.get(agent_name, nothing)
        assert (len(loops), loops[:MOST_ANSWERED]) == (expected["total"], expected["loops"]), agent_name
