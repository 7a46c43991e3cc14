"""Runs looked at together, and declarations by the many, on every kind of database."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.budgets import Unit
from agentplat.domain.insights import RunFilter
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.store.sql import SqlStore
from agentplat.usecases.monitor_runs import MonitorRuns
from agentplat.usecases.read_graph import ReadGraph

from tests.agentplat.run_records import DEVELOPER, REVIEWER, agent_of, finished, leased, opened
from tests.agentplat.tool_records import shop

FAR = Ref("globex", "spy")
EVERYTHING = Access(None, frozenset({Grant(Role.VIEWER, "*")}))
ACME = Access(None, frozenset({Grant(Role.VIEWER, "acme")}))
PAYER = Ref("acme/finance", "payer")


def _three(store: SqlStore) -> tuple[Run, Run, Run]:
    """A finished run, a queued one, and one outside of acme."""
    first = opened(store, DEVELOPER)
    finished(store, leased(store))
    return first, opened(store, REVIEWER), opened(store, FAR)


@pytest.mark.promise("U-6")
def test_the_log_is_of_the_scope_the_agent_the_states_and_the_period_asked_for(store: SqlStore) -> None:
    done, queued, far = _three(store)
    monitor = MonitorRuns(store=store)

    def ids(access: Access, **which: object) -> list[int]:
        return [one.run.id for one in monitor.log(access, RunFilter(**{"scopes": ("*",), **which}), None, 10)]

    assert ids(EVERYTHING) == [far.id, queued.id, done.id]
    assert ids(ACME) == [queued.id, done.id]
    assert ids(ACME, scopes=("globex",)) == []
    assert ids(EVERYTHING, agent=DEVELOPER) == ids(EVERYTHING, states=(RunState.FINISHED,)) == [done.id]
    assert ids(EVERYTHING, since=2) == ids(EVERYTHING, until=1) == []
    assert ids(EVERYTHING, since=1, until=2) == ids(EVERYTHING)
    assert [one.run.id for one in monitor.log(EVERYTHING, RunFilter(scopes=("*",)), far.id, 1)] == [queued.id]
    # All of them were opened in one millisecond, so that the id decides.
    for before, earlier in ((queued.id, [done.id]), (done.id, []), (far.id + 1, [])):
        assert [one.run.id for one in monitor.log(EVERYTHING, RunFilter(scopes=("*",)), before, 10)] == earlier


@pytest.mark.promise("U-6")
def test_totals_count_what_the_reader_may_see(store: SqlStore, tmp_path: Path) -> None:
    _three(store)
    monitor = MonitorRuns(store=store)
    [done] = monitor.log(ACME, RunFilter(scopes=("acme",), agent=DEVELOPER), None, 10)
    assert done.run.finished_at is not None
    totals = monitor.totals(ACME, RunFilter(scopes=("*",)))
    assert (totals.count, totals.ended, totals.took_ms) == (2, 1, done.run.finished_at - done.run.opened_at)
    assert totals.runs == {RunState.FINISHED: 1, RunState.QUEUED: 1}
    shelf = shop(store, tmp_path)
    for waiting in (leased(store), leased(store)):
        finished(store, waiting)
    shelf.publish(PAYER)
    run = shelf.open(PAYER)
    shelf.call(run, 1, "note", {"text": "a"})
    assert monitor.spent(ACME, run.id)[Unit.TOOL_CALLS] == 1
    assert monitor.totals(ACME, RunFilter(scopes=("acme/finance",))).spent[Unit.TOOL_CALLS] == 1
    assert monitor.totals(ACME, RunFilter(scopes=("acme/platform",))).spent == {}


@pytest.mark.promise("U-9")
def test_progress_is_of_what_is_under_way_of_what_is_asked_about_and_of_what_is_newer(store: SqlStore) -> None:
    done, queued, far = _three(store)
    with store.reading() as work:
        found = work.insights.progress
        assert [one.run_id for one in found([], far.id)] == [queued.id, far.id]
        assert [one.run_id for one in found([done.id], far.id)] == [done.id, queued.id, far.id]
        assert [one.run_id for one in found([], done.id - 1)] == [done.id, queued.id, far.id]
        [first, *_] = found([done.id], far.id)
        assert (first.scope, first.steps, first.state) == ("acme/platform", 2, RunState.FINISHED)
        assert (work.insights.newest(), work.insights.waiting()) == (far.id, set())


@pytest.mark.promise("U-9")
def test_the_roster_tells_who_works_and_since_when_the_others_are_idle(store: SqlStore) -> None:
    _three(store)
    roster = MonitorRuns(store=store).roster(ACME, None)
    assert [(one.agent, len(one.runs)) for one in roster.agents] == [(DEVELOPER, 0), (REVIEWER, 1)]
    [done] = MonitorRuns(store=store).log(ACME, RunFilter(scopes=("acme",), agent=DEVELOPER), None, 10)
    assert [one.idle_since for one in roster.agents] == [done.run.finished_at, None]
    assert MonitorRuns(store=store).roster(ACME, "globex").agents == ()


@pytest.mark.promise("U-8")
def test_a_graph_has_the_members_of_the_scope_and_what_is_around_them_as_far_as_it_may_be_read(store: SqlStore) -> None:
    agent_of(store, DEVELOPER, ("code", "lonely"), ("rejected", "missing"))
    agent_of(store, REVIEWER, ("rejected",), ("code",))
    agent_of(store, PAYER, ("paid",), ("code",))
    agent_of(store, FAR, ("missing",), ("lonely",))
    agent_of(store, DEVELOPER, ("code", "lonely"), ("rejected", "missing"))
    graph = ReadGraph(store=store)(ACME, "acme/platform")
    assert [member.agent for member in graph.members] == [DEVELOPER, REVIEWER]
    assert graph.around == (PAYER,)
    ends = {one.event: (one.emitters, one.listeners) for one in graph.events}
    assert ends == {
        "code": ((DEVELOPER,), (PAYER, REVIEWER)),
        "lonely": ((DEVELOPER,), ()),
        "missing": ((), (DEVELOPER,)),
        "rejected": ((REVIEWER,), (DEVELOPER,)),
    }
    assert ReadGraph(store=store)(EVERYTHING, None).around == ()
