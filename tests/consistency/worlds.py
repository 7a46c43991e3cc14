"""Text worlds: what a case file may say, checked strictly, and in words what a report says. README.md describes the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from ruamel.yaml import YAML

from graphsvc.domain.errors import StaleVersion, UnknownAgent, VersionConflict
from graphsvc.domain.model import Declaration, declare
from graphsvc.domain.names import AgentRef, parse_agent, parse_scope
from graphsvc.domain.redaction import EVERYTHING, Reader, reader_of
from graphsvc.domain.report import BreakingSet, Loop, Notice, Report, UnfedTrigger, UnheardEvent

HIDDEN = "hidden"
REFUSALS = {"version conflict": VersionConflict, "stale version": StaleVersion, "unknown agent": UnknownAgent}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)


class Declared(_Part):
    """What an agent's version declares."""

    emits: list[Any] = []
    hears: list[str] = []
    version: int | None = None

    def declaration(self) -> Declaration:
        """The declaration, checked as any other."""
        return declare(self.emits, self.hears)


class ExpectedLoop(_Part):
    """One loop, or a text that stands for its path. Whatever is left out must be absent, but for the events of the hops."""

    path: str
    events: list[list[str] | None] | None = None
    barrier: list[str] = []
    over_chain_limit: bool = False
    own_event: bool = Field(default=False, alias="self")

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: object) -> object:
        return {"path": value} if isinstance(value, str) else value


class ExpectedLimits(_Part):
    """The limits that were applied."""

    max_loops: int | None = None
    max_visits: int | None = None
    chain_limit: int | None = None


class Expected(_Part):
    """What a report says; what is left out is not looked at."""

    verification: Literal["complete", "more_loops", "walk_limited", "not_verified"]
    loops: list[ExpectedLoop]
    notices: list[dict[str, Any]] | None = None
    warns: bool | None = None
    limits: ExpectedLimits | None = None
    visits: Literal["told", "withheld"] | None = None
    revision: int | None = None


class Question(_Part):
    """What would this agent close, with its own or another declaration, for everybody or for a reader of these scopes?"""

    check: str
    proposed: Declared | None = Field(default=None, alias="as")
    reader: list[str] | None = None
    max_loops: int | None = None
    max_visits: int | None = None
    expect: Expected


class Step(_Part):
    """A publication or a retirement after the first agents are there."""

    publish: dict[str, Declared] | None = None
    retire: str | None = None
    reader: list[str] | None = None
    revision: int | None = None
    created: bool | None = None
    refused: Literal["version conflict", "stale version", "unknown agent"] | None = None
    expect: Expected | None = None

    @model_validator(mode="after")
    def _does_one_thing(self) -> Step:
        if (self.retire is None) == (self.publish is None or len(self.publish) != 1):
            raise ValueError("a step publishes one agent or retires one")
        if self.expect is not None and self.publish is None:
            raise ValueError("only a publication answers with a report")
        return self


class World(_Part):
    """One case file."""

    promise: list[str] = Field(min_length=1)
    agents: dict[str, Declared]
    then: list[Step] = []
    ask: list[Question] = Field(min_length=1)
    otherwise_named: dict[str, str] | None = None

    @model_validator(mode="after")
    def _can_name_hidden_agents(self) -> World:
        if any(parse_agent(text).name == HIDDEN for text in self.agents):
            raise ValueError(f"an agent may not be named {HIDDEN!r}, which stands for one outside the reader's access")
        return self


def reader_named(scopes: list[str] | None) -> Reader:
    """The reader of these scopes; of everything where a case names none."""
    return EVERYTHING if scopes is None else reader_of(map(parse_scope, scopes))


def read_world(path: Path, *, otherwise_named: bool = False) -> World:
    """The world of a case file. otherwise_named: with the other names that the file gives. Raises ValidationError."""
    content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    if otherwise_named:
        names = content.pop("otherwise_named")
        content = _renamed(content, names)
    return World.model_validate(content)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Names:
    """How agents are called in a world: by name, or with the scope where a name is there twice."""

    often: frozenset[str]

    def of(self, agent: AgentRef | None) -> str:
        """The text for an agent of a loop."""
        if agent is None:
            return HIDDEN
        return agent.text if agent.name in self.often else agent.name


def names_of(agents: Iterable[str]) -> Names:
    """The names of the agents that are ever published or asked about."""
    counted = Counter(agent.name for agent in set(map(parse_agent, agents)))
    return Names(frozenset(name for name, count in counted.items() if count > 1))


def told(report: Report, expected: Expected, names: Names) -> Expected:
    """What the report says, as far as the expectation looks at it."""
    limits = None if expected.limits is None else expected.limits.model_fields_set
    pairs = [(loop, expected.loops[i] if i < len(expected.loops) else None) for i, loop in enumerate(report.loops)]
    return Expected(
        verification=report.verification.value,
        loops=[_loop(loop, names, events=wanted is None or wanted.events is not None) for loop, wanted in pairs],
        notices=None if expected.notices is None else [_notice(notice) for notice in report.notices],
        warns=None if expected.warns is None else report.warns,
        limits=None if limits is None else ExpectedLimits(**{k: v for k, v in report.limits.as_json().items() if k in limits}),
        visits=None if expected.visits is None else "withheld" if report.visits is None else "told",
        revision=None if expected.revision is None else report.revision,
    )


def _loop(loop: Loop, names: Names, *, events: bool) -> ExpectedLoop:
    path = [names.of(agent) for agent in (*loop.agents, loop.agents[0])]
    return ExpectedLoop(
        path=" > ".join(path),
        events=[None if hop.events is None else list(hop.events) for hop in loop.hops] if events else None,
        barrier=[f"{path[i]} > {path[i + 1]}" for i, hop in enumerate(loop.hops) if hop.barrier],
        over_chain_limit=loop.over_chain_limit,
        self=loop.is_self,
    )


def _notice(notice: Notice) -> dict[str, Any]:
    match notice:
        case UnheardEvent(event):
            return {"unheard": event}
        case UnfedTrigger(event, None):
            return {"unfed": event}
        case UnfedTrigger(event, hint):
            return {"unfed": event, "hint": hint}
        case BreakingSet(triggers, events):
            return {"break": {"triggers": list(triggers), "events": list(events)}}
