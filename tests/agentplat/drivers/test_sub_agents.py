"""Sub-agents of the model driver: conversations inside one run, two levels deep at most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import RunCancelled, RunFailed
from agentplat.domain.hands import Called
from agentplat.domain.tickets import MOST_DEPTH
from agentplat.drivers import model as driver
from agentplat.drivers.model import MOST_LEVELS, MOST_TURNS, SUB_AGENT, TOO_DEEP, ModelDriver

from tests.agentplat.chat_server import calls_tool, chat_server
from tests.agentplat.drivers.test_model import READ, Recorder, task

pytestmark = pytest.mark.promise("D-8")


def _sub(what: str) -> tuple[int, dict[str, Any]]:
    return 200, calls_tool(SUB_AGENT, {"task": what})


def _text(said: str) -> tuple[int, dict[str, Any]]:
    return 200, {"role": "assistant", "content": said}


def _drive(monkeypatch: pytest.MonkeyPatch, hands: Recorder, *says: tuple[int, dict[str, Any]]) -> tuple[Answer, list[Any]]:
    """What a model behind a server comes to that says these things, and what it was asked each time."""
    with chat_server(*says) as chat:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{chat.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        answer = ModelDriver().drive(task("openai-chat:local-large"), hands)
        return answer, [body for _, _, body in chat.asked]


def test_sub_agents_nest_two_levels_and_a_third_is_refused_in_clear_words(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Recorder()
    answer, asked = _drive(
        monkeypatch,
        hands,
        _sub("level one"),
        _sub("level two"),
        _sub("level three"),
        _text("two is done"),
        _text("one is done"),
        _text("all is done"),
    )
    assert answer == Answer(summary="all is done")
    firsts = [next(message["content"] for message in body["messages"] if message["role"] == "user") for body in asked]
    # Who spoke: the run itself, level one, level two twice as its own sub-agent is refused, then back up.
    assert [first if first.startswith("level") else "the run" for first in firsts] == [
        *("the run", "level one", "level two", "level two", "level one", "the run"),
    ]
    results = [message["content"] for body in asked for message in body["messages"] if message["role"] == "tool"]
    assert results == [TOO_DEEP, "two is done", "one is done"]
    assert len(hands.turns) == 6


def test_a_sub_agent_acts_with_the_hands_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Recorder()
    reads = (200, calls_tool(READ.name, {"name": "cause"}))
    _, asked = _drive(monkeypatch, hands, _sub("read it"), reads, _text("it expired"), _text("done"))
    assert hands.calls == [(READ.name, {"name": "cause"})]
    offered = [sorted(tool["function"]["name"] for tool in body["tools"]) for body in asked]
    assert offered[0] == ["finish", READ.name, SUB_AGENT]
    assert offered[1] == [READ.name, SUB_AGENT]


def test_a_run_that_is_taken_up_again_asks_no_sub_agent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    says = (_sub("one"), _sub("two"), _text("two is done"), _text("one is done"), _text("done"))
    first = Recorder()
    answer, _ = _drive(monkeypatch, first, *says)
    for kept in range(len(says) + 1):
        again = Recorder(past=[turn.content for turn in first.turns[:kept]])
        repeated, asked = _drive(monkeypatch, again, *says[kept:])
        assert (repeated, len(asked)) == (answer, len(says) - kept)


def test_what_ends_the_run_for_now_comes_out_of_a_sub_agent_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    error = RunCancelled(7)

    def told(_tool: str, _arguments: object) -> Called:
        raise error

    reads = (200, calls_tool(READ.name, {"name": "cause"}))
    with pytest.raises(RunCancelled) as raised:
        _drive(monkeypatch, Recorder(told=told), _sub("one"), _sub("two"), reads)
    assert raised.value is error


def test_the_turns_of_sub_agents_count_for_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MOST_TURNS", 4)
    hands = Recorder()
    with pytest.raises(RunFailed, match="UsageLimitExceeded"):
        _drive(monkeypatch, hands, *(_sub(str(number)) for number in range(MOST_TURNS)))
    assert len(hands.turns) == 4


def test_a_tool_of_the_platform_is_not_shadowed_by_the_drivers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Recorder()
    own = replace(READ, name=SUB_AGENT, schema={"type": "object", "properties": {"task": {"type": "string"}}})
    with chat_server(_sub("one"), _text("done")) as chat:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{chat.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        ModelDriver().drive(replace(task("openai-chat:local-large"), tools=[own]), hands)
    assert hands.calls == [(SUB_AGENT, {"task": "one"})]


def test_it_is_another_limit_than_that_of_delegation() -> None:
    assert (MOST_LEVELS, MOST_DEPTH) == (2, 3)
