"""Proposals: who would work on what, in which order and for how much, before anybody approved it (D-15).

A proposal comes in as JSON and goes out as JSON, the same values both ways. Everything that is wrong with one is told at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentplat.domain.budgets import Unit
from agentplat.domain.canonical import canonical_json, digest
from agentplat.domain.pipelines import ProposalState
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Author

MOST_ROLES = 8
MOST_SUB_TICKETS = 16
MOST_RETRIES = 3
USUAL_RETRIES = 1

RESEARCH, SYNTHESIS = "research", "synthesis"
"""What the two steps beside the sub-tickets are called; no sub-ticket has one of these keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedRole:
    """Somebody who is to work. agent: an agent that is there; hire: the manifest of one that is not yet; one of the two."""

    name: str
    agent: str | None = None
    hire: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTicket:
    """A piece of the work. depends_on: keys of those that come before it. output_schema: canonical JSON, None where it has none.

    retries: how often it is tried again after it failed.
    """

    key: str
    title: str
    description: str
    role: str
    depends_on: tuple[str, ...]
    output_schema: str | None
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Research:
    """What is looked into before the sub-tickets begin."""

    description: str
    role: str
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """What makes one result out of all sub-tickets. output_schema: canonical JSON of what the result has to look like."""

    description: str
    role: str
    output_schema: str
    retries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposal without any fault; `proposal_reading` makes it. budget: the most that all its steps take together."""

    goal: str
    roles: tuple[ProposedRole, ...]
    sub_tickets: tuple[SubTicket, ...]
    research: Research | None
    synthesis: Synthesis
    budget: Mapping[Unit, int]

    @property
    def leaves(self) -> tuple[str, ...]:
        """The keys of the sub-tickets that no other one depends on, in their order."""
        needed = {key for one in self.sub_tickets for key in one.depends_on}
        return tuple(one.key for one in self.sub_tickets if one.key not in needed)

    def as_json(self) -> dict[str, Any]:
        """The proposal as JSON values; reading them gives the same proposal."""
        values: dict[str, Any] = {
            "goal": self.goal,
            "roles": [_role(role) for role in self.roles],
            "sub_tickets": [_sub_ticket(one) for one in self.sub_tickets],
            "synthesis": _synthesis(self.synthesis),
            "budget": {unit.value: amount for unit, amount in sorted(self.budget.items())},
        }
        if self.research is not None:
            found = self.research
            values["research"] = {"description": found.description, "role": found.role, "retries": found.retries}
        return values

    @property
    def text(self) -> str:
        """Its canonical JSON."""
        return canonical_json(self.as_json())

    @property
    def digest(self) -> str:
        """SHA-256 over its canonical JSON, in hexadecimal: what an approver says that they saw."""
        return digest(self.text.encode())


def _role(role: ProposedRole) -> dict[str, Any]:
    if role.hire is None:
        return {"name": role.name, "agent": role.agent}
    return {"name": role.name, "hire": dict(role.hire)}


def _sub_ticket(one: SubTicket) -> dict[str, Any]:
    values: dict[str, Any] = {
        "key": one.key,
        "title": one.title,
        "description": one.description,
        "role": one.role,
        "depends_on": list(one.depends_on),
        "retries": one.retries,
    }
    return values if one.output_schema is None else {**values, "output_schema": json.loads(one.output_schema)}


def _synthesis(found: Synthesis) -> dict[str, Any]:
    schema = json.loads(found.output_schema)
    return {"description": found.description, "role": found.role, "output_schema": schema, "retries": found.retries}


def project_name(goal: str) -> str:
    """What the project of a goal is called: the goal's first line, as far as a name may be long."""
    return goal.strip().splitlines()[0][:MOST_NAME_CHARACTERS].strip()


MOST_NAME_CHARACTERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptProposal:
    """A proposal as it stands. revision: the newest; approved_revision: the one that a person approved. Times in milliseconds since
    1970, UTC.
    """

    id: int
    space_id: int
    state: ProposalState
    revision: int
    approved_revision: int | None
    decided_at: int | None
    decided_by: Ref | None
    reason: str | None
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRevision:
    """One wording of a proposal, which never changes. body: canonical JSON."""

    proposal_id: int
    number: int
    body: str
    digest: str
    author: Author
    at: int


def newest_run(revisions: Sequence[ProposalRevision]) -> int | None:
    """The run whose chain the proposal belongs to: the last that wrote a revision, None where only people did.

    A person who revises what a run proposed changes words of that run, so that the chain does not begin anew.
    """
    return next((one.author.run_id for one in reversed(revisions) if one.author.run_id is not None), None)
