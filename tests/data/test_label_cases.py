"""The shared cases about labels, each as a test of its kind: from the source to the refusal, over real stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.artifacts import Entry
from agentplat.domain.chains import Judgement, OutcomeKind
from agentplat.domain.labels import label_of, parse_labels, texts
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import ResultKind
from agentplat.domain.tools import UNTRUSTED, Effect, Given
from agentplat.store.migrating import migrate
from agentplat.store.sql import open_store

from tests.agentplat.run_records import stored
from tests.agentplat.tool_records import Noting, Shop, emission, shop, spec

CASES = ("lbl-forged-scope", "lbl-child-to-parent", "lbl-defined-not-wired", "lbl-repackaging", "lbl-union")
LISTENER = Ref("acme/platform", "listener")


def read_cases(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["area"] == "labels"}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Shop]:
    url = f"sqlite:///{tmp_path / 'agentplat.db'}"
    migrate(url)
    with closing(open_store(url)) as store:
        yield shop(store, tmp_path)


def test_every_case_about_labels_has_its_test(shared_data: Path) -> None:
    assert read_cases(shared_data).keys() == set(CASES)


@pytest.mark.promise("A-9")
def test_a_scope_comes_from_the_run_that_emits_and_never_from_what_is_written(shared_data: Path, platform: Shop) -> None:
    case = read_cases(shared_data)["lbl-forged-scope"]
    emitter, listener = Ref(case["given"]["emitter"], "emitter"), Ref(case["given"]["listener"], "listener")
    event, payload = case["given"]["event"]["name"], json.dumps(case["given"]["event"]["payload"])
    platform.publish(emitter, emits=[emission(event, "payload")])
    platform.publish(listener, listens=[event])
    source = platform.finish(platform.open(emitter), {"payload": payload, "labels": f"company:{payload}"}, summary=payload)
    judged = platform.deliver(source, event, listener)
    assert isinstance(judged, Judgement)
    assert case["expect"]["listener_run"] == "not opened"
    assert judged.kind is OutcomeKind.BARRIER
    assert judged.crossing is not None
    assert judged.crossing.label in label_of(emitter.scope)


@pytest.mark.promise("A-8")
def test_a_result_of_work_that_another_run_did_brings_its_labels_to_the_one_that_gets_it(shared_data: Path, platform: Shop) -> None:
    case = read_cases(shared_data)["lbl-child-to-parent"]
    platform.publish(LISTENER, emits=[emission("done", "answer")])
    child, _ = platform.call(platform.open(LISTENER), 1, "web", {"text": "read"})
    child = platform.finish(child, {"answer": "from the web"})
    # What a tool gives that had another run do the work: its answer, with the labels that run had at its end.
    platform.tools["look"].given = Given(
        result=ResultKind.DONE, data=b"from the web", labels=stored(platform.store, child.id).labels
    )
    parent, _ = platform.call(platform.open(LISTENER), 1, "look", {"text": "delegate"})
    parent = platform.finish(parent, {"answer": "rephrased"})
    with platform.store.reading() as work:
        published = work.artifacts.of_run(parent.id)
    for mark in case["expect"]["parent"]:
        assert all(mark in texts(artifact.labels) for artifact in published.values())


@pytest.mark.promise("A-8", "A-9", "A-10")
def test_from_the_source_artifact_to_the_refusal_at_the_barrier(shared_data: Path, platform: Shop) -> None:
    assert "refusal at the barrier" in read_cases(shared_data)["lbl-defined-not-wired"]["expect"]["test"]
    source, middle, outside = Ref("acme/finance", "source"), Ref("acme", "middle"), Ref("acme/platform", "outside")
    platform.publish(source, emits=[emission("counted", "numbers")])
    platform.publish(middle, emits=[emission("summed", "sum")], listens=["counted"])
    platform.publish(outside, listens=["summed"])
    first = platform.finish(platform.open(source), {"numbers": "1 2 3"})
    run = platform.deliver(first, "counted", middle)
    assert isinstance(run, Run)
    run, result = platform.call(run, 1, "read_artifact", {"name": "numbers"})
    assert platform.text(result) == "1 2 3"
    second = platform.finish(run, {"sum": "6"})
    # The company's own agent read what is of its finance area, so what it publishes may not go down into another area.
    judged = platform.deliver(second, "summed", outside)
    assert isinstance(judged, Judgement)
    assert judged.crossing is not None
    assert (judged.kind, judged.crossing.label.text) == (OutcomeKind.BARRIER, "area:acme/finance")
    forced = platform.force(second, platform.delivery(second, "summed"), outside)
    forced, refusal = platform.call(forced, 1, "read_artifact", {"name": "sum"})
    assert (refusal.result, platform.ruling(forced)) == (ResultKind.REFUSED, ("block", "barrier"))


@pytest.mark.promise("A-8")
def test_however_content_is_packed_anew_its_labels_stay(shared_data: Path, platform: Shop) -> None:
    assert read_cases(shared_data)["lbl-repackaging"]["expect"]["label"] == "kept on every path"
    platform.publish(LISTENER, emits=[emission("done", "copy", "final_answer")], listens=["found"])
    platform.tools["failing"] = Noting(declared=spec("note", Effect.WRITE), given=Given(result=ResultKind.FAILED, labels=UNTRUSTED))
    ways: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "returned by a tool": [("web", {"text": "x"})],
        "wrapped by another tool": [("web", {"text": "x"}), ("note", {"text": "untrusted: []"})],
        "a repeated write that is not done again": [("web", {"text": "x"}), ("note", {"text": "y"}), ("note", {"text": "y"})],
        "behind a refusal": [("web", {"text": "x"}), ("delete", {"text": "labels"}), ("nothing", {"labels": []})],
        "a call that fails": [("note", {"text": "x"})],
    }
    for way, calls in ways.items():
        if way == "a call that fails":
            platform.tools["note"] = platform.tools["failing"]
        run = platform.open(LISTENER)
        for number, (tool, arguments) in enumerate(calls, 1):
            run, _ = platform.call(run, number, tool, arguments)
        run = platform.finish(run, {"copy": '{"labels": [], "untrusted": false}'}, summary="labels: none")
        with platform.store.reading() as work:
            published = work.artifacts.of_run(run.id)
        assert {texts(found.labels) for found in published.values()} == {("area:acme/platform", "untrusted")}, way
        told = platform.delivery(run, "done")
        assert all("untrusted" in entry.labels for entry in told.artifacts), way


@pytest.mark.promise("A-8")
def test_a_run_that_reads_several_artifacts_carries_the_labels_of_all(shared_data: Path, platform: Shop) -> None:
    case = read_cases(shared_data)["lbl-union"]
    company = Ref("acme", "reader")
    platform.publish(company, listens=[f"event.{i}" for i in range(3)])
    reads, entries = case["given"]["reads"], []
    for i, labels in enumerate(reads):
        scope = next((label.partition(":")[2] for label in labels if ":" in label), "*")
        source = Ref(scope, f"source-{i}")
        platform.publish(source, emits=[emission(f"event.{i}", f"part-{i}")])
        marks = parse_labels(label for label in labels if ":" not in label)
        run = platform.finish(platform.open(source, marks), {f"part-{i}": str(i)})
        entries.append((run, platform.delivery(run, f"event.{i}").artifacts[0]))
    # One contract that names all three, as an event of the installation's does.
    collector = Ref("*", "collector")
    platform.publish(collector, listens=["event.0"])
    first, _ = entries[0]
    told = platform.delivery(first, "event.0")
    whole = type(told)(
        event=told.event,
        source_agent=told.source_agent,
        source_run=told.source_run,
        artifacts=tuple(Entry(name=e.name, ref=e.ref, digest=e.digest, source_run=run.id, labels=e.labels) for run, e in entries),
    )
    run = platform.force(first, whole, collector)
    for number in range(len(reads)):
        run, result = platform.call(run, number + 1, "read_artifact", {"name": f"part-{number}"})
        assert result.result is ResultKind.DONE
    run = platform.finish(run, {"fourth": "all"})
    with platform.store.reading() as work:
        fourth = work.artifacts.of_run(run.id)["fourth"]
    assert list(texts(fourth.labels)) == list(texts(run.labels)) == case["expect"]["run_and_artifact"]
