"""Templates of pipelines: what an approved proposal becomes, by a pure function (D-13, D-14).

The palette of nodes is closed. Each kind is work that an agent is prompted for; none makes a ticket, and a template with any other
kind is refused, so that a pipeline cannot fan work out as assigned tickets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentplat.domain.access import Person
from agentplat.domain.budgets import Unit
from agentplat.domain.canonical import canonical_json, digest
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.proposals import RESEARCH, SYNTHESIS, Proposal, SubTicket
from agentplat.domain.registry import Agent


class NodeKind(StrEnum):
    """The whole palette."""

    PROMPT_AGENT = "promptAgent"
    RESEARCH = "research"
    SYNTHESIS = "synthesis"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStep:
    """A node. needs: keys of the steps before it. output_schema: canonical JSON. attempts: how often it is tried at most."""

    key: str
    kind: NodeKind
    role: str
    title: str
    description: str
    needs: tuple[str, ...]
    output_schema: str | None
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pipeline before it runs. steps: each behind all that it needs. budget: the most that all steps together take."""

    goal: str
    steps: tuple[TemplateStep, ...]
    budget: Mapping[Unit, int]

    def as_json(self) -> dict[str, Any]:
        """The template as JSON values."""
        return {
            "goal": self.goal,
            "steps": [_step_json(step) for step in self.steps],
            "budget": {unit.value: amount for unit, amount in sorted(self.budget.items())},
        }

    @property
    def text(self) -> str:
        """Its canonical JSON."""
        return canonical_json(self.as_json())

    @property
    def digest(self) -> str:
        """SHA-256 over its canonical JSON, in hexadecimal."""
        return digest(self.text.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPipeline:
    """What an approved proposal becomes. project: its name. team: the agents by role."""

    proposal_id: int
    workspace_id: int
    space_id: int
    project: str
    team: Mapping[str, Agent]
    template: Template
    on_behalf_of: Person
    source_run_id: int | None


def template_of(proposal: Proposal) -> Template:
    """One `promptAgent` step for each sub-ticket, research before those that depend on nothing, synthesis behind the leaves."""
    found = proposal.research
    research = [] if found is None else [_besides(NodeKind.RESEARCH, found.role, found.description, (), None, found.retries)]
    first = (RESEARCH,) if research else ()
    last = proposal.synthesis
    synthesis = _besides(NodeKind.SYNTHESIS, last.role, last.description, proposal.leaves, last.output_schema, last.retries)
    steps = (*research, *(_prompt(one, first) for one in _in_order(proposal.sub_tickets)), synthesis)
    return Template(goal=proposal.goal, steps=steps, budget=proposal.budget)


def _in_order(sub_tickets: tuple[SubTicket, ...]) -> list[SubTicket]:
    """Each behind all that it depends on, and otherwise in the order of the proposal, which has no loops."""
    done: list[SubTicket] = []
    while len(done) < len(sub_tickets):
        keys = {one.key for one in done}
        done.append(next(one for one in sub_tickets if one.key not in keys and keys.issuperset(one.depends_on)))
    return done


def _prompt(one: SubTicket, first: tuple[str, ...]) -> TemplateStep:
    return TemplateStep(
        key=one.key,
        kind=NodeKind.PROMPT_AGENT,
        role=one.role,
        title=one.title,
        description=one.description,
        needs=one.depends_on or first,
        output_schema=one.output_schema,
        attempts=one.retries + 1,
    )


def _besides(
    kind: NodeKind, role: str, description: str, needs: tuple[str, ...], output_schema: str | None, retries: int
) -> TemplateStep:
    return TemplateStep(
        key=kind.value,
        kind=kind,
        role=role,
        title=_TITLES[kind],
        description=description,
        needs=needs,
        output_schema=output_schema,
        attempts=retries + 1,
    )


_TITLES = {NodeKind.RESEARCH: "Research", NodeKind.SYNTHESIS: "Synthesis"}
assert (NodeKind.RESEARCH.value, NodeKind.SYNTHESIS.value) == (RESEARCH, SYNTHESIS)


def _step_json(step: TemplateStep) -> dict[str, Any]:
    return {
        "key": step.key,
        "kind": step.kind.value,
        "role": step.role,
        "title": step.title,
        "description": step.description,
        "needs": list(step.needs),
        "output_schema": None if step.output_schema is None else json.loads(step.output_schema),
        "attempts": step.attempts,
    }


def read_template(text: str) -> Template:
    """A template from the text that was kept of it. Raises InvalidInput where it has a node that is not of the palette."""
    values = json.loads(text)
    palette = [kind.value for kind in NodeKind]
    strange = [
        Violation(
            field=f"steps[{i}].kind",
            reason=f"{step['kind']!r} is not of the palette",
            remedy=f"use one of: {', '.join(palette)}; none makes tickets",
        )
        for i, step in enumerate(values["steps"])
        if step["kind"] not in palette
    ]
    if strange:
        raise InvalidInput(strange)
    return Template(
        goal=values["goal"],
        steps=tuple(_step(step) for step in values["steps"]),
        budget={Unit(unit): amount for unit, amount in values["budget"].items()},
    )


def _step(values: Mapping[str, Any]) -> TemplateStep:
    schema = values["output_schema"]
    return TemplateStep(
        key=values["key"],
        kind=NodeKind(values["kind"]),
        role=values["role"],
        title=values["title"],
        description=values["description"],
        needs=tuple(values["needs"]),
        output_schema=None if schema is None else canonical_json(schema),
        attempts=values["attempts"],
    )
