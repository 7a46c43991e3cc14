"""Small cases about chains and dispatch from public bug reports of this field, each as a test of its kind."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.chains import ChainLimits, OutcomeKind, Position, position_of
from agentplat.domain.errors import InvalidInput
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Closing, Warned, WithheldWhy
from agentplat.store.migrating import migrate
from agentplat.store.port import Work
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.dispatch_events import Dispatched

from tests.acceptance.older.worker import OlderWorker
from tests.agentplat.chains import Bench, two_agent_loop
from tests.agentplat.run_records import (
    DEVELOPER,
    REVIEWER,
    agent_of,
    by_event,
    execute,
    finished,
    leased,
    new_run,
    opened,
    stored,
)
from tests.agentplat.world import World

IN_TESTS = {
    "chain": (
        "chn-reviewer-loop",
        "chn-per-trigger-modes",
        "chn-delivered-twice",
        "chn-three-levels",
        "chn-sub-run-resets-timer",
        "chn-mid-flight-publish",
        "chn-legit-self-writes",
        "chn-self-never-starts",
        "chn-wanted-loop-stopped-silently",
        "chn-lineage-header-lost",
    ),
    "dispatch": (
        "dsp-gap-never-filled",
        "dsp-sequence-gap",
        "dsp-more-than-a-batch",
        "dsp-silent-none",
        "dsp-second-turn",
        "dsp-new-listener-shared-cursor",
        "dsp-big-gap",
        "dsp-pinned-cursor",
        "dsp-page-ceiling",
    ),
}


@pytest.fixture
def bench(store: SqlStore, tmp_path: Path) -> Bench:
    return Bench(store=store, folder=tmp_path)


@pytest.fixture
def on_postgres(postgres_url: str, tmp_path: Path) -> Iterator[Bench]:
    """Where one writer commits before another that began earlier; SQLite has one writer at a time."""
    migrate(postgres_url)
    with closing(open_store(postgres_url)) as opened_store:
        yield Bench(store=opened_store, folder=tmp_path)


def _cases(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["area"] in IN_TESTS}


def test_every_case_about_chains_and_dispatch_has_its_test(shared_data: Path) -> None:
    assert sorted(_cases(shared_data)) == sorted(name for names in IN_TESTS.values() for name in names)


def _case(shared_data: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    case = _cases(shared_data)[name]
    return case["given"], case["expect"]


def _ref(name: str) -> Ref:
    return Ref("acme", name)


def _declare(bench: Bench, agents: list[dict[str, Any]]) -> None:
    for one in agents:
        agent_of(bench.store, _ref(one["agent"]), tuple(one["emits"]), tuple(one["listens"]))


def _set_limits(bench: Bench, hops: int = 8, runs: int = 256) -> None:
    with bench.store.writing() as work:
        work.chains.set_limits(ChainLimits(hops=hops, runs=runs))


def _names(bench: Bench) -> list[str]:
    return [run.agent.name for run in bench.all_runs()]


def _published(world: World, agents: list[dict[str, Any]], last: str) -> list[list[str]]:
    """The loops that publishing the last of the agents warns of."""
    ana = world.person("acme:ana", "author=acme")
    body = None
    for one in sorted(agents, key=lambda one: bool(one["agent"] == last)):
        body = world.publish(ana, f"acme:{one['agent']}", one["emits"], one["listens"]).body
    assert body is not None
    assert body["verification"] == "complete"
    return [[name.partition(":")[2] for name in (*loop["agents"], loop["agents"][0])] for loop in body["loops"]]


# Chains


@pytest.mark.promise("R-7", "R-18")
def test_a_loop_of_a_reviewer_is_warned_about_and_makes_nine_runs(acme: World, tmp_path: Path, shared_data: Path) -> None:
    given, expect = _case(shared_data, "chn-reviewer-loop")
    assert _published(acme, given["agents"], given["publish"]) == expect["warning"]
    bench = Bench(store=acme.store, folder=tmp_path)
    opened(acme.store, Ref("acme", "executor"))
    bench.settle()
    assert Counter(_names(bench)) == {"executor": 5, "code_reviewer": 4}
    assert expect["runs"] == "at most 9 in the chain: 5 of the executor, 4 of the reviewer"
    withheld = bench.closing(bench.all_runs()[-1]).withheld
    assert withheld is not None
    assert withheld.loop is not None
    assert withheld.loop.warned is Warned.YES


@pytest.mark.promise("R-7")
def test_no_trigger_has_a_mode_of_its_own_and_the_limit_holds_for_all(acme: World, tmp_path: Path, shared_data: Path) -> None:
    given, expect = _case(shared_data, "chn-per-trigger-modes")
    assert expect["ours"].startswith("no per-trigger mode")
    ana = acme.person("acme:ana", "author=acme")
    for mode in given["modes"]:
        with pytest.raises(InvalidInput):
            acme.publish(ana, "acme:A", ["A>B"], [{"event": "B>A", "mode": mode}])  # type: ignore[list-item]
    assert _published(acme, given["agents"], "B") == [["B", "A", "B"]]
    bench = Bench(store=acme.store, folder=tmp_path)
    opened(acme.store, Ref("acme", "A"))
    bench.settle()
    assert _names(bench) == ["A", "B"] * 4 + ["A"]


@pytest.mark.promise("R-6", "R-15")
def test_an_event_of_hop_2_that_is_delivered_twice_opens_one_run_at_hop_3(bench: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "chn-delivered-twice")
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    opened(bench.store)
    for _ in range(3):
        bench.carry()
        bench.sweep()
    *_, source, third = bench.all_runs()
    assert source.hop == 2
    assert source.chain is not None
    # A consumer that counts deliveries would add one more each time.
    for hop in (3, 4):
        with bench.store.writing() as work:
            again = by_event(source, "there", hop=hop)
            assert work.runs.open(new_run(work, third.agent, **again), 1) is None
    at_3 = [run for run in bench.all_runs() if run.source_run_id == source.id]
    assert len(at_3) == expect["runs_at_hop_3"]
    assert position_of(at_3[0]) == Position(hop=expect["position"], chain=source.chain)
    assert not [run for run in bench.all_runs() if run.hop == expect["not_"]]


@pytest.mark.promise("R-6", "R-7")
def test_with_a_limit_of_three_the_run_that_no_event_opened_and_three_more_execute(bench: Bench, shared_data: Path) -> None:
    given, expect = _case(shared_data, "chn-three-levels")
    names = given["flow"].split(" starts ")
    for before, name in zip(["", *names], names, strict=False):
        agent_of(bench.store, _ref(name), (f"by {name}",), (f"by {before}",))
    _set_limits(bench, hops=given["limit"])
    opened(bench.store, _ref("A"))
    bench.settle()
    assert _names(bench) == expect["run"]
    assert {run.state for run in bench.all_runs()} == {RunState.FINISHED}
    assert [name for name in names if name not in _names(bench)] == expect["not_run"]


@pytest.mark.promise("R-12")
def test_a_run_that_a_run_opened_gets_no_limits_of_its_own(bench: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "chn-sub-run-resets-timer")
    assert "bound the whole chain" in expect["say"]
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    _set_limits(bench, hops=100, runs=5)
    first = opened(bench.store)
    bench.settle()
    runs = bench.all_runs()
    assert [(run.hop, run.chain) for run in runs] == [(hop, first.id) for hop in range(5)]
    assert [one.kind for one in bench.outcomes(runs[-1])] == [OutcomeKind.CHAIN_RUNS_SPENT]


@pytest.mark.promise("R-8")
def test_a_version_published_while_a_run_is_under_way_changes_nothing_of_what_it_publishes(bench: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "chn-mid-flight-publish")
    assert expect["published"] == "what version 1 declares"
    agent_of(bench.store, DEVELOPER, ("done",))
    agent_of(bench.store, REVIEWER, (), ("done",))
    run = opened(bench.store)
    held = leased(bench.store)
    agent_of(bench.store, DEVELOPER, ())
    bench.finish(held)
    # And who hears it is read when it leaves: the reviewer has stopped listening, another agent has begun to.
    agent_of(bench.store, REVIEWER, (), ("other",))
    agent_of(bench.store, _ref("new"), (), ("done",))
    bench.sweep()
    assert bench.closing(run).published == ("done",)
    # The event's artifact is listed as missing, so nothing of the area is carried to the company.
    assert bench.kinds(run) == {"new": OutcomeKind.OPENED}


@pytest.mark.promise("R-11")
def test_an_agent_that_writes_back_under_another_name_is_neither_a_loop_nor_stopped(
    acme: World, tmp_path: Path, shared_data: Path
) -> None:
    given, expect = _case(shared_data, "chn-legit-self-writes")
    assert len(_published(acme, given["agents"], "enrich")) == expect["loops"]
    agent_of(acme.store, Ref("acme", "source"), ("user.seen",))
    agent_of(acme.store, Ref("acme", "sink"), (), ("user.enriched",))
    bench = Bench(store=acme.store, folder=tmp_path)
    opened(acme.store, Ref("acme", "source"))
    bench.settle()
    assert _names(bench) == ["source", "enrich", "sink"]
    assert expect["blocked"] is False


@pytest.mark.promise("R-11", "R-16")
def test_an_agent_that_hears_itself_is_not_started_and_the_outcome_says_why(acme: World, tmp_path: Path, shared_data: Path) -> None:
    given, expect = _case(shared_data, "chn-self-never-starts")
    assert _published(acme, given["agents"], "a") == [["a", "a"]]
    bench = Bench(store=acme.store, folder=tmp_path)
    run = opened(acme.store, Ref("acme", "a"))
    bench.settle()
    assert len(bench.all_runs()) - 1 == expect["runs_started"]
    assert bench.kinds(run) == {"a": OutcomeKind.OWN_EVENT}


@pytest.mark.promise("R-7", "R-18")
def test_a_wanted_loop_that_is_stopped_says_so_where_its_owner_looks_and_its_last_run_succeeds(
    bench: Bench, shared_data: Path
) -> None:
    _, expect = _case(shared_data, "chn-wanted-loop-stopped-silently")
    assert expect["step"] == "withheld events, the limit, the first run of the chain"
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    _set_limits(bench, hops=16)
    first = opened(bench.store)
    bench.settle()
    last = bench.all_runs()[-1]
    withheld = bench.closing(last).withheld
    assert withheld is not None
    assert (last.hop, last.state, withheld.events, withheld.limit, withheld.chain) == (
        16,
        RunState.FINISHED,
        ("there",),
        16,
        first.id,
    )


@pytest.mark.promise("R-9")
def test_a_run_whose_hop_was_lost_on_the_way_publishes_nothing_and_says_that_its_chain_is_unknown(
    bench: Bench, database_url: str, shared_data: Path
) -> None:
    _, expect = _case(shared_data, "chn-lineage-header-lost")
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    source = bench.run(DEVELOPER)
    with closing(OlderWorker(database_url)) as older:
        [lost] = older.dispatch(source.id)
    bench.settle()
    assert (position_of(stored(bench.store, lost)), expect["position"]) == (None, "unknown")
    withheld = bench.closing(stored(bench.store, lost)).withheld
    assert withheld is not None
    assert withheld.why is WithheldWhy.CHAIN_UNKNOWN
    assert len(bench.all_runs()) == 2


# Dispatch


def _closed(work: Work, run: Run) -> None:
    work.runs.close(run, Closing(state=RunState.FINISHED), 2)


def _held(bench: Bench, count: int) -> list[Run]:
    for _ in range(count):
        opened(bench.store)
    return [leased(bench.store) for _ in range(count)]


def _swept(bench: Bench) -> list[int]:
    """The runs that a sweep handles, in its order."""
    order = []
    while (done := bench.dispatch()) is not None:
        assert isinstance(done, Dispatched)
        order.append(done.run_id)
    return order


class Undone(Exception):
    """A transaction that is not to commit."""


def _close_and_undo(bench: Bench, run: Run) -> None:
    with bench.store.writing() as work:
        _closed(work, run)
        raise Undone


@pytest.mark.promise("R-14")
def test_a_number_that_was_drawn_and_never_committed_holds_up_nobody(on_postgres: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "dsp-gap-never-filled")
    ten, eleven, twelve = _held(on_postgres, 3)
    with pytest.raises(Undone):
        _close_and_undo(on_postgres, ten)
    for run in (eleven, twelve):
        finished(on_postgres.store, run)
    assert _swept(on_postgres) == [eleven.id, twelve.id]
    assert expect == {"dispatched": [11, 12], "waits": "bounded"}


@pytest.mark.promise("R-14")
def test_a_run_that_commits_behind_a_later_one_is_not_lost(on_postgres: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "dsp-sequence-gap")
    early, late = _held(on_postgres, 2)
    with on_postgres.store.writing() as work:
        _closed(work, early)
        finished(on_postgres.store, late)
        assert _swept(on_postgres) == [late.id]
    assert _swept(on_postgres) == [early.id]
    assert expect == {"dispatched": [101, 100], "lost": []}


@pytest.mark.promise("R-13")
def test_more_runs_than_any_batch_are_all_dispatched(bench: Bench, shared_data: Path) -> None:
    given, expect = _case(shared_data, "dsp-more-than-a-batch")
    runs = _held(bench, given["finished_between_sweeps"])
    for run in runs:
        finished(bench.store, run)
    assert len(_swept(bench)) == expect["dispatched"]


@pytest.mark.promise("R-10", "R-16")
def test_what_is_started_on_a_random_graph_is_every_listener_of_what_was_emitted(bench: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "dsp-silent-none")
    assert expect["started"] == "every listener of what was really emitted"
    chance, events = random.Random(5), [f"set {i}" for i in range(25)]
    graph = {f"job {i}": (chance.sample(events, 2), chance.sample(events, 2)) for i in range(25)}
    for name, (emits, listens) in graph.items():
        agent_of(bench.store, _ref(name), tuple(emits), tuple(listens))
    hops = 2
    _set_limits(bench, hops=hops, runs=100_000)
    opened(bench.store, _ref("job 0"))
    bench.settle()
    level = Counter({"job 0": 1})
    for hop in range(hops + 1):
        assert Counter(run.agent.name for run in bench.all_runs() if run.hop == hop) == level
        following: Counter[str] = Counter()
        for name, count in level.items():
            for event in graph[name][0]:
                following.update({one: count for one, (_, heard) in graph.items() if event in heard and one != name})
        level = following
    assert len(bench.all_runs()) > 10


@pytest.mark.promise("R-15")
def test_a_listener_of_two_events_is_started_by_each_of_them(bench: Bench, shared_data: Path) -> None:
    given, expect = _case(shared_data, "dsp-second-turn")
    _declare(bench, given["agents"])
    agent_of(bench.store, _ref("start"), ("a",))
    _set_limits(bench, hops=3)
    opened(bench.store, _ref("start"))
    bench.settle()
    runs = bench.all_runs()
    assert [(run.agent.name, run.event) for run in runs] == [
        ("start", None),
        ("handler", "a"),
        ("router", "done"),
        ("handler", "b"),
    ]
    assert _names(bench).count("handler") == expect["handler_runs"]


@pytest.mark.promise("R-8")
def test_a_listener_published_behind_an_event_hears_the_later_ones_only(bench: Bench, shared_data: Path) -> None:
    _, expect = _case(shared_data, "dsp-new-listener-shared-cursor")
    agent_of(bench.store, DEVELOPER, ("e",))
    before = bench.run(DEVELOPER)
    bench.sweep()
    agent_of(bench.store, REVIEWER, (), ("e",))
    bench.sweep()
    started = [run for run in bench.all_runs() if run.source_run_id == before.id]
    assert len(started) == expect["started_by_e"]
    later = bench.run(DEVELOPER)
    bench.sweep()
    assert bench.kinds(later) == {"reviewer": OutcomeKind.OPENED}


@pytest.mark.promise("R-13")
def test_a_gap_between_numbers_that_is_larger_than_a_page_ends_no_sweep(bench: Bench, shared_data: Path) -> None:
    given, _ = _case(shared_data, "dsp-big-gap")
    first, last = given["numbers"]
    runs = _held(bench, last - first + 1)
    for run in (runs[0], runs[-1]):
        finished(bench.store, run)
    assert _swept(bench) == [runs[0].id, runs[-1].id]
    assert runs[-1].id - runs[0].id > given["page"]


@pytest.mark.promise("R-13")
def test_more_runs_of_one_moment_than_a_batch_are_all_dispatched_once(bench: Bench, database_url: str, shared_data: Path) -> None:
    given, expect = _case(shared_data, "dsp-pinned-cursor")
    assert "never the same window twice" in expect["say"]
    runs = _held(bench, given["rows_in_overlap"])
    for run in runs:
        finished(bench.store, run)
    execute(database_url, "UPDATE runs SET finished_at = 5")
    assert _swept(bench) == [run.id for run in runs]


@pytest.mark.promise("R-14")
def test_what_was_invisible_while_the_others_were_read_is_dispatched_once_it_is_visible(
    on_postgres: Bench, shared_data: Path
) -> None:
    given, expect = _case(shared_data, "dsp-page-ceiling")
    runs = _held(on_postgres, given["persisted"])
    [hidden] = given["invisible_while_reading"]
    with on_postgres.store.writing() as work:
        _closed(work, runs[hidden - 1])
        others = [run for run in runs if run is not runs[hidden - 1]]
        for run in others:
            finished(on_postgres.store, run)
        swept = _swept(on_postgres)
        assert swept == [run.id for run in others]
    assert _swept(on_postgres) == [runs[hidden - 1].id]
    assert len(swept) + 1 == expect["dispatched"]
