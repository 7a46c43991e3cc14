"""Budgets of delegated work: set aside from the delegator, given back at the end, and never more than there is."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.access import OPERATOR, Access, Grant, Role
from agentplat.domain.budgets import HolderKind, Unit, run_holder
from agentplat.domain.chains import OpenedBy
from agentplat.domain.delegation import EXHAUSTED
from agentplat.domain.errors import Conflict, RunWaits
from agentplat.domain.runs import Run, RunState
from agentplat.domain.steps import ResultKind, Ruling, ToolResult
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.manage_budgets import ManageBudgets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agentplat.delegating import BUDGET
from tests.agentplat.delegation_records import Desk, desk, named
from tests.agentplat.processes import END_S, ROOT, environment


@pytest.fixture
def office(store: SqlStore, tmp_path: Path) -> Desk:
    """A workspace on each kind of database."""
    return desk(store, tmp_path)


@pytest.fixture
def desk_on_sqlite(sqlite_url: str, tmp_path: Path) -> Iterator[Desk]:
    """A workspace on SQLite, for what does not depend on the kind of database."""
    with closing(open_store(sqlite_url)) as store:
        yield desk(store, tmp_path)


@pytest.mark.promise("D-6")
def test_a_limit_of_three_holds_for_the_whole_tree_whatever_the_child_would_allow_itself(office: Desk) -> None:
    office.agent("A", budget={"tool_calls": 3})
    office.agent("B", budget={"tool_calls": 50})
    parent = office.run("A")
    child = office.handed(parent, "B")
    assert office.of_run(child)["ceiling"] == 2
    rulings = [office.note(child, call).ruling for call in (1, 2, 3)]
    assert rulings == [Ruling.ALLOW, Ruling.ALLOW, Ruling.BLOCK]
    assert office.note(parent, 2).ruling is Ruling.BLOCK
    office.end(child, RunState.CANCELLED)
    spent = office.of_run(parent)
    assert (spent["spent"], spent["reserved"]) == (3, 0)
    assert sum(row["spent"] for row in office.rows("budgets") if row["holder"] == "scope" and row["key"] == "acme") >= 3


@pytest.mark.promise("D-6")
@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED, RunState.CANCELLED])
def test_what_is_unspent_comes_back_however_the_child_ends(office: Desk, state: RunState) -> None:
    office.agent("A", budget={"tool_calls": 10})
    office.agent("B")
    parent = office.run("A")
    child = office.handed(parent, "B", budget={"tool_calls": 6})
    bound = office.of_run(parent)
    assert (bound["spent"], bound["reserved"]) == (1, 6)
    office.note(child, 1)
    office.end(child, state)
    back = office.of_run(parent)
    assert (back["spent"], back["reserved"]) == (2, 0)
    assert office.of_agent("A")["spent"] == 2
    assert [row["settled"] for row in office.rows("escrows")] == [1, 1]


@pytest.mark.promise("D-6")
def test_a_delegator_with_nothing_left_is_refused_and_one_without_ceiling_passes(office: Desk) -> None:
    office.agent("A", budget={"tool_calls": 2})
    office.agents("B", "C")
    parent = office.run("A")
    office.handed(parent, "B", budget={"tool_calls": 1})
    free = office.run("C")
    assert office.of_run(office.handed(free, "B", budget={"tool_calls": 4}))["ceiling"] == 4
    assert office.rows("escrows") == [row for row in office.rows("escrows") if row["delegator_run_id"] == parent.id]
    ManageBudgets(store=office.store).set(OPERATOR, parent.id, Unit.TOOL_CALLS, 3)
    assert office.refused(parent, "C") == EXHAUSTED


@pytest.mark.promise("D-6")
def test_an_area_without_anything_left_delegates_nothing(office: Desk) -> None:
    office.agents("A", "B")
    ManageBudgets(store=office.store).set(OPERATOR, "acme/platform", Unit.MONEY, 0)
    assert office.refused(office.run("A"), "B") == EXHAUSTED


@pytest.mark.promise("D-6")
def test_what_goes_on_after_its_delegator_ended_stays_set_aside_further_up(office: Desk) -> None:
    office.agent("A", budget={"tool_calls": 10})
    office.agents("B", "C")
    first = office.run("A")
    second = office.handed(first, "B", budget={"tool_calls": 7})
    third = office.handed(second, "C", budget={"tool_calls": 4})
    office.note(third, 1)
    office.finish(second)
    bound = office.of_run(first)
    assert (bound["spent"], bound["reserved"]) == (2, 4)
    office.note(third, 2)
    office.finish(third)
    assert (office.of_run(first)["spent"], office.of_run(first)["reserved"]) == (4, 0)
    assert (office.of_agent("B")["spent"], office.of_agent("B")["reserved"]) == (3, 0)
    assert all(row["settled"] is not None for row in office.rows("escrows"))


@pytest.mark.promise("D-6")
def test_scopes_are_charged_once_for_what_is_delegated_in_them_and_out_of_them(store: SqlStore, tmp_path: Path) -> None:
    wide = desk(store, tmp_path, scope="acme")
    wide.agent("acme/platform:A", budget={"tool_calls": 10})
    wide.agents("acme:B", "acme/platform:C")
    first = wide.run("acme/platform:A")
    second = wide.handed(first, "acme:B")
    third = wide.handed(second, "acme/platform:C")
    wide.note(third, 1)
    for run in (third, second, first):
        wide.finish(run)
    for scope in ("*", "acme", "acme/platform"):
        counted = wide.budget("scope", scope)
        assert (counted["spent"], counted["reserved"]) == (3, 0), scope
    assert wide.of_run(first)["spent"] == 3


@pytest.mark.promise("D-6")
def test_the_ceiling_of_a_delegated_run_is_never_set_above_what_was_set_aside(desk_on_sqlite: Desk) -> None:
    desk_on_sqlite.agent("A", budget={"tool_calls": 5})
    desk_on_sqlite.agent("B")
    child = desk_on_sqlite.handed(desk_on_sqlite.run("A"), "B", budget={"tool_calls": 2})
    manage = ManageBudgets(store=desk_on_sqlite.store)
    for ceiling in (3, None):
        with pytest.raises(Conflict, match="at most 2"):
            manage.set(OPERATOR, child.id, Unit.TOOL_CALLS, ceiling)
    manage.set(OPERATOR, child.id, Unit.TOOL_CALLS, 1)
    assert desk_on_sqlite.of_run(child)["ceiling"] == 1


_names = itertools.count()
_acts = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["note", "delegate", "delegate", "delegate all", "end"]), st.integers(0, 9)),
    min_size=1,
    max_size=14,
)


@pytest.mark.promise("D-6")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=_acts, ceiling=st.integers(1, 20))
def test_no_tree_of_delegations_spends_or_binds_more_than_its_root_may(
    desk_on_sqlite: Desk, acts: list[tuple[int, str, int]], ceiling: int
) -> None:
    root = f"root{next(_names)}"
    desk_on_sqlite.agent(root, budget={"tool_calls": ceiling})
    first = desk_on_sqlite.run(root)
    runs: list[Run] = [first]
    calls: dict[int, int] = {}
    for which, act, amount in acts:
        run = runs[which % len(runs)]
        state = desk_on_sqlite.now(run.id).state
        if state is not RunState.RUNNING:
            continue
        if act == "end":
            if run is not first:
                desk_on_sqlite.end(run, RunState.FAILED)
            continue
        calls[run.id] = calls.get(run.id, 0) + 1
        if act == "note":
            desk_on_sqlite.note(run, calls[run.id])
        else:
            child = f"child{next(_names)}"
            desk_on_sqlite.agent(child, budget={"tool_calls": 50})
            asked = {} if act == "delegate all" else {"budget": {"tool_calls": amount}}
            result: ToolResult | None = None
            told: dict[str, Any] = {}
            with contextlib.suppress(RunWaits):
                result, told = desk_on_sqlite.delegate(run, child, **asked)
            if result is not None and result.result is ResultKind.DONE:
                runs.append(desk_on_sqlite.hold(told["run"]))
        for row in desk_on_sqlite.rows("budgets"):
            assert row["ceiling"] is None or row["spent"] + row["reserved"] <= row["ceiling"]
            assert row["reserved"] >= 0
    for run in reversed(runs):
        if not desk_on_sqlite.now(run.id).ended:
            desk_on_sqlite.end(run, RunState.FAILED)
    total = sum(row["settled"] for row in _calls_of(desk_on_sqlite, runs))
    if calls.get(first.id):
        counted = desk_on_sqlite.of_run(first)
        assert (counted["spent"], counted["reserved"]) == (total, 0)
    assert total <= ceiling


def _calls_of(office: Desk, runs: list[Run]) -> list[dict[str, int]]:
    """What each call of the runs took of the unit that the runs' own budgets count."""
    own = {str(run.id): run.id for run in runs}
    budgets = {
        row["id"] for row in office.rows("budgets") if row["holder"] == "run" and row["unit"] == "tool_calls" and row["key"] in own
    }
    return [row for row in office.rows("reservations") if row["budget_id"] in budgets]


def _process(office: Desk, when: str, runs: list[Run]) -> subprocess.Popen[str]:
    url = office.store._engine.url.render_as_string(hide_password=False)
    arguments = [url, office.folder, office.workspace.id, office.space.id, when, *(run.id for run in runs)]
    command = [sys.executable, "-m", "tests.agentplat.delegating", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, encoding="utf-8")


@pytest.mark.promise("D-6")
def test_sixty_four_delegations_at_once_from_several_processes_bind_no_more_than_there_is(office: Desk) -> None:
    office.agents("A", "B")
    with office.store.writing() as work:
        agent = office.found(work, "A")
    ManageBudgets(store=office.store).set(OPERATOR, named("A"), Unit.TOKENS, 100)
    runs = [office.run("A") for _ in range(64)]
    processes = [_process(office, "never", runs[i::4]) for i in range(4)]
    told = [json.loads(line) for process in processes for line in process.communicate(timeout=END_S)[0].splitlines()]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert len(told) == 64
    done = [run for run, result, _ in told if result == "done"]
    assert {reason for _, result, reason in told if result == "refused"} == {EXHAUSTED}
    bound = office.budget("agent", str(agent.id), "tokens")
    opened = [row["amount"] for row in office.rows("escrows") if row["budget_id"] == bound["id"]]
    # The last one gets what is left, which is less than it asked for.
    assert sorted(opened) == [1] + [BUDGET["tokens"]] * 33
    assert len(done) == len(office.rows("tickets")) == len(opened)
    assert (bound["spent"], bound["reserved"]) == (0, 100)


@pytest.mark.promise("D-6")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_while_it_delegates_leaves_nothing_and_the_call_is_made_once(office: Desk, when: str) -> None:
    office.agent("A", budget={"tokens": 10})
    office.agent("B")
    run = office.run("A")
    process = _process(office, when, [run])
    process.communicate(timeout=END_S)
    assert process.returncode == -signal.SIGKILL
    assert (office.rows("tickets"), office.rows("escrows"), office.rows("messages")) == ([], [], [])
    assert [row["id"] for row in office.rows("runs")] == [run.id]
    given = {"agent": "B", "title": f"for {run.id}", "description": "do it", "budget": BUDGET}
    for _ in range(2):
        _, result = office.call(office.now(run.id), 1, "delegate_task", given)
        assert result.result is ResultKind.DONE
    assert len(office.rows("tickets")) == 1
    assert (office.of_run(run, "tokens")["spent"], office.of_run(run, "tokens")["reserved"]) == (0, 3)


@pytest.mark.promise("D-6")
def test_work_that_a_delegate_mentions_is_not_paid_from_the_escrow(desk_on_sqlite: Desk) -> None:
    desk_on_sqlite.agent("A", budget={"tool_calls": 10})
    desk_on_sqlite.agents("B", "C")
    child = desk_on_sqlite.handed(desk_on_sqlite.run("A"), "B", budget={"tool_calls": 2})
    mentioned = desk_on_sqlite.run("C", None, child, OpenedBy.MENTION)
    desk_on_sqlite.note(mentioned, 1)
    with desk_on_sqlite.store.reading() as work:
        [own] = [one for one in work.budgets.of([run_holder(child.id)]) if one.unit is Unit.TOOL_CALLS]
    assert (own.spent, own.ceiling) == (0, 2)


@pytest.mark.promise("D-6", "O-5")
def test_the_budgets_of_a_delegated_run_show_no_scope_that_its_reader_may_not_read(store: SqlStore, tmp_path: Path) -> None:
    wide = desk(store, tmp_path, scope="acme")
    wide.agents("acme/platform:A", "acme:B")
    child = wide.handed(wide.run("acme/platform:A"), "acme:B")
    wide.note(child, 1)
    for scope, seen in (("*", {"*", "acme", "acme/platform"}), ("acme", {"acme", "acme/platform"})):
        reader = Access(None, frozenset({Grant(Role.VIEWER, scope)}))
        shown = ManageBudgets(store=store).show(reader, child.id)
        assert {one.holder.key for one in shown if one.holder.kind is HolderKind.SCOPE} == seen
