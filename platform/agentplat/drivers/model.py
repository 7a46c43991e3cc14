"""The driver that lets a language model think, through pydantic-ai, with the platform's tools and no others (R-5).

.. code-block:: yaml

    driver:
      kind: model
      model: openai:gpt-5

Each answer of the model is put into the trail before anything follows from it. When the run is taken up again the same conversation
is held once more with the answers of the trail in the model's place: nothing is asked, paid or done twice, and behind the last
recorded answer the model goes on.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from genai_prices import Usage, calc_price
from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import Agent, ModelRetry, Tool, ToolOutput, UsageLimits
from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage
from typing_extensions import override

from agentplat.domain.actions import model_of
from agentplat.domain.artifacts import Answer
from agentplat.domain.budgets import Unit, ceilings_of
from agentplat.domain.errors import PlatformError, RunFailed
from agentplat.domain.hands import Called, Turn
from agentplat.domain.prompts import prompt_of
from agentplat.domain.runs import DriverKind
from agentplat.domain.steps import ResultKind
from agentplat.domain.tools import SUBMIT_OUTPUT, ToolSpec
from agentplat.drivers.port import Driver, Hands, Task

MOST_TURNS = 50
"""Most answers that a model may give in one run, those of its sub-agents among them."""

MOST_WRITTEN = 8_192
"""Most tokens that a model may write in one answer."""

MOST_REMINDERS = 2
"""Times that a model is told that its output is still missing."""

FORM_TOKENS = 1_000
"""Allowed for what a provider adds to a request: roles, tool names, separators."""

FINISH = "finish"
"""The tool by which a model ends its run with artifacts; a plain text ends it with that text and none."""

SUB_AGENT = "sub_agent"
"""The tool by which a model lets another conversation work on a part of its task."""

MOST_LEVELS = 2
"""Levels that sub-agents nest deep in one run, at most (D-8). Another limit than that of delegation and that of chains."""

TOO_DEEP = f"Refused: sub-agents nest at most {MOST_LEVELS} levels deep in one run; do this part yourself."

Choose = Callable[[str], Model]
"""The model of a name such as ``openai:gpt-5``. Raises ValueError or UserError where there is none."""


class _Finish(BaseModel):
    """Ends the run: says what it came to, and publishes artifacts by name."""

    model_config = ConfigDict(extra="forbid")

    summary: str = Field(description="what the run came to; others may read it as final_answer")
    artifacts: dict[str, str] = Field(default_factory=dict, description="texts to publish, by artifact name")


class _Recorded(WrapperModel):
    """A model whose answers go through the run's trail."""

    def __init__(self, model: Model, hands: Hands) -> None:
        super().__init__(model)
        self._hands = hands

    @property
    def priceless(self) -> bool:
        """Whether nobody knows what the model costs."""
        return self._price(1, 1) is None

    @override
    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        known = self._hands.recall()
        if known is not None:
            [recorded] = ModelMessagesTypeAdapter.validate_json(known)
            if not isinstance(recorded, ModelResponse):
                raise AssertionError("what was recorded of a turn is the model's answer")
            return recorded
        self._hands.expect(self._worst(messages, model_request_parameters))
        answer = await super().request(messages, model_settings, model_request_parameters)
        content = ModelMessagesTypeAdapter.dump_json([answer]).decode()
        usage = answer.usage
        self._hands.record(
            Turn(
                model=answer.model_name or self.model_name,
                content=content,
                tokens_read=usage.input_tokens,
                tokens_written=usage.output_tokens,
                money_microusd=self._price(usage.input_tokens, usage.output_tokens),
            )
        )
        return answer

    def _worst(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> dict[Unit, int]:
        """The most that a request can take: no token is shorter than a byte, and the answer's length is asked for."""
        tools = [tool.parameters_json_schema for tool in (*parameters.function_tools, *parameters.output_tools)]
        read = len(ModelMessagesTypeAdapter.dump_json(messages)) + len(json.dumps(tools)) + FORM_TOKENS
        worst = {Unit.TOKENS: read + MOST_WRITTEN}
        money = self._price(read, MOST_WRITTEN)
        return worst if money is None else {**worst, Unit.MONEY: money}

    def _price(self, read: int, written: int) -> int | None:
        """In millionths of a US dollar, rounded up; None where the model's price is not known."""
        try:
            usage = Usage(input_tokens=read, output_tokens=written)
            price = calc_price(usage, self.model_name, provider_id=self.system)
        except LookupError:
            return None
        return math.ceil(price.total_price * 10**6)


class ModelDriver(Driver):
    """choose: gives the model of a name; by default pydantic-ai's own choice, with keys and addresses from the environment."""

    def __init__(self, choose: Choose = infer_model) -> None:
        self._choose = choose

    @property
    @override
    def kind(self) -> DriverKind:
        return DriverKind.MODEL

    @override
    def drive(self, task: Task, hands: Hands) -> Answer:
        name = model_of(task.manifest)
        try:
            model = self._choose(name)
        except (UserError, ValueError, ImportError) as error:
            raise RunFailed(f"the model {name!r} cannot be used here: {error}") from error
        recorded = _Recorded(model, hands)
        if Unit.MONEY in ceilings_of(task.manifest) and recorded.priceless:
            raise RunFailed(f"the price of the model {name!r} is not known, so that its budget of money could not be kept")
        # A loop for each run: a provider's connections belong to the loop that they were opened in.
        thinking = _Thinking(model=recorded, name=name, task=task, hands=hands, reminder=_Reminder(task.tools))
        return asyncio.run(thinking.converse())


@dataclass(frozen=True, kw_only=True)
class _Thinking:
    """What all conversations of one run share: its own, and those of the sub-agents in it. usage: counts the turns of all."""

    model: Model
    name: str
    task: Task
    hands: Hands
    reminder: _Reminder
    usage: RunUsage = field(default_factory=RunUsage)

    async def converse(self) -> Answer:
        """Hold the run's own conversation."""
        agent = Agent(
            self.model,
            output_type=[str, ToolOutput(_Finish, name=FINISH, description=_Finish.__doc__)],
            retries={"output": MOST_REMINDERS + 1},
            **self._abilities(0),
        )
        agent.output_validator(self.reminder.check)
        async with self.model:
            found = await self._said(agent, prompt_of(self.task.opening, self.task.input))
        return Answer(summary=found) if isinstance(found, str) else Answer(summary=found.summary, artifacts=found.artifacts)

    def _abilities(self, level: int) -> dict[str, Any]:
        """What a conversation can do. level: how many sub-agents it is inside of, itself counted."""
        offered = [_offered(spec, self.hands, self.reminder) for spec in self.task.tools]
        # A tool of the platform is never shadowed by one of the driver's.
        if SUB_AGENT not in {spec.name for spec in self.task.tools}:
            offered.append(self._sub_agent(level + 1))
        instructions = self.task.manifest.get("spec", {}).get("instructions")
        return {"instructions": instructions, "tools": offered, "model_settings": ModelSettings(max_tokens=MOST_WRITTEN)}

    def _sub_agent(self, level: int) -> Tool[None]:
        async def sub_agent(task: str) -> str:
            """Let a sub-agent work on a part of your task, with the same tools and nothing of what was said here.

            Args:
                task: All that it needs to know. Its answer comes back as the result.
            """
            if level > MOST_LEVELS:
                return TOO_DEEP
            return str(await self._said(Agent(self.model, output_type=str, **self._abilities(level)), task))

        return Tool(sub_agent, name=SUB_AGENT, sequential=True)

    async def _said(self, agent: Agent[None, Any], prompt: str) -> Any:
        """What a conversation comes to. Raises RunFailed, and unchanged whatever the run's hands raise."""
        try:
            limits = UsageLimits(request_limit=MOST_TURNS)
            return (await agent.run(prompt, usage=self.usage, usage_limits=limits)).output
        except ModelHTTPError as error:
            raise RunFailed(f"the model {self.name!r} answered with HTTP status {error.status_code}") from error
        except AgentRunError as error:
            cause = error.__cause__
            if isinstance(cause, PlatformError):
                raise cause from error
            raise RunFailed(f"the model {self.name!r} gave no answer that can be used ({type(error).__name__})") from error


class _Reminder:
    """Tells a model that would end its run without the output that its contract asks for; without that, the run would just fail."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._wanted = any(spec.name == SUBMIT_OUTPUT for spec in tools)
        self._told = 0

    def called(self, tool: str, called: Called) -> None:
        """Note what a call gave."""
        if tool == SUBMIT_OUTPUT and called.result is ResultKind.DONE:
            self._wanted = False

    def check(self, found: Any) -> Any:
        """Let an end pass, or tell what is missing. After some reminders the end passes, and the contract has the last word."""
        if self._wanted and self._told < MOST_REMINDERS:
            self._told += 1
            raise ModelRetry(f"This run has a contract for its output: call {SUBMIT_OUTPUT} with an output that fits, then end.")
        return found


def _offered(spec: ToolSpec, hands: Hands, reminder: _Reminder) -> Tool[None]:
    """A tool as the model sees it. One call after the other, in the model's order: the trail numbers them."""

    # Not in a thread of its own: nothing else happens in this loop, and the run's hands are no one else's.
    async def call(**arguments: Any) -> str:
        called = hands.call(spec.name, arguments)
        reminder.called(spec.name, called)
        return called.text

    schema: Mapping[str, Any] = spec.schema
    return Tool.from_schema(call, spec.name, spec.description, dict(schema), sequential=True)
