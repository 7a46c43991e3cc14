"""The Gate: what is said to a tool call, by which rule, from facts alone (A-12 to A-14). Nothing here reads or writes.

The rules are asked in the order of `Rule`, and the first objection wins. An approval is applied last: it lets the Gate pass over
objections that ask for one, and over nothing else, so that it never releases a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.autonomy import Autonomy, reaches
from agentplat.domain.labels import Crossing, Labels
from agentplat.domain.steps import Ruling
from agentplat.domain.tools import IRREVERSIBLE, UNTRUSTED, Effect, ToolSpec


class Rule(StrEnum):
    """What can decide on a call, in the order that it is asked."""

    CAPABILITY = "capability"
    ARGUMENTS = "arguments"
    BARRIER = "barrier"
    TAINT = "taint"
    POLICY = "policy"
    BUDGET = "budget"
    IDEMPOTENCY = "idempotency"
    AUTONOMY = "autonomy"
    APPROVAL = "approval"


class Consent(StrEnum):
    """What a person said to this very call."""

    NONE = "none"
    GRANTED = "granted"
    CHANGED = "changed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the Gate goes by.

    name: of the tool. tool: what it declares, None where there is none here. in_surface: whether the run may call it at all.
    arguments: what is wrong with them. crossing: what the barrier stops. labels: the run's own. ceiling: the hard stop that the
    worst case would pass, in words. done_by: an earlier call of the run that did the same. consent: what a person said to it.
    """

    name: str
    tool: ToolSpec | None
    in_surface: bool
    arguments: str | None = None
    crossing: Crossing | None = None
    labels: Labels = frozenset()
    ceiling: str | None = None
    done_by: int | None = None
    autonomy: Autonomy = Autonomy.ACT_WITH_APPROVAL
    consent: Consent = Consent.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the Gate says. rule: the one that objected, or the last one asked. reason: in words, None where none objected."""

    ruling: Ruling
    rule: Rule
    reason: str | None = None


def _block(rule: Rule, reason: str) -> Verdict:
    return Verdict(ruling=Ruling.BLOCK, rule=rule, reason=reason)


def _ask(rule: Rule, reason: str) -> Verdict:
    return Verdict(ruling=Ruling.NEEDS_APPROVAL, rule=rule, reason=reason)


def _on_flow(facts: Facts, effect: Effect | None) -> Iterator[Verdict]:
    if facts.crossing is not None:
        stopped = facts.crossing
        yield _block(Rule.BARRIER, f"{stopped.label} may not go to {stopped.into}: {stopped.rule}")
    if effect in IRREVERSIBLE and facts.labels & UNTRUSTED:
        yield _block(Rule.TAINT, f"this run has read untrusted data, and a {effect} call can not be taken back")


def _on_effect(facts: Facts, effect: Effect, free_from: Autonomy) -> Iterator[Verdict]:
    if effect in IRREVERSIBLE:
        yield _ask(Rule.POLICY, f"a {effect} call needs the approval of a person")
    if facts.ceiling is not None:
        yield _block(Rule.BUDGET, f"its worst case would pass the ceiling for {facts.ceiling}")
    if effect is not Effect.READ:
        if facts.done_by is not None:
            reason = f"call {facts.done_by} of this run did the same, and it is not done again"
            yield Verdict(ruling=Ruling.DUPLICATE, rule=Rule.IDEMPOTENCY, reason=reason)
        if not reaches(facts.autonomy, free_from):
            if facts.autonomy is Autonomy.PROPOSE_ONLY:
                yield _block(Rule.AUTONOMY, "this agent may only propose")
            else:
                yield _ask(Rule.AUTONOMY, "this agent acts with the approval of a person")


def objections(facts: Facts) -> Iterator[Verdict]:
    """All objections to a call, in the order of the rules. A call that nobody may make, or whose arguments are wrong, has one."""
    if not facts.in_surface:
        yield _block(Rule.CAPABILITY, f"this run has no tool {facts.name!r}")
    elif facts.tool is None:
        yield _block(Rule.CAPABILITY, f"the tool {facts.name!r} is not installed here")
    elif facts.arguments is not None:
        yield _block(Rule.ARGUMENTS, facts.arguments)
    else:
        effect = facts.tool.effect
        yield from _on_flow(facts, effect)
        if effect is None:
            yield _block(Rule.POLICY, "the tool does not declare its effect, so it does not run")
        else:
            yield from _on_effect(facts, effect, facts.tool.free_from)


def rule(facts: Facts) -> Verdict:
    """What the Gate says to a call."""
    for objection in objections(facts):
        if objection.ruling is not Ruling.NEEDS_APPROVAL:
            return objection
        match facts.consent:
            case Consent.NONE:
                return objection
            case Consent.REFUSED:
                return _block(Rule.APPROVAL, "a person refused it")
            case Consent.CHANGED:
                return _block(Rule.APPROVAL, "what was approved is not what would run")
            case Consent.GRANTED:
                continue
    decided = Rule.APPROVAL if facts.consent is Consent.GRANTED else Rule.AUTONOMY
    return Verdict(ruling=Ruling.ALLOW, rule=decided)
