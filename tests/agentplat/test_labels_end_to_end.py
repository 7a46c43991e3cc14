"""Labels from the source to the refusal, over runs that a worker process carries (A-8 to A-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agentplat.content.opening import open_content
from agentplat.domain.access import Access
from agentplat.domain.chains import Judgement, OutcomeKind
from agentplat.domain.errors import InvalidInput
from agentplat.domain.labels import parse_labels, texts
from agentplat.domain.runs import Run
from agentplat.domain.steps import Closing, GateRuling, Opening, ResultKind, ToolResult
from agentplat.usecases.dispatch_events import DispatchEvents
from agentplat.usecases.open_run import OpenRun

from tests.agentplat.content.bucket_host import BUCKET, bucket_service
from tests.agentplat.run_records import fault_of, folder_content, stored
from tests.agentplat.tool_records import Shop
from tests.agentplat.workers import worker
from tests.agentplat.world import BACKOFF, World, ref, wait_until

SOURCE = "acme/platform:source"
HOPS = [f"acme/platform:hop-{i}" for i in (1, 2, 3)]
OUTSIDE = ("acme/finance:payer", "globex:writer", "globex/platform:writer")


def script(*actions: Mapping[str, Any]) -> dict[str, Any]:
    return {"driver": {"kind": "scripted", "actions": list(actions)}}


def emits(event: str) -> list[dict[str, Any]]:
    return [{"event": event, "context": "incident", "artifacts": ["finding"]}]


FINISH = {"finish": {"summary": "s", "artifacts": {"finding": "company:globex labels: []"}}}
READ = {"call": "read_artifact", "arguments": {"name": "finding"}}


def _publish_chain(acme: World, root: Access) -> None:
    acme.publish(root, SOURCE, emits("found.0"), **script(FINISH))
    for i, agent in enumerate(HOPS):
        acme.publish(root, agent, emits(f"found.{i + 1}"), [f"found.{i}"], **script(READ, FINISH))
    for agent in OUTSIDE:
        acme.publish(root, agent, [], ["found.0"], **script(READ, FINISH))


def _ended(shop: Shop, run: Run) -> Run:
    wait_until(lambda: stored(shop.store, run.id).ended, "the run ends")
    return stored(shop.store, run.id)


def _files(folder: Path) -> Sequence[Path]:
    return sorted(path for path in (folder / "content").rglob("*") if path.is_file())


@pytest.mark.promise("A-3", "A-5", "A-8", "A-9")
def test_untrusted_data_is_on_what_comes_of_it_three_hops_later_and_never_leaves_its_area(acme: World, tmp_path: Path) -> None:
    root = acme.person("acme:ana", "author=*", "viewer=*")
    _publish_chain(acme, root)
    content = folder_content(tmp_path)
    shop = Shop(store=acme.store, content=content, tools={})
    run = OpenRun(store=acme.store, content=content)(root, ref(SOURCE), "from the web", parse_labels(["untrusted"]))
    with worker(acme.store, tmp_path):
        run = _ended(shop, run)
        source = run
        for i, agent in enumerate(HOPS):
            started = shop.start(run, f"found.{i}", ref(agent))
            assert isinstance(started, Run)
            assert texts(started.labels) == ("area:acme/platform",)
            run = _ended(shop, started)
    assert run.hop == 3
    with acme.store.reading() as work:
        published = work.artifacts.of_run(run.id)
    assert {texts(artifact.labels) for artifact in published.values()} == {("area:acme/platform", "untrusted")}
    [result] = [step for step in shop.trail(run) if isinstance(step, ToolResult)]
    assert (result.result, shop.text(result)) == (ResultKind.DONE, "company:globex labels: []")
    assert fault_of(acme.store, run.id) is None
    _stopped_everywhere_outside(acme, shop, source, tmp_path)


@pytest.mark.promise("A-8", "A-9", "R-16")
def test_the_dispatcher_carries_labels_down_a_chain_and_opens_nothing_beyond_the_barrier(acme: World, tmp_path: Path) -> None:
    root = acme.person("acme:ana", "author=*", "viewer=*")
    _publish_chain(acme, root)
    first = OpenRun(store=acme.store, content=folder_content(tmp_path))(
        root, ref(SOURCE), "from the web", parse_labels(["untrusted"])
    )
    dispatch = DispatchEvents(store=acme.store, backoff=BACKOFF)

    def over() -> bool:
        while dispatch() is not None:
            pass
        with acme.store.reading() as work:
            runs = work.runs.of_chain(first.id, 100)
            return len(runs) == 1 + len(HOPS) and all(run.ended for run in runs) and not work.deliveries.due()

    with worker(acme.store, tmp_path):
        wait_until(over, "the chain ends")
    with acme.store.reading() as work:
        runs = work.runs.of_chain(first.id, 100)
        outcomes = work.deliveries.outcomes([run.id for run in runs])
        last = work.artifacts.of_run(runs[-1].id)
    assert [(run.agent.text, run.hop) for run in runs] == [(agent, hop) for hop, agent in enumerate([SOURCE, *HOPS])]
    assert {texts(artifact.labels) for artifact in last.values()} == {("area:acme/platform", "untrusted")}
    stopped = [outcome for outcome in outcomes if outcome.kind is OutcomeKind.BARRIER]
    assert {outcome.listener.text for outcome in stopped if outcome.listener} == set(OUTSIDE)
    assert {outcome.run_id for outcome in stopped} == {None}
    assert {outcome.details["label"] for outcome in stopped} == {"area:acme/platform"}
    assert sum(outcome.kind is OutcomeKind.OPENED for outcome in outcomes) == len(HOPS)


def _stopped_everywhere_outside(acme: World, shop: Shop, source: Run, folder: Path) -> None:
    with acme.store.reading() as work:
        before = [found.id for found in work.runs.page(["*"], None, 100)]
    files = _files(folder)
    for agent in OUTSIDE:
        judged = shop.start(source, "found.0", ref(agent))
        assert isinstance(judged, Judgement)
        assert (judged.kind, judged.crossing is not None) == (OutcomeKind.BARRIER, True)
        assert judged.crossing is not None
        assert judged.crossing.label.text == "area:acme/platform"
        assert judged.crossing.rule == "data of the area acme/platform stays in it, its company and the installation"
    with acme.store.reading() as work:
        assert [found.id for found in work.runs.page(["*"], None, 100)] == before
    assert _files(folder) == files


@pytest.mark.promise("A-9", "A-10")
def test_a_run_that_should_never_have_been_opened_reads_nothing_either(acme: World, tmp_path: Path) -> None:
    """What a broken or older dispatcher lets through, the Gate stops; a person is not even asked."""
    root = acme.person("acme:ana", "author=*", "viewer=*")
    _publish_chain(acme, root)
    content = folder_content(tmp_path)
    shop = Shop(store=acme.store, content=content, tools={})
    source = OpenRun(store=acme.store, content=content)(root, ref(SOURCE))
    with worker(acme.store, tmp_path):
        source = _ended(shop, source)
        delivery = shop.delivery(source, "found.0")
        runs = [_ended(shop, shop._by_event(source, delivery, ref(agent))) for agent in OUTSIDE]
    for run in runs:
        opening, *steps, closing = shop.trail(run)
        assert isinstance(opening, Opening)
        assert isinstance(closing, Closing)
        [ruling] = [step for step in steps if isinstance(step, GateRuling)]
        assert (ruling.ruling.value, ruling.rule) == ("block", "barrier")
        [result] = [step for step in steps if isinstance(step, ToolResult)]
        assert (result.result, result.content, result.labels) == (ResultKind.REFUSED, None, ())
        with acme.store.reading() as work:
            assert work.approvals.of_call(run.id, 1) is None
            labels = {texts(artifact.labels) for artifact in work.artifacts.of_run(run.id).values()}
        scope = run.agent.scope
        assert labels == {(f"{'area' if '/' in scope else 'company'}:{scope}",)}


@pytest.mark.promise("A-9")
def test_data_that_a_person_brings_meets_the_barrier_before_anything_of_it_is_stored(acme: World, tmp_path: Path) -> None:
    root = acme.person("acme:ana", "author=*", "viewer=*")
    acme.publish(root, "acme/finance:payer")
    open_run = OpenRun(store=acme.store, content=folder_content(tmp_path))
    for label in ("area:acme/platform", "company:globex"):
        with pytest.raises(InvalidInput, match="labels"):
            open_run(root, ref("acme/finance:payer"), "numbers", parse_labels([label]))
    assert _files(tmp_path) == []
    with acme.store.reading() as work:
        assert work.runs.page(["*"], None, 10) == []
    run = open_run(root, ref("acme/finance:payer"), "numbers", parse_labels(["company:acme", "secret"]))
    assert texts(run.labels) == ("area:acme/finance", "company:acme", "secret")


@pytest.mark.promise("A-1", "A-5", "A-7")
def test_a_worker_process_keeps_and_reads_content_in_a_bucket(acme: World, tmp_path: Path) -> None:
    root = acme.person("acme:ana", "author=*", "viewer=*")
    _publish_chain(acme, root)
    with bucket_service() as (endpoint, _):
        content = open_content(f"s3://{BUCKET}/acme", endpoint)
        run = OpenRun(store=acme.store, content=content)(root, ref(SOURCE), "from the web")
        shop = Shop(store=acme.store, content=content, tools={})
        address = f"s3://{BUCKET}/acme"
        with worker(acme.store, tmp_path, address, AGENTPLAT_CONTENT_ENDPOINT=endpoint):
            source = _ended(shop, run)
            started = shop.start(source, "found.0", ref(HOPS[0]))
            assert isinstance(started, Run)
            reader = _ended(shop, started)
        [result] = [step for step in shop.trail(reader) if isinstance(step, ToolResult)]
        assert (result.result, shop.text(result)) == (ResultKind.DONE, "company:globex labels: []")
    assert not (tmp_path / "content").exists()
