"""The model driver: a language model thinks with the platform's tools, and what it said is not asked for twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from agentplat.domain.artifacts import Answer, Delivery, Entry
from agentplat.domain.budgets import Unit
from agentplat.domain.chains import OpenedBy
from agentplat.domain.errors import InvalidInput, LeaseLost, RunCancelled, RunFailed
from agentplat.domain.hands import Called, Turn
from agentplat.domain.runs import DriverKind, Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Opening, ResultKind
from agentplat.domain.tools import SUBMIT_OUTPUT, Effect, ToolSpec
from agentplat.drivers.model import MOST_REMINDERS, MOST_TURNS, ModelDriver
from agentplat.drivers.port import Hands, Task
from agentplat.loop_check import read_manifests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.agentplat.chat_server import calls_tool, chat_server
from tests.agentplat.world import manifest

READ = ToolSpec(
    name="read_artifact",
    description="Gives the content of an artifact.",
    schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False},
    effect=Effect.READ,
    longest_ms=1_000,
)
RUN = Run(
    id=7,
    agent_id=1,
    agent=Ref("acme", "fixer"),
    number=1,
    driver=DriverKind.MODEL,
    opened_by=OpenedBy.EVENT,
    on_behalf_of_id=1,
    source_run_id=3,
    event="incident.triaged",
    hop=1,
    chain=3,
    state=RunState.RUNNING,
    waiting_for=None,
    labels=frozenset(),
    owner="w",
    attempts=1,
    steps=1,
    head=None,
    opened_at=1,
    finished_at=None,
    cancel_asked_at=None,
    cancel_asked_by_id=None,
)
DELIVERY = Delivery(
    event="incident.triaged",
    context="incident",
    source_agent="acme:triage",
    source_run=3,
    artifacts=(
        Entry(name="cause", ref="sha256:aa", digest="aa", source_run=3, labels=("untrusted",)),
        Entry(name="x", missing=True),
    ),
)
OPENING = Opening(
    opened_by=OpenedBy.EVENT, agent="acme:fixer", version=1, on_behalf_of="acme:ana", labels=(), source_run=3, delivery=DELIVERY
)


def task(model: str = "function:any", **spec: Any) -> Task:
    whole = {"spec": {"driver": {"kind": "model", "model": model}, **spec}}
    return Task(run=RUN, manifest=whole, opening=OPENING, input="Mend it.", tools=[READ])


@dataclass
class Recorder(Hands):
    """Hands that keep what passes through them. told: what calls give. past: what was said before."""

    told: Callable[[str, Mapping[str, Any]], Called] = lambda _tool, _arguments: Called(result=ResultKind.DONE, text="It expired.")
    past: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    expected: list[Mapping[Unit, int]] = field(default_factory=list)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        self.calls.append((tool, dict(arguments)))
        return self.told(tool, arguments)

    def recall(self) -> str | None:
        return self.past.pop(0) if self.past else None

    def expect(self, worst: Mapping[Unit, int]) -> None:
        self.expected.append(worst)

    def record(self, turn: Turn) -> None:
        self.turns.append(turn)


Said = Sequence[ToolCallPart | TextPart]


@dataclass
class Script:
    """A model that says these things, one after the other. heard: what it was told, as JSON, and the tools it was offered."""

    says: Sequence[Said]
    heard: list[str] = field(default_factory=list)
    tools: list[list[str]] = field(default_factory=list)
    instructions: list[str | None] = field(default_factory=list)

    def model(self, _name: str = "") -> Model:
        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            said = sum(isinstance(message, ModelResponse) for message in messages)
            self.heard.append(repr(messages))
            self.tools.append([tool.name for tool in info.function_tools] + [tool.name for tool in info.output_tools])
            self.instructions.append(info.instructions)
            return ModelResponse(parts=list(self.says[min(said, len(self.says) - 1)]))

        return FunctionModel(answer)


def reads(*names: str) -> Said:
    return [ToolCallPart("read_artifact", {"name": name}, tool_call_id=name) for name in names]


FINISH: Said = [ToolCallPart("finish", {"summary": "Mended.", "artifacts": {"patch": "+1"}}, tool_call_id="f")]


@pytest.mark.promise("R-5")
def test_a_model_calls_the_platforms_tools_in_its_order_and_finishes_with_artifacts() -> None:
    script, hands = Script([reads("cause", "b", "a"), FINISH]), Recorder()
    answer = ModelDriver(script.model).drive(task(instructions="Be brief."), hands)
    assert answer == Answer(summary="Mended.", artifacts={"patch": "+1"})
    assert hands.calls == [("read_artifact", {"name": name}) for name in ("cause", "b", "a")]
    assert script.tools == [["read_artifact", "finish"]] * 2
    assert script.instructions == ["Be brief."] * 2
    assert "It expired." in script.heard[1]
    assert len(hands.turns) == 2
    assert all(turn.tokens_read > 0 for turn in hands.turns)


@pytest.mark.promise("R-5")
def test_a_model_is_told_what_opened_its_run_by_name_and_never_the_content() -> None:
    script = Script([[TextPart("done")]])
    assert ModelDriver(script.model).drive(task(), Recorder()) == Answer(summary="done")
    for name in ("incident.triaged", "acme:triage", "sha256:aa", "untrusted", '"missing": true', "Mend it."):
        assert name in script.heard[0].replace('\\"', '"')


@pytest.mark.promise("R-4", "R-5")
@pytest.mark.parametrize("said", range(4))
def test_a_model_that_is_taken_up_again_is_not_asked_again_for_what_it_said(said: int) -> None:
    script, hands = Script([reads("a"), reads("b"), FINISH]), Recorder()
    first = ModelDriver(script.model).drive(task(), hands)
    again, later = Script(script.says), Recorder(past=[turn.content for turn in hands.turns[:said]])
    assert ModelDriver(again.model).drive(task(), later) == first
    assert len(again.heard) == 3 - said
    assert [turn.content.count("tool-call") for turn in later.turns] == [
        turn.content.count("tool-call") for turn in hands.turns[said:]
    ]
    # The same calls in the same order: the hands know which of them were made.
    assert later.calls == hands.calls


@pytest.mark.promise("R-5")
def test_a_refusal_reaches_the_model_word_for_word() -> None:
    reason = "data of the area acme/platform stays in it, its company and the installation"
    script = Script([reads("a"), [TextPart("I may not.")]])
    hands = Recorder(told=lambda _tool, _arguments: Called(result=ResultKind.REFUSED, text=reason))
    assert ModelDriver(script.model).drive(task(), hands) == Answer(summary="I may not.")
    assert reason in script.heard[1]


@pytest.mark.promise("R-4")
@pytest.mark.parametrize("error", [LeaseLost(7), RunCancelled(7)], ids=["lost", "cancelled"])
def test_what_ends_the_run_for_now_comes_through_the_model_unchanged(error: Exception) -> None:
    def lost(_tool: str, _arguments: Mapping[str, Any]) -> Called:
        raise error

    with pytest.raises(type(error)):
        ModelDriver(Script([reads("a"), FINISH]).model).drive(task(), Recorder(told=lost))


@pytest.mark.promise("R-5")
def test_a_model_that_does_not_come_to_an_end_fails_its_run_after_so_many_turns() -> None:
    hands = Recorder()
    with pytest.raises(RunFailed, match="UsageLimitExceeded"):
        ModelDriver(Script([reads("a")]).model).drive(task(), hands)
    assert len(hands.turns) == MOST_TURNS


@pytest.mark.promise("R-5")
def test_the_librarys_own_test_model_comes_to_an_end_with_the_platforms_tools() -> None:
    hands = Recorder()
    answer = ModelDriver(lambda _name: TestModel(seed=1)).drive(task(), hands)
    assert [tool for tool, _ in hands.calls] == ["read_artifact"]
    assert "It expired." in answer.summary


def test_a_model_that_is_not_there_fails_its_run_and_says_which() -> None:
    with pytest.raises(RunFailed, match="'nobody:large' cannot be used here"):
        ModelDriver().drive(task("nobody:large"), Recorder())


@pytest.mark.promise("R-5")
@pytest.mark.parametrize("options", [{}, {"model": "large"}, {"model": 5}, {"model": "openai:x", "base_url": "http://evil"}])
def test_a_version_whose_model_is_not_named_as_provider_and_model_is_not_published(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.driver"):
        read_manifests(manifest("acme:fixer", driver={"kind": "model", **options}), "test.yaml")


@pytest.mark.promise("R-5")
def test_a_model_behind_a_server_that_speaks_the_openai_protocol_drives_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    says = [(200, calls_tool("read_artifact", {"name": "cause"})), (200, calls_tool("finish", {"summary": "Mended."}))]
    with chat_server(*says) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-operator")
        hands = Recorder()
        answer = ModelDriver().drive(task("openai-chat:local-large", instructions="Be brief."), hands)
    assert answer == Answer(summary="Mended.")
    assert hands.calls == [("read_artifact", {"name": "cause"})]
    assert [(turn.model, turn.tokens_read, turn.tokens_written) for turn in hands.turns] == [("local-large", 11, 5)] * 2
    (path, key, first), (_, _, second) = server.asked
    assert (path, key) == ("/v1/chat/completions", "Bearer key-of-the-operator")
    assert [tool["function"]["name"] for tool in first["tools"]] == ["read_artifact", "finish"]
    assert first["tools"][0]["function"]["parameters"]["required"] == ["name"]
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "call-read_artifact", "content": "It expired."}


@pytest.mark.promise("R-5")
def test_a_server_that_refuses_fails_the_run_with_its_status_and_nothing_of_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server((401, {"content": "secret"})) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "wrong")
        with pytest.raises(RunFailed) as failure:
            ModelDriver().drive(task("openai-chat:local-large"), Recorder())
    assert str(failure.value) == "the model 'openai-chat:local-large' answered with HTTP status 401"


def test_what_was_recorded_of_a_turn_is_read_by_the_same_library_again() -> None:
    hands = Recorder()
    ModelDriver(Script([FINISH]).model).drive(task(), hands)
    [turn] = hands.turns
    assert replace(turn, content="") == Turn(
        model=turn.model, content="", tokens_read=turn.tokens_read, tokens_written=turn.tokens_written
    )
    assert json.loads(turn.content)[0]["parts"][0]["tool_name"] == "finish"


SUBMIT = ToolSpec(
    name=SUBMIT_OUTPUT,
    description="Submits the output.",
    schema={"type": "object", "properties": {"output": {}}, "required": ["output"]},
    effect=Effect.READ,
    longest_ms=1_000,
)


def submits(output: Any) -> Said:
    return [ToolCallPart(SUBMIT_OUTPUT, {"output": output}, tool_call_id=f"s{output}")]


def judged(_tool: str, arguments: Mapping[str, Any]) -> Called:
    fits = arguments["output"] == 2
    return Called(result=ResultKind.DONE if fits else ResultKind.REFUSED, text="kept" if fits else "/: expected 2; tries left: 2")


@pytest.mark.promise("D-10", "D-12")
def test_a_model_that_would_end_without_its_output_is_told_and_may_still_submit_it() -> None:
    script = Script([submits(1), [TextPart("Done.")], submits(2), [TextPart("Now done.")]])
    hands = Recorder(told=judged)
    answer = ModelDriver(script.model).drive(replace(task(), tools=[SUBMIT]), hands)
    assert answer == Answer(summary="Now done.")
    assert [arguments["output"] for _, arguments in hands.calls] == [1, 2]
    # The rejection went back to it, and so did the end that came too early.
    assert "/: expected 2; tries left: 2" in script.heard[1]
    assert "This run has a contract for its output" in script.heard[2]
    again = Recorder(told=judged, past=[turn.content for turn in hands.turns])
    assert ModelDriver(Script([]).model).drive(replace(task(), tools=[SUBMIT]), again) == answer


def test_a_model_that_never_submits_ends_and_leaves_the_last_word_to_the_contract() -> None:
    script = Script([[TextPart("Done.")]])
    assert ModelDriver(script.model).drive(replace(task(), tools=[SUBMIT]), Recorder()) == Answer(summary="Done.")
    assert len(script.heard) == 1 + MOST_REMINDERS
