"""Runs and trails on the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

from pydantic import Field, field_validator

from agentplat.api.models import Wire
from agentplat.domain.artifacts import Answer
from agentplat.domain.calls import CallSoFar
from agentplat.domain.contracts import OutputContract, RunContract, declared
from agentplat.domain.hands import Called, Turn
from agentplat.domain.labels import texts
from agentplat.domain.languages import Language
from agentplat.domain.runs import Run
from agentplat.domain.shown_runs import ShownRun, ShownStep
from agentplat.domain.steps import as_json
from agentplat.domain.times import iso
from agentplat.domain.tools import ToolSpec
from agentplat.domain.trail import Fault
from agentplat.usecases.lease_run import Held
from agentplat.usecases.tell_runs import run_text, shown_step_text, verification_text


def _moment(moment_ms: int | None) -> str | None:
    return None if moment_ms is None else iso(moment_ms)


class OpenRunIn(Wire):
    """A run to open. input: what the agent is to work on.

    expected_output_schema: JSON Schema 2020-12 that its output has to fit. output_contract_mode: strict, which is usual, or
    permissive.
    """

    input: str | None = None
    expected_output_schema: Any = None
    output_contract_mode: Any = None

    def contract(self) -> OutputContract | None:
        """The output contract, None where there is none. Raises InvalidInput."""
        return declared(self.expected_output_schema, self.output_contract_mode)


class ContractOut(Wire):
    """The output contract of a run. state: missing, rejected or accepted. output: digest of the accepted output."""

    mode: str
    state: str
    rejections: int
    tries_left: int
    output: str | None

    @classmethod
    def of(cls, contract: RunContract) -> Self:
        """The contract on the wire."""
        return cls(
            mode=contract.mode.value,
            state=contract.state.value,
            rejections=contract.rejections,
            tries_left=contract.tries_left,
            output=None if contract.output is None else contract.output.digest,
        )


class TaskContractOut(ContractOut):
    """The output contract as whoever drives the run gets it."""

    expected_output_schema: dict[str, Any]

    @classmethod
    def told(cls, contract: RunContract) -> Self:
        """The contract on the wire, with what the output has to fit."""
        return cls(expected_output_schema=json.loads(contract.schema), **dict(ContractOut.of(contract)))


class RunOut(Wire):
    """A run. on_behalf_of, source_run, chain, cancel_asked_by: null where there is none, or it is outside the reader's access.

    chain: the run that its chain began with. hop: null where an older worker opened it. attempts: how often a worker took it up.
    """

    run: int
    agent: str
    version: int
    driver: str
    opened_by: str
    on_behalf_of: str | None
    source_run: int | None
    event: str | None
    hop: int | None
    chain: int | None
    state: str
    waiting_for: str | None
    labels: list[str]
    attempts: int
    steps: int
    opened_at: str
    finished_at: str | None
    cancel_asked_at: str | None
    cancel_asked_by: str | None
    contract: ContractOut | None
    text: str

    @classmethod
    def of(cls, shown: ShownRun, language: Language) -> Self:
        """The run on the wire."""
        run = shown.run
        return cls(
            run=run.id,
            agent=run.agent.text,
            version=run.number,
            driver=run.driver.value,
            opened_by=run.opened_by.value,
            on_behalf_of=None if shown.on_behalf_of is None else shown.on_behalf_of.text,
            source_run=shown.source_run,
            event=run.event,
            hop=run.hop,
            chain=shown.chain,
            state=run.state.value,
            waiting_for=None if run.waiting_for is None else run.waiting_for.value,
            labels=list(texts(run.labels)),
            attempts=run.attempts,
            steps=run.steps,
            opened_at=iso(run.opened_at),
            finished_at=_moment(run.finished_at),
            cancel_asked_at=_moment(run.cancel_asked_at),
            cancel_asked_by=None if shown.cancel_asked_by is None else shown.cancel_asked_by.text,
            contract=None if shown.contract is None else ContractOut.of(shown.contract),
            text=run_text(shown, language),
        )


class RunsOut(Wire):
    """A page of runs, newest first. next: what to give as `before` for the next page, null on the last."""

    runs: list[RunOut]
    next: int | None


class StepOut(Wire):
    """A step of a trail. hidden: fields of the body that are null because they are outside the reader's access.

    previous, hash: SHA-256, null from the first step on of which something is hidden.
    """

    run: int
    number: int
    kind: str
    at: int
    body: dict[str, Any]
    hidden: list[str]
    previous: str | None
    hash: str | None
    text: str

    @classmethod
    def of(cls, run: Run, step: ShownStep, language: Language) -> Self:
        """The step on the wire. at: milliseconds since 1970, UTC, as it was hashed."""
        return cls(
            run=run.id,
            number=step.number,
            kind=step.kind.value,
            at=step.at,
            body=dict(step.body),
            hidden=list(step.hidden),
            previous=step.previous,
            hash=step.hash,
            text=shown_step_text(step, language),
        )


class TrailOut(Wire):
    """A page of a trail, in order. next: what to give as `after` for the next page, null where there is no more yet."""

    run: int
    steps: list[StepOut]
    next: int | None


class FaultOut(Wire):
    """Where a trail is damaged. number: the first step that is wrong; kind: how."""

    number: int
    kind: str
    reason: str


class VerificationOut(Wire):
    """Whether a trail is as it was written."""

    run: int
    steps: int
    intact: bool
    fault: FaultOut | None
    text: str

    @classmethod
    def of(cls, run: Run, fault: Fault | None, language: Language) -> Self:
        """The verification on the wire."""
        told = None if fault is None else FaultOut(number=fault.number, kind=fault.kind.value, reason=fault.reason)
        text = verification_text(run, fault, language)
        return cls(run=run.id, steps=run.steps, intact=fault is None, fault=told, text=text)


class ToolOut(Wire):
    """A tool that a run may call. parameters: the JSON Schema of its arguments; effect: read, write, destructive or financial."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: str

    @classmethod
    def of(cls, spec: ToolSpec) -> Self:
        """The tool on the wire."""
        return cls(name=spec.name, description=spec.description, parameters=dict(spec.schema), effect=str(spec.effect))


class ToolsOut(Wire):
    """The tools of a run, by name."""

    tools: list[ToolOut]


class PastCallOut(Wire):
    """A call that was made in the run. result: done, refused or failed, null where it is not known.

    To get its text, make the call of this number again: with the same tool and arguments it is told, not made.
    """

    call: int
    tool: str
    arguments_digest: str
    result: str | None

    @classmethod
    def of(cls, past: CallSoFar) -> Self:
        """The call on the wire."""
        return cls(
            call=past.asked.call,
            tool=past.asked.tool,
            arguments_digest=past.asked.arguments.digest,
            result=None if past.result is None else past.result.result.value,
        )


class TaskOut(Wire):
    """A run as its program gets it. opening: its first step. input: what its opener wrote. attempt: from 1.

    calls, turns: what was done in it before, by whoever held it; turns: how many.
    """

    run: int
    agent: str
    version: int
    attempt: int
    labels: list[str]
    manifest: dict[str, Any]
    opening: dict[str, Any]
    input: str | None
    contract: TaskContractOut | None
    calls: list[PastCallOut]
    turns: int

    @classmethod
    def of(cls, held: Held) -> Self:
        """The task on the wire."""
        run = held.run
        return cls(
            run=run.id,
            agent=run.agent.text,
            version=run.number,
            attempt=run.attempts,
            labels=list(texts(run.labels)),
            manifest=dict(held.manifest),
            opening=as_json(held.opening),
            input=held.input,
            contract=None if held.contract is None else TaskContractOut.told(held.contract),
            calls=[PastCallOut.of(past) for past in held.past.calls],
            turns=len(held.past.turns),
        )


class LeasedOut(TaskOut):
    """A run that was just given out. token: what to show for it from now on; lease_s: seconds to the next sign of life at most."""

    token: str
    lease_s: float
    tools: list[ToolOut]

    @classmethod
    def given(cls, held: Held, token: str, lease_s: float, tools: Sequence[ToolSpec]) -> Self:
        """The lease on the wire."""
        offered = [ToolOut.of(spec) for spec in tools]
        return cls(token=token, lease_s=lease_s, tools=offered, **dict(TaskOut.of(held)))


class LeaseOut(Wire):
    """The run is held. lease_s: seconds until the next sign of life is due."""

    lease_s: float


class CallIn(Wire):
    """A tool call. call: its number in the run, from 1 without gaps, so that a call sent twice is made once."""

    call: int = Field(ge=1, le=1_000_000)
    tool: str = Field(max_length=1_024)
    arguments: dict[str, Any] = Field(default_factory=dict)


class CallOut(Wire):
    """What a call gave. text: the result, or the reason of the refusal word for word."""

    call: int
    result: str
    text: str

    @classmethod
    def of(cls, number: int, called: Called) -> Self:
        """The result on the wire."""
        return cls(call=number, result=called.result.value, text=called.text)


class TurnIn(Wire):
    """An answer of a model. turn: its number in the run, from 1 without gaps, so that one sent twice is kept once."""

    turn: int = Field(ge=1, le=1_000_000)
    model: str = Field(max_length=200)
    content: str
    tokens_read: int = Field(ge=0, le=2**53)
    tokens_written: int = Field(ge=0, le=2**53)

    @field_validator("model", "content")
    @classmethod
    def _text(cls, text: str) -> str:
        """Refuse what cannot be kept. Raises ValueError."""
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError("has a character that UTF-8 does not have; leave lone surrogates out")
        return text

    def value(self) -> Turn:
        """The turn."""
        return Turn(model=self.model, content=self.content, tokens_read=self.tokens_read, tokens_written=self.tokens_written)


class AnswerIn(Wire):
    """What a run finishes with. artifacts: texts to publish, by name."""

    summary: str
    artifacts: dict[str, str] = Field(default_factory=dict)

    def value(self) -> Answer:
        """The answer."""
        return Answer(summary=self.summary, artifacts=self.artifacts)


class FailureIn(Wire):
    """Why a run failed."""

    reason: str = Field(min_length=1)


class EndedOut(Wire):
    """How a run stands after its program let go of it."""

    run: int
    state: str
