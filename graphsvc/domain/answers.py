"""What the use cases answer, beside the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from graphsvc.domain.audit import AuditLimits, Finding
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import AgentRef
from graphsvc.domain.report import Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A version is stored. revision: the one that its first publication created; created: whether this call did."""

    revision: int
    created: bool
    report: Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Retired:
    """revision: that of the retirement, the present one where this call changed nothing. created: whether it took the agent out."""

    revision: int
    created: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """An import is stored. created: versions that were new; unchanged: those that were there with the same content."""

    revision: int
    created: int
    unchanged: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """An agent one hop away, with the events between the two, sorted."""

    agent: AgentRef
    events: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """One agent as its reader may see it; a page of its neighbours in each direction, by name, then scope.

    next_page_token: for the next page, empty on the last.
    """

    version: AgentVersion
    started_by: tuple[Neighbour, ...]
    starts: tuple[Neighbour, ...]
    next_page_token: str
    revision: int


class Sizes(NamedTuple):
    """Agents with a published version, events that one of them emits or hears, and their incidences."""

    agents: int
    events: int
    incidences: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """Where the graph stands and what applies. sizes: None unless the reader reads the whole installation."""

    revision: int
    default_limits: Limits
    ceilings: Limits
    sizes: Sizes | None


class Audited(NamedTuple):
    """What an audit finds, as it finds it. revision: of the graph it is made of, None where that came from files.

    limits: those it works under.
    """

    revision: int | None
    limits: AuditLimits
    findings: Iterator[Finding]
