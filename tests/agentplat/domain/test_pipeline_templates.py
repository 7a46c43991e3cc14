"""What an approved proposal becomes: a pure function, over a closed palette that makes no tickets (D-13, D-14)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agentplat.domain.errors import InvalidInput
from agentplat.domain.pipeline_templates import NodeKind, read_template, template_of
from agentplat.domain.pipelines import PipelineState, StepState, ending, out_of_reach, ready
from agentplat.domain.proposal_reading import read_proposal
from hypothesis import given
from hypothesis import strategies as st

from tests.agentplat.proposals import proposal, proposals, sub_ticket

ROLES = {"worker": "acme/platform:worker"}


@pytest.mark.promise("D-13")
def test_the_palette_is_closed_and_has_no_node_that_makes_tickets() -> None:
    assert [kind.value for kind in NodeKind] == ["promptAgent", "research", "synthesis"]


@pytest.mark.promise("D-13")
@pytest.mark.parametrize("kind", ["createTicket", "ticket", "promptagent", "", "delegate", None, 3])
def test_a_template_with_any_other_node_is_refused(kind: Any) -> None:
    values = template_of(read_proposal(proposal([sub_ticket("a")], ROLES))).as_json()
    values["steps"][0]["kind"] = kind
    with pytest.raises(InvalidInput, match="is not of the palette"):
        read_template(json.dumps(values))


@pytest.mark.promise("D-14")
@given(proposals(), st.randoms())
def test_equal_proposals_become_equal_bytes_with_one_prompt_for_each_sub_ticket(values: dict[str, Any], chance: Any) -> None:
    read = read_proposal(values)
    template = template_of(read)
    items = list(values.items())
    chance.shuffle(items)
    assert template_of(read_proposal(dict(items))).text == template.text
    assert read_template(template.text) == template
    prompts = [step for step in template.steps if step.kind is NodeKind.PROMPT_AGENT]
    assert sorted(step.key for step in prompts) == sorted(one.key for one in read.sub_tickets)
    assert len(template.steps) == len(prompts) + 1 + (read.research is not None)
    by_key = {one.key: one for one in read.sub_tickets}
    for step in prompts:
        one = by_key[step.key]
        assert (step.role, step.title, step.description) == (one.role, one.title, one.description)
        assert (step.output_schema, step.attempts) == (one.output_schema, one.retries + 1)


@pytest.mark.promise("D-14")
@given(proposals())
def test_every_step_comes_behind_what_it_needs_research_first_and_synthesis_last(values: dict[str, Any]) -> None:
    read = read_proposal(values)
    steps = template_of(read).steps
    seen: set[str] = set()
    for step in steps:
        assert seen.issuperset(step.needs)
        seen.add(step.key)
    roots = [
        step for step in steps if step.kind is NodeKind.PROMPT_AGENT and not set(step.needs) & {o.key for o in read.sub_tickets}
    ]
    assert {step.needs for step in roots} == {("research",) if read.research else ()}
    assert steps[-1].kind is NodeKind.SYNTHESIS
    needed = {key for one in read.sub_tickets for key in one.depends_on}
    assert set(steps[-1].needs) == {one.key for one in read.sub_tickets} - needed


def _steps() -> tuple[Any, ...]:
    found = [sub_ticket("a"), sub_ticket("b"), sub_ticket("c", needs=["a"])]
    return template_of(read_proposal(proposal(found, ROLES))).steps


def _states(**states: str) -> dict[str, StepState]:
    return {key: StepState(states.get(key, "waiting")) for key in ("a", "b", "c", "synthesis")}


@pytest.mark.promise("D-16")
@pytest.mark.parametrize(
    ("states", "turn"),
    [
        ({}, ["a", "b"]),
        ({"a": "running"}, ["b"]),
        ({"a": "finished", "b": "running"}, ["c"]),
        ({"a": "finished", "b": "finished", "c": "running"}, []),
        ({"a": "finished", "b": "finished", "c": "finished"}, ["synthesis"]),
        ({"a": "failed", "b": "finished"}, []),
    ],
)
def test_a_step_has_its_turn_when_all_that_it_needs_has_finished(states: dict[str, str], turn: list[str]) -> None:
    assert [node.key for node in ready(_steps(), _states(**states))] == turn


@pytest.mark.promise("D-16")
@pytest.mark.parametrize("state", ["failed", "skipped", "cancelled"])
def test_what_is_behind_a_step_that_will_not_finish_is_out_of_reach(state: str) -> None:
    found = out_of_reach(_steps(), _states(a=state, b="running"))
    assert [(node.key, before) for node, before in found] == [("c", "a")]


@pytest.mark.promise("D-16")
@pytest.mark.parametrize(
    ("states", "end"),
    [
        ({}, None),
        ({"a": "finished", "b": "finished", "c": "finished", "synthesis": "running"}, None),
        ({"a": "finished", "b": "finished", "c": "finished", "synthesis": "finished"}, PipelineState.FINISHED),
        ({"a": "failed", "b": "finished", "c": "skipped", "synthesis": "skipped"}, PipelineState.FAILED),
        ({"a": "failed", "b": "running", "c": "skipped", "synthesis": "skipped"}, None),
    ],
)
def test_a_pipeline_ends_when_nothing_more_can_come_of_its_steps(states: dict[str, str], end: PipelineState | None) -> None:
    assert ending(_states(**states)) is end
