"""Budgets on real stores, with many calls at once: set aside before, settled after, and never overspent."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from agentplat.domain.access import Role
from agentplat.domain.budgets import MOST, Budget, Unit, agent_holder, holders, run_holder, scope_holder
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound, RunWaits
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import BudgetReserved, BudgetSettled, GateRuling, ModelTurn, ResultKind, ToolResult, Waiting
from agentplat.domain.tools import Given
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.charge_turn import ChargeTurn
from agentplat.usecases.manage_budgets import ManageBudgets, Named

from tests.agentplat.access_records import access
from tests.agentplat.run_records import fault_of, stored
from tests.agentplat.tool_records import Shop, shop

DEVELOPER = Ref("acme/platform", "developer")
ADMIN = (Role.ADMIN, "*")
AT_ONCE, PROCESSES, WAIT_S = 64, 4, 300


@pytest.fixture
def platform(store: SqlStore, tmp_path: Path) -> Shop:
    found = shop(store, tmp_path)
    found.publish(DEVELOPER)
    return found


def limit(platform: Shop, named: Named, unit: Unit, ceiling: int | None) -> None:
    ManageBudgets(store=platform.store).set(access(platform.store, "acme:root", ADMIN), named, unit, ceiling)


def counted(platform: Shop, scope: str, unit: Unit) -> Budget:
    with platform.store.reading() as work:
        return next(budget for budget in work.budgets.of([scope_holder(scope)]) if budget.unit is unit)


def _many(platform: Shop) -> list[Run]:
    return [platform.open(DEVELOPER) for _ in range(AT_ONCE)]


def _call_all(url: str, folder: Path, runs: list[Run], tool: str, money: int) -> list[bool]:
    """Make one call in each run at once; whether each was done. Runs in a process of its own."""
    with closing(open_store(url)) as store, ThreadPoolExecutor(len(runs)) as pool:
        platform = shop(store, folder)
        platform.tools[tool].given = Given(result=ResultKind.DONE, data=b"x", took={Unit.MONEY: money})

        def call(run: Run) -> bool:
            try:
                platform.call(run, 1, tool, {"text": "x"})
            except RunWaits:
                return False
            return True

        return list(pool.map(call, runs, timeout=WAIT_S))


@contextmanager
def _processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.promise("A-15")
def test_64_calls_at_once_from_several_processes_do_not_overspend(platform: Shop, database_url: str, tmp_path: Path) -> None:
    limit(platform, "acme", Unit.TOOL_CALLS, 40)
    runs = _many(platform)
    parts = [runs[i::PROCESSES] for i in range(PROCESSES)]
    with _processes() as pool:
        asked = [pool.submit(_call_all, database_url, tmp_path, part, "look", 0) for part in parts]
        done = [flag for future in asked for flag in future.result(WAIT_S)]
    assert sum(done) == 40
    budget = counted(platform, "acme", Unit.TOOL_CALLS)
    assert (budget.spent, budget.reserved, budget.ceiling) == (40, 0, 40)
    waiting = [run for run in runs if stored(platform.store, run.id).state is RunState.WAITING]
    assert len(waiting) == AT_ONCE - 40
    for run in waiting:
        assert stored(platform.store, run.id).waiting_for is WaitingFor.BUDGET
        assert platform.trail(run)[-1] == Waiting(waiting_for=WaitingFor.BUDGET, call=1, ceiling="tool calls of acme")
        assert fault_of(platform.store, run.id) is None


@pytest.mark.promise("A-15")
def test_the_worst_case_is_set_aside_and_what_was_not_taken_comes_back(platform: Shop) -> None:
    """Each call may cost 5 dollars and costs 1: at most 4 at once fit below 20 dollars, and none once 15 are spent."""
    look = platform.tools["look"]
    look.declared = replace(look.declared, money_microusd=5_000_000)
    look.given = Given(result=ResultKind.DONE, data=b"x", took={Unit.MONEY: 1_000_000})
    limit(platform, "*", Unit.MONEY, 20_000_000)
    runs = _many(platform)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda run: _one(platform, run), runs, timeout=WAIT_S))
    budget = counted(platform, "*", Unit.MONEY)
    assert budget.reserved == 0
    assert budget.spent == sum(done) * 1_000_000 <= 16_000_000
    assert 4 <= sum(done) <= 16
    with platform.store.reading() as work:
        assert [work.budgets.open_calls(run.id) for run in runs] == [{}] * AT_ONCE


def _one(platform: Shop, run: Run) -> bool:
    try:
        platform.call(run, 1, "look", {"text": "x"})
    except RunWaits:
        return False
    return True


@pytest.mark.promise("A-15")
@pytest.mark.parametrize("unit", list(Unit))
def test_every_unit_has_a_hard_stop_at_which_the_run_waits_and_goes_on_when_there_is_room(platform: Shop, unit: Unit) -> None:
    declared = replace(platform.tools["look"].declared, money_microusd=7, tokens=7, longest_ms=7)
    platform.tools["look"].declared = declared
    limit(platform, "acme/platform", unit, declared.worst[unit] - 1)
    run = platform.waits(platform.open(DEVELOPER), 1, "look", {"text": "x"})
    assert (run.state, run.waiting_for, run.owner) == (RunState.WAITING, WaitingFor.BUDGET, None)
    assert platform.ruling(run) == ("block", "budget")
    [waiting] = [step for step in platform.trail(run) if isinstance(step, Waiting)]
    assert waiting.ceiling is not None
    assert waiting.ceiling.endswith("of acme/platform")
    manage, root = ManageBudgets(store=platform.store), access(platform.store, "acme:root", ADMIN)
    assert manage.resume(root, run.id).state is RunState.QUEUED
    run = platform.waits(platform.lease(), 1, "look", {"text": "x"})
    assert platform.tools["look"].done == []
    limit(platform, "acme/platform", unit, declared.worst[unit])
    manage.resume(root, run.id)
    run, result = platform.call(platform.lease(), 1, "look", {"text": "x"})
    assert (result.result, len(platform.tools["look"].done)) == (ResultKind.DONE, 1)
    steps = platform.trail(run)
    assert len([step for step in steps if isinstance(step, GateRuling)]) == 3
    [reserved] = [step for step in steps if isinstance(step, BudgetReserved)]
    [settled] = [step for step in steps if isinstance(step, BudgetSettled)]
    assert reserved.amounts == {found.value: amount for found, amount in declared.worst.items()}
    assert settled.amounts.keys() == reserved.amounts.keys()
    assert isinstance(steps[-1], ToolResult)
    assert fault_of(platform.store, run.id) is None


@pytest.mark.promise("A-16")
def test_the_narrowest_room_counts_and_the_broadest_stop_is_named(platform: Shop) -> None:
    run = platform.open(DEVELOPER)
    line: list[Named] = ["*", "acme", "acme/platform", DEVELOPER, run.id]
    for named in reversed(line):
        limit(platform, named, Unit.TOOL_CALLS, 0)
        run = platform.waits(run, 1, "look", {"text": "x"})
        waiting = platform.trail(run)[-1]
        assert isinstance(waiting, Waiting)
        words = {"*": "the installation", DEVELOPER: DEVELOPER.text, run.id: f"run {run.id}"}
        assert waiting.ceiling == f"tool calls of {words.get(named, named)}"
        ManageBudgets(store=platform.store).resume(access(platform.store, "acme:root", ADMIN), run.id)
        run = platform.lease()
    # However wide a narrower one becomes, a broader one stops the call.
    for named in line[1:]:
        limit(platform, named, Unit.TOOL_CALLS, MOST)
    run = platform.waits(run, 1, "look", {"text": "x"})
    assert platform.tools["look"].done == []
    limit(platform, "*", Unit.TOOL_CALLS, None)
    ManageBudgets(store=platform.store).resume(access(platform.store, "acme:root", ADMIN), run.id)
    _, result = platform.call(platform.lease(), 1, "look", {"text": "x"})
    assert result.result is ResultKind.DONE


@pytest.mark.promise("A-16")
def test_a_version_limits_each_of_its_runs(platform: Shop) -> None:
    platform.publish(DEVELOPER, budget={"tool_calls": 1})
    for _ in range(2):
        run, _ = platform.call(platform.open(DEVELOPER), 1, "look", {"text": "x"})
        run = platform.waits(run, 2, "look", {"text": "y"})
        waiting = platform.trail(run)[-1]
        assert isinstance(waiting, Waiting)
        assert waiting.ceiling == f"tool calls of run {run.id}"


@pytest.mark.promise("A-15")
def test_a_run_that_ends_in_the_middle_of_a_call_pays_its_worst_case(platform: Shop) -> None:
    run = platform.open(DEVELOPER)
    with platform.store.writing() as work:
        line = holders(run.agent_id, run.agent, run.id)
        budgets = work.budgets.hold(line, (Unit.TOKENS,), {})
        work.budgets.reserve(run.id, 1, {Unit.TOKENS: 70}, budgets)
        # A turn of a model counts too; whoever makes one numbers it below 0.
        work.budgets.reserve(run.id, -1, {Unit.TOKENS: 5}, budgets)
    platform.finish(run)
    assert [step for step in platform.trail(run) if isinstance(step, BudgetSettled)] == [
        BudgetSettled(call=-1, amounts={"tokens": 5}),
        BudgetSettled(call=1, amounts={"tokens": 70}),
    ]
    budget = counted(platform, "acme", Unit.TOKENS)
    assert (budget.spent, budget.reserved) == (75, 0)


@pytest.mark.promise("A-16", "O-5")
def test_who_sets_shows_and_resumes(platform: Shop) -> None:
    manage = ManageBudgets(store=platform.store)
    root = access(platform.store, "acme:root", ADMIN)
    area_admin = access(platform.store, "acme:ana", (Role.ADMIN, "acme/platform"))
    viewer = access(platform.store, "acme:bo", (Role.VIEWER, "acme"))
    stranger = access(platform.store, "globex:eve", (Role.ADMIN, "globex"))
    run = platform.open(DEVELOPER)
    manage.set(root, "*", Unit.TOKENS, 1_000)
    manage.set(area_admin, DEVELOPER, Unit.TOKENS, 10)
    manage.set(area_admin, run.id, Unit.TOKENS, 5)
    with pytest.raises(AccessDenied):
        manage.set(area_admin, "acme", Unit.TOKENS, 10)
    with pytest.raises(AccessDenied):
        manage.set(viewer, DEVELOPER, Unit.TOKENS, 10)
    for named in (DEVELOPER, run.id, run.id + 1, Ref("acme/platform", "nobody")):
        with pytest.raises(NotFound):
            manage.set(stranger, named, Unit.TOKENS, 10)
        with pytest.raises(NotFound):
            manage.show(stranger, named)
    with pytest.raises(NotFound):
        manage.resume(stranger, run.id)
    with pytest.raises(AccessDenied):
        manage.resume(viewer, run.id)
    with pytest.raises(Conflict, match="does not wait"):
        manage.resume(root, run.id)
    for wrong in (-1, MOST + 1):
        with pytest.raises(InvalidInput, match="ceiling"):
            manage.set(root, "*", Unit.TOKENS, wrong)
    # Whoever may not read a broader scope is not shown what is spent there.
    assert [budget.holder.kind.value for budget in manage.show(area_admin, run.id)] == ["agent", "run"]
    assert [budget.ceiling for budget in manage.show(root, run.id)] == [1_000, 10, 5]
    with platform.store.reading() as work:
        assert [act.act for act in work.acts.page(["*"], None, 10)] == ["set_ceiling"] * 3


@pytest.mark.promise("A-15")
def test_two_that_reserve_in_the_same_budgets_never_wait_for_each_other_for_ever(platform: Shop, database_url: str) -> None:
    """Each holds the same budgets, named in another order and partly not there yet."""
    agents = [Ref("acme/platform", f"agent-{i}") for i in range(8)]
    lines = [[scope_holder("acme"), scope_holder("*"), agent_holder(i, agent), run_holder(i)] for i, agent in enumerate(agents)]

    def reserve(i: int) -> None:
        with closing(open_store(database_url)) as store:
            for call in range(10):
                run = runs[i]
                with store.writing() as work:
                    line = lines[i] if call % 2 else lines[i][::-1]
                    held = work.budgets.hold(line, tuple(Unit), {})
                    work.budgets.reserve(run.id, call, dict.fromkeys(Unit, 1), held)
                with store.writing() as work:
                    work.budgets.settle(run.id, call, {})

    runs = [platform.open(DEVELOPER) for _ in agents]
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(reserve, i) for i in range(8)]:
            future.result(WAIT_S)
    assert counted(platform, "*", Unit.TOKENS).spent == 80


@pytest.mark.promise("A-15")
def test_a_turn_of_a_model_is_paid_from_the_same_budgets_and_stops_at_the_same_ceilings(platform: Shop) -> None:
    limit(platform, "acme", Unit.TOKENS, 1_000)
    charge = ChargeTurn(store=platform.store)
    said = ModelTurn(model="m", content=platform.content.put(b"hello"), tokens_read=200, tokens_written=100)
    run = charge.reserve(platform.open(DEVELOPER), 1, {Unit.TOKENS: 800, Unit.MONEY: 0})
    assert charge.reserve(run, 1, {Unit.TOKENS: 800}) == run
    assert counted(platform, "acme", Unit.TOKENS).reserved == 800
    run = charge.settle(run, 1, {Unit.TOKENS: 300}, said)
    assert (counted(platform, "acme", Unit.TOKENS).spent, counted(platform, "acme", Unit.TOKENS).reserved) == (300, 0)
    run = charge.reserve(run, 2, {Unit.TOKENS: 700})
    run = charge.settle(run, 2, {Unit.TOKENS: 650}, said)
    with pytest.raises(RunWaits, match="tokens of acme"):
        charge.reserve(run, 3, {Unit.TOKENS: 51})
    waiting = stored(platform.store, run.id)
    assert (waiting.state, waiting.waiting_for) == (RunState.WAITING, WaitingFor.BUDGET)
    assert [type(step).__name__ for step in platform.trail(run)[1:]] == [
        *("BudgetReserved", "ModelTurn", "BudgetSettled") * 2,
        "Waiting",
    ]
    assert fault_of(platform.store, run.id) is None
