"""Event chains: where a run stands in its chain, and what stops the chain (R-6 to R-12). Nothing but arithmetic.

The limits are kept in the database alone, so that every worker goes by the same ones; there is no default of them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agentplat.domain.labels import Crossing, Labels, crossing, join


class OpenedBy(StrEnum):
    """Who or what opened a run."""

    PERSON = "person"
    EVENT = "event"
    MENTION = "mention"
    DELEGATION = "delegation"
    PIPELINE = "pipeline"


COUNTED = frozenset({OpenedBy.EVENT, OpenedBy.MENTION, OpenedBy.DELEGATION})
"""Openings that take a chain one hop further, when a run is their source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLimits:
    """hops: the last hop whose run still executes, and publishes nothing. runs: most runs of one chain, its hop 0 included."""

    hops: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A run's place. chain: the id of the chain's hop-0 run."""

    hop: int
    chain: int


class Opened(Protocol):
    """What of a run its place is read from."""

    @property
    def id(self) -> int:
        """The run."""

    @property
    def opened_by(self) -> OpenedBy:
        """Who or what opened it."""

    @property
    def source_run_id(self) -> int | None:
        """The run that it was opened from."""

    @property
    def hop(self) -> int | None:
        """The hop that its opening recorded."""

    @property
    def chain(self) -> int | None:
        """The hop-0 run that its opening recorded."""


def position_of(run: Opened) -> Position | None:
    """The run's place, or None where its chain is unknown (R-9)."""
    if run.hop is not None and run.chain is not None:
        return Position(hop=run.hop, chain=run.chain)
    # A worker of the previous version recorded no hop. A run of which another one is the source may stand anywhere in a chain:
    # counting it as hop 0 would let a loop start again with every such run. One without a source is where a chain begins.
    return None if run.source_run_id is not None else Position(hop=0, chain=run.id)


def after(source: Position, opened_by: OpenedBy) -> Position:
    """The place of a run that a run at this place opens. The steps of a pipeline keep the hop of the run that opened it (R-6)."""
    return Position(hop=source.hop + (opened_by in COUNTED), chain=source.chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHopLimit:
    """The chain has come to its last hop. chain: its hop-0 run. limit: that hop."""

    chain: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainUnknown:
    """The run was opened by another one, and its opening says not at which hop."""


Withheld = AtHopLimit | ChainUnknown
"""Why the events of a finished run are not published."""


def withheld(position: Position | None, limits: ChainLimits) -> Withheld | None:
    """Why a finished run at this place publishes none of its events; None where it publishes them (R-7, R-9)."""
    if position is None:
        return ChainUnknown()
    return AtHopLimit(chain=position.chain, limit=limits.hops) if position.hop >= limits.hops else None


def loop_within(way: Sequence[int]) -> slice | None:
    """Where on a way of agents a loop lies: the shortest one, of equally short ones the last; None where no agent comes twice.

    The slice has each agent of the loop once; the one it begins with follows it again.
    """
    latest: dict[int, int] = {}
    found: slice | None = None
    for i, agent in enumerate(way):
        start = latest.get(agent)
        if start is not None and (found is None or i - start <= found.stop - found.start):
            found = slice(start, i)
        latest[agent] = i
    return found


class OutcomeKind(StrEnum):
    """What became of one listener of one event, or of a finished run that has none (R-16)."""

    OPENED = "opened"
    OWN_EVENT = "own_event"
    BARRIER = "barrier"
    PAUSED = "paused"
    HOP_LIMIT = "hop_limit"
    CHAIN_UNKNOWN = "chain_unknown"
    CHAIN_RUNS_SPENT = "chain_runs_spent"
    NO_LISTENERS = "no_listeners"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An agent that the event would start."""

    agent_id: int
    scope: str
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What becomes of a listener. crossing: what the barrier stops, where it does."""

    kind: OutcomeKind
    crossing: Crossing | None = None


def judge(listener: Listener, source_agent_id: int, stopped: Withheld | None, carried: Iterable[Labels]) -> Judgement:
    """What becomes of a listener, apart from the chain's budget of runs, which is taken when its run is opened.

    stopped: why the source's events are withheld. carried: the labels of each artifact that the event would carry to it.
    An agent's own event is refused first of all, at any hop (R-11).
    """
    if listener.agent_id == source_agent_id:
        return Judgement(kind=OutcomeKind.OWN_EVENT)
    if isinstance(stopped, ChainUnknown):
        return Judgement(kind=OutcomeKind.CHAIN_UNKNOWN)
    if isinstance(stopped, AtHopLimit):
        return Judgement(kind=OutcomeKind.HOP_LIMIT)
    if listener.paused:
        return Judgement(kind=OutcomeKind.PAUSED)
    stop = crossing(join(*carried), listener.scope)
    if stop is not None:
        return Judgement(kind=OutcomeKind.BARRIER, crossing=stop)
    return Judgement(kind=OutcomeKind.OPENED)
