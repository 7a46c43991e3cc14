"""Gathering what the Gate goes by, and asking it (A-12 to A-16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from agentplat.domain.approvals import consent_to, order_of
from agentplat.domain.artifacts import Blob, blob_of
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.budgets import Budget, ceilings_of, first_stop
from agentplat.domain.calls import CallSoFar, same_done
from agentplat.domain.gate import Facts, Rule, Verdict, rule
from agentplat.domain.labels import Crossing, crossing
from agentplat.domain.runs import Run
from agentplat.domain.tools import Asked, ToolSpec, has_tool
from agentplat.store.port import Work
from agentplat.usecases.arguments import fault_of
from agentplat.usecases.charging import charged_to
from agentplat.usecases.circumstances import autonomy_in_run, circumstances_of
from agentplat.usecases.tool import AnyTool

_BEFORE_BUDGETS = frozenset({Rule.CAPABILITY, Rule.ARGUMENTS, Rule.BARRIER, Rule.TAINT, Rule.POLICY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the Gate said to a call.

    budgets: held until the transaction ends, where it came to them. stop: the one without room. order: what exactly would run, None
    where there is no such tool. done_by: the earlier call that did the same.
    """

    verdict: Verdict
    budgets: list[Budget] = field(default_factory=list)
    stop: Budget | None = None
    order: str | None = None
    done_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """The Gate with its facts. tools: those installed here, by name. autonomy: the level of a run's agent."""

    tools: Mapping[str, AnyTool]
    autonomy: Callable[[Work, Run], Autonomy] = autonomy_in_run

    def __call__(self, work: Work, asked: Asked, name: str, arguments: Blob, calls: dict[int, CallSoFar]) -> Judged:
        """Rule on a call. arguments: their canonical JSON by reference. calls: all of the run so far.

        Budgets are asked last, although they come before idempotency and autonomy in the order of the rules, because they are kept
        from every other run while they are looked at.
        """
        run, tool = asked.run, self.tools.get(name)
        version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
        manifest = {} if version is None else version.content.manifest
        circumstances = circumstances_of(work, run, manifest)
        has_it = name in circumstances.named if tool is None else has_tool(tool.spec, circumstances)
        facts = Facts(name=name, tool=None if tool is None else tool.spec, in_surface=has_it)
        if tool is None or not facts.in_surface:
            return Judged(verdict=rule(facts))
        order = order_of(run, asked.call, tool.spec, asked.arguments)
        consent = consent_to(work.approvals.of_call(run.id, asked.call), blob_of(order.encode()).digest)
        done_by = same_done(calls, asked.call, name, arguments.digest)
        wrong = fault_of(tool.spec.schema, asked.arguments) or tool.fault(asked)
        facts = replace(
            facts, arguments=wrong, labels=run.labels, done_by=done_by, consent=consent, autonomy=self.autonomy(work, run)
        )
        if wrong is None:
            facts = replace(facts, crossing=_crossing(work, tool, asked))
        first = rule(facts)
        if first.rule in _BEFORE_BUDGETS:
            return Judged(verdict=first, order=order)
        return self._within_budgets(work, run, tool.spec, facts, order, manifest)

    def _within_budgets(
        self, work: Work, run: Run, tool: ToolSpec, facts: Facts, order: str, manifest: Mapping[str, object]
    ) -> Judged:
        worst = tool.worst
        budgets = work.budgets.hold(charged_to(work, run), tuple(worst), ceilings_of(manifest))
        stop = first_stop(budgets, worst)
        verdict = rule(replace(facts, ceiling=None if stop is None else stop.words))
        return Judged(verdict=verdict, budgets=budgets, stop=stop, order=order, done_by=facts.done_by)


def _crossing(work: Work, tool: AnyTool, asked: Asked) -> Crossing | None:
    found = (crossing(move.labels, move.into) for move in tool.moves(work, asked))
    return next((stopped for stopped in found if stopped is not None), None)
