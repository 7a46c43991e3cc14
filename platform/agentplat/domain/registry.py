"""Agents, their versions and the reports kept with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentplat.domain.scopes import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """An event that a version emits, with the context and the artifacts that its listeners may ask for."""

    event: str
    context: str | None
    artifacts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a publisher wrote, checked. manifest: its JSON values. digest: SHA-256 in hexadecimal over its canonical JSON."""

    agent: Ref
    manifest: Mapping[str, Any]
    digest: str
    emits: tuple[Emission, ...]
    listens: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent as the registry keeps it. current: the number of its one published version, None where it is retired."""

    id: int
    ref: Ref
    paused: bool
    current: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An immutable version. publisher: None where the reader may not read their home scope.

    published_at: milliseconds since 1970, UTC.
    """

    agent: Agent
    number: int
    content: Content
    publisher: Ref | None
    published_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the graph is made of: an agent with the events that its published version emits, and those that start it."""

    agent: Ref
    paused: bool
    emits: tuple[str, ...]
    listens: tuple[str, ...]


class ReportState(StrEnum):
    """How the report came to the version."""

    VERIFIED = "verified"
    NOT_ANSWERED = "not_answered"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReport:
    """The report of a version as its publisher saw it. body: JSON values, None while the graph service has not answered.

    scopes: those it was made for; whoever lacks one of them never sees the body (P-7).
    """

    state: ReportState
    body: Mapping[str, Any] | None
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A published agent that emits an event, with the artifacts that it exposes there."""

    agent: Ref
    event: str
    artifacts: tuple[str, ...]
