"""What happens in a run, as the bodies of its trail's steps (R-2, R-3). Refs and digests stand for bytes everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter

from agentplat.domain.artifacts import Blob, Delivery
from agentplat.domain.chains import OpenedBy
from agentplat.domain.runs import RunState, WaitingFor


class StepKind(StrEnum):
    """What a step records."""

    OPENING = "opening"
    TAKEN_OVER = "taken_over"
    MODEL_TURN = "model_turn"
    TOOL_CALL = "tool_call"
    GATE_RULING = "gate_ruling"
    TOOL_RESULT = "tool_result"
    BUDGET_RESERVED = "budget_reserved"
    BUDGET_SETTLED = "budget_settled"
    APPROVAL_ASKED = "approval_asked"
    APPROVAL_GIVEN = "approval_given"
    WAITING = "waiting"
    RESUMED = "resumed"
    ARTIFACT_PUBLISHED = "artifact_published"
    CONTRACT_ACCEPTED = "contract_accepted"
    CONTRACT_REJECTED = "contract_rejected"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first step. agent, opener, on_behalf_of: references as text. opener: the person, where one opened the run.

    hop, chain: None where an older worker wrote the step. delivery: the event with its contract as resolved then. input: what the
    opener wrote.
    """

    opened_by: OpenedBy
    agent: str
    version: int
    on_behalf_of: str
    labels: tuple[str, ...]
    hop: int | None = None
    chain: int | None = None
    opener: str | None = None
    source_run: int | None = None
    delivery: Delivery | None = None
    input: Blob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """Another worker goes on with the run. attempt: the how manieth lease this is, from 2."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """One answer of a model. content: what it said, in the content store. tokens: read and written."""

    model: str
    content: Blob
    tokens_read: int
    tokens_written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool is asked for. call: the number of this call in the run, from 1; the steps about it carry it.

    arguments: their canonical JSON, in the content store. artifact: the name of the contract that it reads, where it reads one.
    request: the mark of a caller who does not number calls, by which a call that is sent twice is known again.
    """

    call: int
    tool: str
    arguments: Blob
    artifact: str | None = None
    request: str | None = None


class Ruling(StrEnum):
    """What the Gate says to a tool call."""

    ALLOW = "allow"
    NEEDS_APPROVAL = "needs_approval"
    BLOCK = "block"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRuling:
    """The Gate ruled. rule: the one that decided, such as ``capability``. reason: in words, None where nothing was objected to."""

    call: int
    ruling: Ruling
    rule: str
    reason: str | None = None


class ResultKind(StrEnum):
    """How a tool call ended."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call gave. labels: those of the result, which the run takes on. content: None where there is none."""

    call: int
    result: ResultKind
    labels: tuple[str, ...] = ()
    content: Blob | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReserved:
    """The worst case of a call is set aside. amounts: whole numbers by unit, as `domain.budgets` names the units."""

    call: int
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettled:
    """What a call really took."""

    call: int
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked:
    """A person has to decide. digest: over what exactly would run. order: that, in the content store."""

    call: int
    digest: str
    order: Blob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGiven:
    """A person decided. by: their reference as text. granted: False for a refusal."""

    call: int
    digest: str
    by: str
    granted: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The run stops until something changes. ceiling: which hard stop it met, in words, where it waits for a budget."""

    waiting_for: WaitingFor
    call: int | None = None
    ceiling: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """The run goes on after it waited."""

    waited_for: WaitingFor


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPublished:
    """An artifact of the run, by reference (A-1)."""

    name: str
    ref: str
    digest: str
    source_run: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractAccepted:
    """The output is kept. faults: how many it has, where its contract only records them; paths: where the first ones are."""

    output: Blob
    faults: int = 0
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractRejected:
    """The output did not meet its contract. faults: how many. tries_left: how often it may be tried again.

    paths: JSON Pointers to the first faults, in which what the contract does not name is left out.
    """

    output: Blob
    faults: int
    tries_left: int
    paths: tuple[str, ...] = ()


class WithheldWhy(StrEnum):
    """Why the events of a finished run were not published."""

    HOP_LIMIT = "hop_limit"
    CHAIN_UNKNOWN = "chain_unknown"


class Warned(StrEnum):
    """Whether a loop was warned about when a version of it was published; unknown where not every loop could be looked for."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class WentRound:
    """The loop that a chain went round. agents: references as text, in the order they ran; the first one follows the last."""

    agents: tuple[str, ...]
    warned: Warned


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldEvents:
    """Events that were not published. chain: the hop-0 run, limit: the last hop; both None where the chain is unknown.

    loop: what the chain went round until it came to the limit, where it did (R-18).
    """

    events: tuple[str, ...]
    why: WithheldWhy
    chain: int | None = None
    limit: int | None = None
    loop: WentRound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The last step. published: the events that leave, each once. dropped: artifact names that a run may not publish (A-2).

    reason: why it failed or was cancelled, in words. by: who cancelled it, as text.
    """

    state: RunState
    published: tuple[str, ...] = ()
    withheld: WithheldEvents | None = None
    dropped: tuple[str, ...] = ()
    reason: str | None = None
    by: str | None = None


Body = (
    Opening
    | TakenOver
    | ModelTurn
    | ToolCall
    | GateRuling
    | ToolResult
    | BudgetReserved
    | BudgetSettled
    | ApprovalAsked
    | ApprovalGiven
    | Waiting
    | Resumed
    | ArtifactPublished
    | ContractAccepted
    | ContractRejected
    | Closing
)

_CLASS_OF: Final[Mapping[StepKind, type[Body]]] = {
    StepKind.OPENING: Opening,
    StepKind.TAKEN_OVER: TakenOver,
    StepKind.MODEL_TURN: ModelTurn,
    StepKind.TOOL_CALL: ToolCall,
    StepKind.GATE_RULING: GateRuling,
    StepKind.TOOL_RESULT: ToolResult,
    StepKind.BUDGET_RESERVED: BudgetReserved,
    StepKind.BUDGET_SETTLED: BudgetSettled,
    StepKind.APPROVAL_ASKED: ApprovalAsked,
    StepKind.APPROVAL_GIVEN: ApprovalGiven,
    StepKind.WAITING: Waiting,
    StepKind.RESUMED: Resumed,
    StepKind.ARTIFACT_PUBLISHED: ArtifactPublished,
    StepKind.CONTRACT_ACCEPTED: ContractAccepted,
    StepKind.CONTRACT_REJECTED: ContractRejected,
    StepKind.CLOSING: Closing,
}
_KIND_OF = {found: kind for kind, found in _CLASS_OF.items()}
_ADAPTERS: Final[Mapping[StepKind, TypeAdapter[Any]]] = {kind: TypeAdapter(found) for kind, found in _CLASS_OF.items()}


def kind_of(body: Body) -> StepKind:
    """The kind of step that has such a body."""
    return _KIND_OF[type(body)]


def as_json(body: Body) -> dict[str, Any]:
    """The body as JSON values; what says nothing is left out."""
    values: dict[str, Any] = _ADAPTERS[kind_of(body)].dump_python(body, mode="json", exclude_none=True)
    return values


def body_of(kind: StepKind, values: Mapping[str, Any]) -> Body:
    """A body from its JSON values. Fields that a later version added are passed over. Raises ValueError where one is missing."""
    body: Body = _ADAPTERS[kind].validate_python(values)
    return body
