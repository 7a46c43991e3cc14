"""A run that a model drives in a worker of its own, which is killed while the model thinks."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from agentplat.domain.budgets import Unit
from agentplat.domain.runs import RunState
from agentplat.domain.steps import BudgetReserved, BudgetSettled, Closing, ModelTurn, TakenOver

from tests.agentplat.chat_server import calls_tool, chat_server
from tests.agentplat.processes import server
from tests.agentplat.run_records import execute, fault_of, folder_content, stored
from tests.agentplat.world import World, ref, wait_until

FIXER = "acme/platform:fixer"


@pytest.mark.promise("R-4", "R-5")
def test_a_model_whose_worker_is_killed_is_not_asked_again_for_what_it_said(acme: World, tmp_path: Path) -> None:
    ana = acme.person("acme:ana", "author=acme/platform")
    driver = {"kind": "model", "model": "openai-chat:local-large"}
    acme.publish(ana, FIXER, ["mended"], driver=driver, instructions="Be brief.")
    run = acme.cases.open_run(ana, ref(FIXER), "Mend the build.")
    url = acme.store._engine.url.render_as_string(hide_password=False)
    command = ("worker", "--database-url", url, "--content", tmp_path / "content", "--poll-interval-s", "0.02")
    finish = calls_tool("finish", {"summary": "Mended.", "artifacts": {"patch": "+1"}})
    says = [(200, calls_tool("no_such_tool", {})), (200, finish)]
    with chat_server(*says, held={2: threading.Event()}) as chat:
        keys = {"OPENAI_BASE_URL": f"http://127.0.0.1:{chat.server_port}/v1", "OPENAI_API_KEY": "key-of-the-operator"}
        with server("agentplat", *command, errors=tmp_path / "first.log", **keys) as first:
            wait_until(lambda: len(chat.asked) == 2, "the model is asked for its second turn")
            os.kill(first.process.pid, signal.SIGKILL)
            assert first.process.wait(60) == -signal.SIGKILL
        execute(url, f"UPDATE runs SET lease_until = 0 WHERE id = {run.id}")
        with server("agentplat", *command, errors=tmp_path / "second.log", **keys) as second:
            wait_until(lambda: stored(acme.store, run.id).ended, "the run ends")
            assert second.stop() == 0
        asked = [body["messages"] for _, _, body in chat.asked]
    # Three requests, for two turns: the second was asked for twice, in the same words, and the first once.
    assert (len(asked), asked[1]) == (3, asked[2])
    assert [message["content"] for message in asked[0]][-1] == "Mend the build."
    assert (stored(acme.store, run.id).state, fault_of(acme.store, run.id)) == (RunState.FINISHED, None)
    with acme.store.reading() as work:
        bodies = [step.read() for step in work.runs.trail(run.id)]
        patch = work.artifacts.of_run(run.id)["patch"]
    assert [body.model for body in bodies if isinstance(body, ModelTurn)] == ["local-large"] * 2
    assert TakenOver(attempt=2) in bodies
    assert bodies[-1] == Closing(state=RunState.FINISHED, published=("mended",))
    assert folder_content(tmp_path).get(patch.blob) == b"+1"


@pytest.mark.promise("A-15", "R-5")
def test_a_turn_is_paid_for_before_the_model_is_asked_and_a_run_at_a_ceiling_waits_and_goes_on(acme: World, tmp_path: Path) -> None:
    root = acme.person("acme:ana", "author=acme/platform", "admin=acme/platform")
    acme.publish(root, FIXER, ["mended"], driver={"kind": "model", "model": "openai-chat:gpt-4o"})
    budgets = acme.cases.governing.budgets
    for unit, most in ((Unit.TOKENS, 100), (Unit.MONEY, 10)):
        budgets.set(root, ref(FIXER), unit, most)
    run = acme.cases.open_run(root, ref(FIXER), "Mend the build.")
    url = acme.store._engine.url.render_as_string(hide_password=False)
    command = ("worker", "--database-url", url, "--content", tmp_path / "content", "--poll-interval-s", "0.02")
    with chat_server((200, calls_tool("finish", {"summary": "Mended."}))) as chat:
        keys = {"OPENAI_BASE_URL": f"http://127.0.0.1:{chat.server_port}/v1", "OPENAI_API_KEY": "key-of-the-operator"}
        with server("agentplat", *command, errors=tmp_path / "worker.log", **keys):
            for unit, enough in ((Unit.TOKENS, 10**6), (Unit.MONEY, 10**9)):
                wait_until(lambda: stored(acme.store, run.id).state is RunState.WAITING, "the run waits for its budget")
                assert chat.asked == []
                budgets.set(root, ref(FIXER), unit, enough)
                budgets.resume(root, run.id)
            wait_until(lambda: stored(acme.store, run.id).ended, "the run ends")
    assert len(chat.asked) == 1
    with acme.store.reading() as work:
        bodies = [step.read() for step in work.runs.trail(run.id)]
    [turn] = [body for body in bodies if isinstance(body, ModelTurn)]
    [reserved] = [body for body in bodies if isinstance(body, BudgetReserved)]
    [settled] = [body for body in bodies if isinstance(body, BudgetSettled)]
    assert settled.amounts["tokens"] == turn.tokens_read + turn.tokens_written <= reserved.amounts["tokens"]
    assert 0 < settled.amounts["money_microusd"] <= reserved.amounts["money_microusd"]
    spent = {
        budget.unit: (budget.reserved, budget.spent) for budget in budgets.show(root, ref(FIXER)) if budget.ceiling is not None
    }
    assert spent == {Unit(unit): (0, amount) for unit, amount in settled.amounts.items()}
    assert fault_of(acme.store, run.id) is None
