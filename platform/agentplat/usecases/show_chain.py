"""The page of a chain: its runs hop by hop, what became of their deliveries, where and why it stopped (R-12, R-16, R-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.chains import ChainLimits, position_of
from agentplat.domain.deliveries import Outcome
from agentplat.domain.errors import NotFound
from agentplat.domain.labels import parse_label
from agentplat.domain.runs import Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.shown import parse_ref
from agentplat.domain.steps import Closing, Warned, WithheldEvents, WithheldWhy
from agentplat.store.port import Store, Work

MOST_RUNS = 1_000
"""Most runs of a chain that its page shows."""
_MOST_STOPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainRun:
    """A run of the chain. Where the reader may not read its agent, only hop and state are left of it.

    hop: None where an older worker opened the run. source_run_id: None too where that run is outside the reader's access.
    """

    id: int | None
    hop: int | None
    agent: Ref | None
    version: int | None
    state: RunState
    source_run_id: int | None
    event: str | None
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A run whose events were withheld, as its closing step says. loop: the agents it went round, None for each hidden one."""

    run_id: int
    why: WithheldWhy
    events: tuple[str, ...]
    limit: int | None
    loop: tuple[Ref | None, ...] | None
    warned: Warned | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """Who listens to whom just now, among the agents of the chain. event: None where the reader may read neither side."""

    source: Ref | None
    event: str | None
    listener: Ref | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChain:
    """A chain for one reader. known: whether it is known which chain the run is of. size: how many runs were counted, shown or not.

    chain: the hop-0 run, None where it is unknown or outside the reader's access.
    """

    known: bool
    chain: int | None
    limits: ChainLimits
    size: int
    runs: tuple[ChainRun, ...]
    stops: tuple[Stop, ...]
    hearings: tuple[Hearing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowChain:
    """Shows the chain of a run."""

    store: Store

    def __call__(self, access: Access, run_id: int) -> ShownChain:
        """The chain that the run is of, as the reader may see it. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            run = work.runs.find(run_id)
            if run is None or not access.may_read(run.agent.scope):
                raise NotFound
            place = position_of(run)
            runs = [run] if place is None else work.runs.of_chain(place.chain, MOST_RUNS)
            told = work.deliveries.outcomes([one.id for one in runs if access.may_read(one.agent.scope)])
            by_run = {run_id: tuple(of_run) for run_id, of_run in groupby(told, lambda one: one.source_run_id)}
            named = {one.id for one in runs} | {one.run_id for one in told if one.run_id is not None}
            reader = _Reader(access=access, runs=frozenset(work.runs.readable_among(named, access.scopes)))
            return ShownChain(
                known=place is not None,
                chain=None if place is None else reader.run(place.chain),
                limits=work.chains.limits(),
                size=1 if place is None else work.chains.size(place.chain),
                runs=tuple(reader.chain_run(one, by_run.get(one.id, ())) for one in runs),
                stops=_stops(work, access, runs),
                hearings=_hearings(work, access, runs),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Whoever the page is for. runs: those of the named ones that they may read."""

    access: Access
    runs: frozenset[int]

    def run(self, run_id: int | None) -> int | None:
        """The run, where it may be read."""
        return run_id if run_id in self.runs else None

    def chain_run(self, run: Run, told: Sequence[Outcome]) -> ChainRun:
        """The run with what became of its deliveries."""
        place, readable = position_of(run), run.id in self.runs
        return ChainRun(
            id=self.run(run.id),
            hop=None if place is None else place.hop,
            agent=run.agent if readable else None,
            version=run.number if readable else None,
            state=run.state,
            source_run_id=self.run(run.source_run_id) if readable else None,
            event=run.event if readable else None,
            outcomes=tuple(map(self._outcome, told)),
        )

    def _outcome(self, outcome: Outcome) -> Outcome:
        """The outcome without what tells of a listener, a run or a place that the reader may not read."""
        listener, details = self.access.visible(outcome.listener), self._details(outcome)
        return replace(outcome, listener=listener, run_id=self.run(outcome.run_id), details=details)

    def _details(self, outcome: Outcome) -> Mapping[str, Any]:
        details = dict(outcome.details)
        home = parse_label(details["label"]).scope if "label" in details else None
        hidden = {"label", "rule"} if home is not None and not self.access.may_read(home) else set()
        hidden |= {"into"} if "into" in details and not self.access.may_read(details["into"]) else set()
        hidden |= {"chain"} if "chain" in details and self.run(details["chain"]) is None else set()
        return {name: value for name, value in details.items() if name not in hidden}


def _stops(work: Work, access: Access, runs: Sequence[Run]) -> tuple[Stop, ...]:
    """Where events were withheld: the runs of the last hop are the only ones that a chain stops at."""
    furthest = max((run.hop or 0 for run in runs), default=0)
    ended = [run for run in runs if run.state is RunState.FINISHED and (run.hop or 0) == furthest]
    found = []
    for run in [run for run in ended if access.may_read(run.agent.scope)][:_MOST_STOPS]:
        last = work.runs.trail(run.id, after=run.steps - 1)
        closing = last[-1].read() if last else None
        if isinstance(closing, Closing) and closing.withheld is not None:
            found.append(_stop(access, run, closing.withheld))
    return tuple(found)


def _stop(access: Access, run: Run, withheld: WithheldEvents) -> Stop:
    loop = withheld.loop
    return Stop(
        run_id=run.id,
        why=withheld.why,
        events=withheld.events,
        limit=withheld.limit,
        loop=None if loop is None else tuple(access.visible(parse_ref(text)) for text in loop.agents),
        warned=None if loop is None else loop.warned,
    )


def _hearings(work: Work, access: Access, runs: Sequence[Run]) -> tuple[Hearing, ...]:
    agents = {run.agent_id: run.agent for run in runs}
    found = set()
    for agent_id in agents:
        agent = work.registry.by_id(agent_id)
        version = None if agent.current is None else work.registry.version(agent, agent.current)
        for emission in () if version is None else version.content.emits:
            for listener in work.registry.listeners(emission.event):
                if listener.id in agents:
                    source, heard = access.visible(agent.ref), access.visible(listener.ref)
                    event = emission.event if source is not None or heard is not None else None
                    found.add(Hearing(source=source, event=event, listener=heard))
    return tuple(sorted(found, key=_order))


def _order(hearing: Hearing) -> tuple[str, str, str]:
    source, listener = (ref.text if ref is not None else "~" for ref in (hearing.source, hearing.listener))
    return source, hearing.event or "", listener
