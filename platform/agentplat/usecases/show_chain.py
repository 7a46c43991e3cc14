"""The page of a chain: its runs hop by hop, what became of their deliveries, where and why it stopped (R-12, R-16, R-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    """A run of the chain. agent: None where the reader may not read it; then its event and outcomes are left out too.

    hop: None where an older worker opened the run.
    """

    id: int
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
    """A chain for one reader. chain: its hop-0 run, None where it is unknown. size: how many runs were counted, shown or not."""

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
            return ShownChain(
                chain=None if place is None else place.chain,
                limits=work.chains.limits(),
                size=1 if place is None else work.chains.size(place.chain),
                runs=_shown(work, access, runs),
                stops=_stops(work, access, runs),
                hearings=_hearings(work, access, runs),
            )


def _shown(work: Work, access: Access, runs: Sequence[Run]) -> tuple[ChainRun, ...]:
    readable = [run.id for run in runs if access.may_read(run.agent.scope)]
    told: dict[int, list[Outcome]] = {run_id: [] for run_id in readable}
    for outcome in work.deliveries.outcomes(readable):
        told[outcome.source_run_id].append(_redacted(access, outcome))
    return tuple(_chain_run(access, run, told.get(run.id, [])) for run in runs)


def _chain_run(access: Access, run: Run, outcomes: Sequence[Outcome]) -> ChainRun:
    agent, place = access.visible(run.agent), position_of(run)
    return ChainRun(
        id=run.id,
        hop=None if place is None else place.hop,
        agent=agent,
        version=None if agent is None else run.number,
        state=run.state,
        source_run_id=run.source_run_id,
        event=None if agent is None else run.event,
        outcomes=tuple(outcomes),
    )


def _redacted(access: Access, outcome: Outcome) -> Outcome:
    """The outcome without what tells of a listener or of a place that the reader may not read."""
    return replace(outcome, listener=access.visible(outcome.listener), details=_readable(access, outcome))


def _readable(access: Access, outcome: Outcome) -> Mapping[str, Any]:
    details = dict(outcome.details)
    home = parse_label(details["label"]).scope if "label" in details else None
    if home is not None and not access.may_read(home):
        details = {name: value for name, value in details.items() if name not in ("label", "rule")}
    if "into" in details and not access.may_read(details["into"]):
        del details["into"]
    return details


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
