"""The Gate's rules from facts alone: their order, and what an approval does and does not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from agentplat.domain.autonomy import Autonomy, autonomy_of
from agentplat.domain.gate import Consent, Facts, Rule, Verdict, rule
from agentplat.domain.labels import Crossing, Label
from agentplat.domain.steps import Ruling
from agentplat.domain.tools import UNTRUSTED, Effect

from tests.agentplat.tool_records import spec

CLEAN = Facts(name="pay", tool=spec("pay", Effect.FINANCIAL), in_surface=True, autonomy=Autonomy.ACT_FREELY)
CROSSING = Crossing(label=Label("area:acme/platform"), into="globex")
# One fact each that alone makes its rule object to a financial call, in the order in which the rules are asked.
OBJECTING: dict[Rule, dict[str, Any]] = {
    Rule.CAPABILITY: {"in_surface": False},
    Rule.ARGUMENTS: {"arguments": "the arguments are wrong"},
    Rule.BARRIER: {"crossing": CROSSING},
    Rule.TAINT: {"labels": UNTRUSTED},
    Rule.POLICY: {},
    Rule.BUDGET: {"ceiling": "money of acme"},
    Rule.IDEMPOTENCY: {"done_by": 1},
    Rule.AUTONOMY: {"autonomy": Autonomy.PROPOSE_ONLY},
}


def facts(rules: tuple[Rule, ...], **more: Any) -> Facts:
    found = dict(more)
    for name in rules:
        found.update(OBJECTING[name])
    return replace(CLEAN, **found)


@pytest.mark.promise("A-12")
def test_the_first_objection_in_the_order_of_the_rules_wins() -> None:
    for rules in (found for n in range(len(OBJECTING) + 1) for found in combinations(OBJECTING, n)):
        _first_wins(rules)


def _first_wins(rules: tuple[Rule, ...]) -> None:
    before_policy = [name for name in rules if list(OBJECTING).index(name) < list(OBJECTING).index(Rule.POLICY)]
    said = rule(facts(rules))
    # Whatever else there is, spending asks a person, unless a rule before blocks it.
    assert said.rule is (before_policy[0] if before_policy else Rule.POLICY)
    assert said.ruling is (Ruling.BLOCK if before_policy else Ruling.NEEDS_APPROVAL)
    behind = [name for name in rules if name not in before_policy and name is not Rule.POLICY]
    granted = rule(facts(rules, consent=Consent.GRANTED))
    if before_policy:
        assert granted == said
    elif behind:
        wanted = Ruling.DUPLICATE if behind[0] is Rule.IDEMPOTENCY else Ruling.BLOCK
        assert (granted.rule, granted.ruling) == (behind[0], wanted)
    else:
        assert granted == Verdict(ruling=Ruling.ALLOW, rule=Rule.APPROVAL)


@pytest.mark.promise("A-10", "A-12")
@pytest.mark.parametrize("rule_name", [name for name in OBJECTING if name is not Rule.POLICY])
def test_no_approval_releases_a_block(rule_name: Rule) -> None:
    said = rule(facts((rule_name,), consent=Consent.GRANTED))
    assert said.ruling is (Ruling.DUPLICATE if rule_name is Rule.IDEMPOTENCY else Ruling.BLOCK)
    assert said.rule is rule_name


@pytest.mark.promise("A-14")
@pytest.mark.parametrize(
    ("consent", "reason"),
    [(Consent.REFUSED, "a person refused it"), (Consent.CHANGED, "what was approved is not what would run")],
)
def test_a_refusal_and_an_approval_of_something_else_block(consent: Consent, reason: str) -> None:
    assert rule(replace(CLEAN, consent=consent)) == Verdict(ruling=Ruling.BLOCK, rule=Rule.APPROVAL, reason=reason)


@pytest.mark.promise("A-13")
@pytest.mark.parametrize(("autonomy", "consent"), list(product(Autonomy, Consent)))
def test_a_tool_without_an_effect_never_runs(autonomy: Autonomy, consent: Consent) -> None:
    said = rule(replace(CLEAN, tool=spec("vague", None), autonomy=autonomy, consent=consent))
    assert (said.ruling, said.rule) == (Ruling.BLOCK, Rule.POLICY)


ASK, ALLOW, BLOCK = Ruling.NEEDS_APPROVAL, Ruling.ALLOW, Ruling.BLOCK


@pytest.mark.promise("A-13")
@pytest.mark.parametrize(
    ("effect", "propose", "with_approval", "freely"),
    [
        (Effect.READ, ALLOW, ALLOW, ALLOW),
        (Effect.WRITE, BLOCK, ASK, ALLOW),
        (Effect.DESTRUCTIVE, ASK, ASK, ASK),
        (Effect.FINANCIAL, ASK, ASK, ASK),
    ],
)
def test_effect_and_autonomy_decide_who_is_asked(effect: Effect, propose: Ruling, with_approval: Ruling, freely: Ruling) -> None:
    asked = replace(CLEAN, tool=spec("x", effect))
    said = [rule(replace(asked, autonomy=level)).ruling for level in Autonomy]
    assert said == [propose, with_approval, freely]
    untrusted = rule(replace(asked, labels=UNTRUSTED))
    assert (untrusted.rule is Rule.TAINT) == (effect in (Effect.DESTRUCTIVE, Effect.FINANCIAL))


def test_reads_may_be_made_again_and_an_unknown_level_of_autonomy_is_the_safest() -> None:
    assert rule(replace(CLEAN, tool=spec("look", Effect.READ), done_by=1)).ruling is Ruling.ALLOW
    assert [autonomy_of(text) for text in ("actFreely", "actfreely", "", "root")] == [Autonomy.ACT_FREELY] + [
        Autonomy.PROPOSE_ONLY
    ] * 3


@pytest.mark.promise("A-12")
def test_a_tool_that_is_not_installed_is_refused_like_one_that_is_not_in_the_surface() -> None:
    for found in (replace(CLEAN, tool=None), replace(CLEAN, in_surface=False)):
        assert (rule(found).ruling, rule(found).rule) == (Ruling.BLOCK, Rule.CAPABILITY)
