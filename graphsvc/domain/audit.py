"""What an audit finds in a graph: records with stable rule ids, already cut down to the auditor. Words are made from them later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from graphsvc.domain.canonical import digest_of
from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.limits import DEFAULT_CHAIN_LIMIT
from graphsvc.domain.names import AgentRef
from graphsvc.domain.report import Loop
from graphsvc.domain.rules import (
    CROSSING_COMPANIES,
    LOOP_COMPONENT,
    NEAR_MISS,
    OWN_EVENT,
    SEARCH_CUT,
    SHORTEST_LOOP,
    TRIGGERS_TO_DROP,
    UNFED_TRIGGER,
    UNHEARD_EVENT,
    Rule,
)

DEFAULT_MAX_LENGTH = 64
"""Most agents of the loops that an audit lists, where nothing else is said."""

MAX_LENGTH = 10_000
"""Most agents of the loops that an audit can be asked to list."""

DEFAULT_AUDIT_VISITS = 100_000
"""Most incidences looked at for one agent: less than for a single check, as an audit searches from every agent of a component."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLimits:
    """max_length: most agents of the loops listed, from 2 to MAX_LENGTH. max_visits: most incidences looked at for one agent.

    chain_limit: a loop with more agents is marked, as a chain stops before it comes round once.
    """

    max_length: int = DEFAULT_MAX_LENGTH
    max_visits: int = DEFAULT_AUDIT_VISITS
    chain_limit: int = DEFAULT_CHAIN_LIMIT

    def __post_init__(self) -> None:
        for field, least in (("max_length", 2), ("max_visits", 0), ("chain_limit", 1)):
            value = getattr(self, field)
            if value < least:
                remedy = f"use a whole number of at least {least}"
                raise InvalidInput([Violation(field=field, reason=f"is {value}", remedy=remedy)])
        if self.max_length > MAX_LENGTH:
            remedy = f"use a whole number of at most {MAX_LENGTH}"
            raise InvalidInput([Violation(field="max_length", reason=f"is {self.max_length}", remedy=remedy)])

    def as_json(self) -> dict[str, int]:
        """The limits as JSON values."""
        return {"max_length": self.max_length, "max_visits": self.max_visits, "chain_limit": self.chain_limit}


@dataclass(frozen=True, slots=True)
class Trigger:
    """One of the events that start an agent."""

    agent: AgentRef
    event: str

    def as_json(self) -> dict[str, str]:
        """The trigger as JSON values."""
        return {"agent": self.agent.text, "event": self.event}


@dataclass(frozen=True, slots=True)
class EventEnds:
    """An event inside a component, and which of the component's agents it connects.

    hidden_emitters: whether a hidden agent emits it too, told only where a readable one hears it. hidden_listeners: likewise.
    """

    event: str
    emitters: tuple[AgentRef, ...]
    listeners: tuple[AgentRef, ...]
    hidden_emitters: bool = False
    hidden_listeners: bool = False

    def as_json(self) -> dict[str, Any]:
        """The event as JSON values."""
        return {
            "event": self.event,
            "emitters": [agent.text for agent in self.emitters],
            "listeners": [agent.text for agent in self.listeners],
            "hidden_emitters": self.hidden_emitters,
            "hidden_listeners": self.hidden_listeners,
        }


class _Record:
    """What all findings have in common."""

    rule: ClassVar[Rule]

    def subject(self) -> Any:
        """What the finding is about, as JSON values: two audits find the same where this is the same."""
        raise NotImplementedError

    def details(self) -> dict[str, Any]:
        """What is found, as JSON values."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Names the finding in baselines: SHA-256 in hexadecimal over its rule and subject."""
        return digest_of([self.rule.id, self.subject()])

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {
            "rule": self.rule.id,
            "name": self.rule.name,
            "level": self.rule.level.value,
            "fingerprint": self.fingerprint,
            **self.details(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopComponent(_Record):
    """Agents that all lead to each other. agents: those the auditor may read, by name; hidden: how many others there are.

    events: those between two of its agents one of which is readable. companies: of the readable agents.
    shortest: the first of the component's shortest loops, None where no loop was found within the limits.
    beyond: how many of the agents asked for have no loop of max_length agents or fewer.
    """

    rule = LOOP_COMPONENT
    agents: tuple[AgentRef, ...]
    hidden: int
    events: tuple[EventEnds, ...]
    companies: tuple[str, ...]
    shortest: Loop | None
    beyond: int

    @property
    def size(self) -> int:
        """How many agents it has."""
        return len(self.agents) + self.hidden

    def subject(self) -> Any:
        """The agents."""
        return [agent.text for agent in self.agents]

    def details(self) -> dict[str, Any]:
        """The component as JSON values."""
        return {
            "size": self.size,
            "agents": [agent.text for agent in self.agents],
            "hidden": self.hidden,
            "companies": list(self.companies),
            "events": [event.as_json() for event in self.events],
            "shortest": None if self.shortest is None else self.shortest.as_json(),
            "beyond": self.beyond,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossingCompanies(_Record):
    """A component of several companies. component: the fingerprint of its finding. companies: of its readable agents."""

    rule = CROSSING_COMPANIES
    component: str
    companies: tuple[str, ...]

    def subject(self) -> Any:
        """The component."""
        return self.component

    def details(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {"component": self.component, "companies": list(self.companies)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestLoop(_Record):
    """A loop that is the shortest through some agents of a component; it begins at the first of its readable agents by name.

    shortest_for: the agents asked for that have no shorter one and for which no other loop is listed.
    """

    rule = SHORTEST_LOOP
    component: str
    loop: Loop
    shortest_for: tuple[AgentRef, ...]

    def subject(self) -> Any:
        """The agents around the loop."""
        return [None if agent is None else agent.text for agent in self.loop.agents]

    def details(self) -> dict[str, Any]:
        """The loop as JSON values."""
        return {
            "component": self.component,
            **self.loop.as_json(),
            "shortest_for": [agent.text for agent in self.shortest_for],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggersToDrop(_Record):
    """Triggers whose loss leaves a component without loops through readable agents; nothing is said of loops among hidden ones.

    at_least: fewer cannot do. Where that is as many as are named, the set is a smallest one.
    """

    rule = TRIGGERS_TO_DROP
    component: str
    triggers: tuple[Trigger, ...]
    at_least: int

    @property
    def is_smallest(self) -> bool:
        """Whether no smaller set would do."""
        return self.at_least == len(self.triggers)

    def subject(self) -> Any:
        """The component."""
        return self.component

    def details(self) -> dict[str, Any]:
        """The triggers as JSON values."""
        return {
            "component": self.component,
            "triggers": [trigger.as_json() for trigger in self.triggers],
            "at_least": self.at_least,
            "at_most": len(self.triggers),
            "smallest": self.is_smallest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCut(_Record):
    """Agents of a component whose search for a shortest loop used up its visits."""

    rule = SEARCH_CUT
    component: str
    agents: tuple[AgentRef, ...]

    def subject(self) -> Any:
        """The component."""
        return self.component

    def details(self) -> dict[str, Any]:
        """The agents as JSON values."""
        return {"component": self.component, "agents": [agent.text for agent in self.agents]}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEvent(_Record):
    """An agent that hears events which it emits itself."""

    rule = OWN_EVENT
    agent: AgentRef
    events: tuple[str, ...]

    def subject(self) -> Any:
        """The agent and the events."""
        return [self.agent.text, *self.events]

    def details(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {"agent": self.agent.text, "events": list(self.events)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _AtEvent(_Record):
    agent: AgentRef
    event: str

    def subject(self) -> Any:
        """The agent and the event."""
        return [self.agent.text, self.event]

    def details(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {"agent": self.agent.text, "event": self.event}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnheardEmission(_AtEvent):
    """An agent emits an event that nobody readable hears."""

    rule = UNHEARD_EVENT


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfedHearing(_AtEvent):
    """An agent hears an event that nobody readable emits."""

    rule = UNFED_TRIGGER


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss(_AtEvent):
    """A trigger that nobody readable emits and that is almost named like these events, which other readable agents emit."""

    rule = NEAR_MISS
    similar: tuple[str, ...]

    def details(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {"agent": self.agent.text, "event": self.event, "similar": list(self.similar)}


Finding = (
    LoopComponent
    | CrossingCompanies
    | ShortestLoop
    | TriggersToDrop
    | SearchCut
    | OwnEvent
    | UnheardEmission
    | UnfedHearing
    | NearMiss
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an audit is. step: what it is doing, in words. done: of total; total is None where it is not known beforehand."""

    step: str
    done: int
    total: int | None
