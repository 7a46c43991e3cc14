"""Calling a tool in a run: asked for, ruled on, paid for and answered, each a step of the trail (A-12 to A-16, R-4).

Two short transactions stand around the call itself. The first keeps what is asked, what the Gate says, and the worst case that is
set aside; the second what came of it, what it really took, and the labels that the run takes on. Whoever takes a run over finds in
its trail how far a call has come, and calls with the same number again: what has its answer is not done again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import NOT_THERE, Artifact, Availability, Blob, Delivery
from agentplat.domain.budgets import Unit
from agentplat.domain.calls import ABOUT_CALLS, CallSoFar, Standing, calls_of
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound, PlatformError, Refused, RunFailed, RunWaits
from agentplat.domain.gate import Rule
from agentplat.domain.labels import crossing, join, parse_labels, texts
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.steps import (
    ApprovalAsked,
    Body,
    BudgetReserved,
    BudgetSettled,
    Closing,
    GateRuling,
    Opening,
    ResultKind,
    Ruling,
    ToolCall,
    ToolResult,
    Waiting,
)
from agentplat.domain.times import now_ms
from agentplat.domain.tools import Asked, Effect, Given
from agentplat.store.port import Store, Work
from agentplat.usecases.arguments import canonical_arguments
from agentplat.usecases.judge_call import JudgeCall, Judged
from agentplat.usecases.tell_space import end_run, let_wait
from agentplat.usecases.tool import AnyTool, Tool, WorkTool

MOST_NAME_CHARACTERS = 100
UNKNOWN = "a worker ended during this call, and whether it took effect is not known; it is not made again"
UNDONE = "the tool ended in disorder and did nothing; the operator's log says more"
DISORDER = "the tool ended in disorder, and whether it took effect is not known; the operator's log says more"

_ANSWERED = (Refused, InvalidInput, NotFound, AccessDenied, Conflict)
"""What a tool of the platform may refuse with, as any other use case does."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    """A call that the Gate has let through, with the run as it is then."""

    run: Run
    tool: AnyTool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Carries tool calls out."""

    store: Store
    content: ContentStore
    gate: JudgeCall

    def __call__(
        self, run: Run, call: int, tool: str, arguments: Mapping[str, Any], request: str | None = None
    ) -> tuple[Run, ToolResult]:
        """Call a tool. call: the number of this call in the run, from 1. The run as it is afterwards, and what came of the call.

        request: the caller's mark for the call, where the caller has no numbers. The run may have ended by the call.
        Raises RunWaits where the run waits from now on, RunFailed where the call was another one when it was first made,
        InvalidInput for arguments that are not JSON, LeaseLost, ContentUnavailable, StoreUnavailable.
        """
        name = _recordable(tool)
        # Durable before the trail names them.
        kept = self.content.put(canonical_arguments(arguments))
        # Before anything is held: a long trail takes a while to read, and one that grows meanwhile makes the append below fail.
        with self.store.reading() as work:
            asked = Asked(run=run, call=call, arguments=arguments, delivery=_delivery(work, run))
            calls = calls_of(work.runs.trail(run.id, kinds=ABOUT_CALLS))
        with self.store.writing() as work:
            standing = self._so_far(work, asked, name, kept, calls, request)
        if isinstance(standing, Waiting):
            raise RunWaits(run.id, standing.ceiling or "an approval")
        if not isinstance(standing, _Allowed):
            return standing
        if isinstance(standing.tool, WorkTool):
            return self._within(standing, standing.tool, asked)
        given, elapsed_ms = _carried_out(standing.tool, asked)
        return self._answer(standing, call, given, elapsed_ms)

    def _so_far(
        self, work: Work, asked: Asked, name: str, kept: Blob, calls: dict[int, CallSoFar], request: str | None
    ) -> _Allowed | Waiting | tuple[Run, ToolResult]:
        known = calls.get(asked.call)
        if known is None:
            artifact = self._artifact(name, asked)
            first = ToolCall(call=asked.call, tool=name, arguments=kept, artifact=artifact, request=request)
            return self._rule(work, asked, name, kept, calls, [first])
        if (known.asked.tool, known.asked.arguments) != (name, kept):
            raise RunFailed(f"call {asked.call} of this run was another one when it was first made")
        if known.result is not None:
            return asked.run, known.result
        if known.standing is Standing.ASKED:
            return self._rule(work, asked, name, kept, calls, [])
        tool = self.gate.tools.get(name)
        if tool is not None and (tool.spec.effect is Effect.READ or isinstance(tool, WorkTool)):
            # What it does stands and falls with its answer, so that without an answer it was not done; or it changes nothing.
            return _Allowed(run=asked.run, tool=tool)
        return self._end(work, asked.run, asked.call, ToolResult(call=asked.call, result=ResultKind.FAILED, reason=UNKNOWN), {})

    def _artifact(self, name: str, asked: Asked) -> str | None:
        tool = self.gate.tools.get(name)
        return None if tool is None else tool.artifact(asked)

    def _rule(
        self, work: Work, asked: Asked, name: str, kept: Blob, calls: dict[int, CallSoFar], steps: list[Body]
    ) -> _Allowed | Waiting | tuple[Run, ToolResult]:
        judged = self.gate(work, asked, name, kept, calls)
        said = judged.verdict
        ruling = GateRuling(call=asked.call, ruling=said.ruling, rule=said.rule.value, reason=said.reason)
        run = work.runs.append(asked.run, [*steps, ruling], now_ms())
        match said.ruling:
            case Ruling.ALLOW:
                return self._reserve(work, run, asked.call, name, judged)
            case Ruling.NEEDS_APPROVAL:
                return self._ask(work, run, asked.call, name, judged)
            case Ruling.DUPLICATE:
                return self._end(work, run, asked.call, _again(calls, asked.call, judged), {})
        if judged.stop is not None and said.rule is Rule.BUDGET:
            waiting = Waiting(waiting_for=WaitingFor.BUDGET, call=asked.call, ceiling=judged.stop.words)
            let_wait(work, run, waiting)
            return waiting
        refused = ToolResult(call=asked.call, result=ResultKind.REFUSED, reason=said.reason)
        return self._end(work, run, asked.call, refused, {})

    def _reserve(self, work: Work, run: Run, call: int, name: str, judged: Judged) -> _Allowed:
        tool = self.gate.tools[name]
        worst = tool.spec.worst
        work.budgets.reserve(run.id, call, worst, judged.budgets)
        step = BudgetReserved(call=call, amounts={unit.value: amount for unit, amount in worst.items()})
        return _Allowed(run=work.runs.append(run, [step], now_ms()), tool=tool)

    def _ask(self, work: Work, run: Run, call: int, name: str, judged: Judged) -> Waiting:
        assert judged.order is not None  # only a tool that is there needs an approval
        order = self.content.put(judged.order.encode())
        if work.approvals.of_call(run.id, call) is None:
            work.approvals.ask(run.id, call, name, order, now_ms())
            run = work.runs.append(run, [ApprovalAsked(call=call, digest=order.digest, order=order)], now_ms())
        waiting = Waiting(waiting_for=WaitingFor.APPROVAL, call=call)
        let_wait(work, run, waiting)
        return waiting

    def _within(self, allowed: _Allowed, tool: WorkTool, asked: Asked) -> tuple[Run, ToolResult]:
        """Carry a call out in the transaction that keeps its answer."""
        begun = time.monotonic()
        try:
            with self.store.writing() as work:
                given = tool.within(work, replace(asked, run=allowed.run))
                result = self._result(allowed, asked.call, given)
                run = work.runs.append(allowed.run, given.steps, now_ms())
                took = {**tool.spec.worst, Unit.TIME: _elapsed_ms(begun), **given.took}
                run, result = self._end(work, run, asked.call, result, took)
                if given.ends is not None:
                    run = end_run(work, run, Closing(state=RunState.FAILED, reason=given.ends), now_ms())
                return run, result
        except _ANSWERED as refusal:
            given = Given(result=ResultKind.REFUSED, reason=str(refusal))
        except PlatformError:
            raise
        except Exception:
            log.exception("a tool ended in disorder", tool=tool.spec.name, run=asked.run.id, call=asked.call)
            given = Given(result=ResultKind.FAILED, reason=UNDONE)
        return self._answer(allowed, asked.call, given, _elapsed_ms(begun))

    def _answer(self, allowed: _Allowed, call: int, given: Given, elapsed_ms: int) -> tuple[Run, ToolResult]:
        result = self._result(allowed, call, given)
        took = {**allowed.tool.spec.worst, Unit.TIME: elapsed_ms, **given.took}
        with self.store.writing() as work:
            if given.copy_of is not None and result.content is not None and self._erased_meanwhile(work, given.copy_of):
                reason = NOT_THERE[Availability.ERASED]
                result = replace(result, result=ResultKind.FAILED, content=None, reason=reason)
            return self._end(work, allowed.run, call, result, took)

    def _result(self, allowed: _Allowed, call: int, given: Given) -> ToolResult:
        labels = join(allowed.tool.spec.labels, given.labels)
        stopped = crossing(labels, allowed.run.agent.scope)
        if stopped is not None:
            # The Gate could not know where the data would come from. Nothing of it is kept, so its labels stay away too.
            reason = f"{stopped.label} may not come to {stopped.into}: {stopped.rule}"
            return ToolResult(call=call, result=ResultKind.REFUSED, reason=reason)
        content = None if given.data is None else self.content.put(given.data)
        return ToolResult(call=call, result=given.result, labels=texts(labels), content=content, reason=given.reason)

    def _erased_meanwhile(self, work: Work, artifact: Artifact) -> bool:
        """Whether somebody erased the artifact while it was being read; the copy that was just put then goes too."""
        work.artifacts.guard([artifact.blob.digest])
        now = work.artifacts.find(artifact.run_id, artifact.name)
        if now is not None and now.erased_at is None:
            return False
        if not work.artifacts.is_needed(artifact.blob.digest):
            self.content.erase(artifact.blob)
        return True

    def _end(self, work: Work, run: Run, call: int, result: ToolResult, took: Mapping[Unit, int]) -> tuple[Run, ToolResult]:
        """Keep what came of a call: what it took, its result, and its labels, which are the run's from now on (A-8)."""
        settled = work.budgets.settle(run.id, call, took)
        steps: list[Body] = []
        if settled:
            steps.append(BudgetSettled(call=call, amounts={unit.value: amount for unit, amount in settled.items()}))
        run = work.runs.append(run, [*steps, result], now_ms())
        return work.runs.take_on(run, parse_labels(result.labels)), result


def _recordable(tool: str) -> str:
    """The name as it goes into the trail, which is no place for whatever a model writes."""
    return tool if len(tool) <= MOST_NAME_CHARACTERS and tool.isprintable() else "(unreadable)"


def _delivery(work: Work, run: Run) -> Delivery | None:
    [first] = work.runs.trail(run.id, size=1)
    opening = first.read()
    return opening.delivery if isinstance(opening, Opening) else None


def _carried_out(tool: Tool, asked: Asked) -> tuple[Given, int]:
    """What the tool gave, and how many milliseconds it took."""
    begun = time.monotonic()
    try:
        given = tool(asked)
    except PlatformError:
        raise
    except Exception:
        log.exception("a tool ended in disorder", tool=tool.spec.name, run=asked.run.id, call=asked.call)
        given = Given(result=ResultKind.FAILED, reason=DISORDER)
    return given, _elapsed_ms(begun)


def _elapsed_ms(begun: float) -> int:
    return int((time.monotonic() - begun) * 1_000)


def _again(calls: dict[int, CallSoFar], call: int, judged: Judged) -> ToolResult:
    """What a call gives that was done already: what the earlier one gave, with its labels."""
    earlier = next(known.result for known in calls.values() if judged.done_by == known.asked.call)
    if earlier is None:
        return ToolResult(call=call, result=ResultKind.FAILED, reason=UNKNOWN)
    reason = "; ".join(filter(None, (judged.verdict.reason, earlier.reason)))
    return ToolResult(call=call, result=earlier.result, labels=earlier.labels, content=earlier.content, reason=reason)
