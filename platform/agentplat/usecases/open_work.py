"""Opening the run of an agent in a space: the one place that mentions, delegations and pipelines go through (W-9, D-5, R-6)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.access import Person
from agentplat.domain.actions import driver_of
from agentplat.domain.artifacts import Blob
from agentplat.domain.chains import AtHopLimit, OpenedBy, Position, after, position_of, withheld
from agentplat.domain.errors import Refused
from agentplat.domain.labels import Labels, crossing, join, label_of
from agentplat.domain.registry import Agent
from agentplat.domain.runs import NewRun, Run
from agentplat.domain.spaces import Workplace
from agentplat.domain.times import now_ms
from agentplat.store.port import Work
from agentplat.usecases.keeping import keep_named


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWork:
    """Work for an agent.

    source: the run that gives it, whose chain it continues; None where a person does, who begins one. text: what the agent is to
    work on. labels: what the text carries beside the labels of the source run.
    """

    agent: Agent
    opened_by: OpenedBy
    on_behalf_of: Person
    source: Run | None
    workplace: Workplace
    text: str
    labels: Labels = frozenset()


def open_work(work: Work, content: ContentStore, new: NewWork) -> Run:
    """Open the run within a transaction.

    Raises Refused where the agent is paused or has no published version, the chain has come to its limit of hops or runs, or the
    barrier keeps the data away, without having written anything; ContentUnavailable.
    """
    number = _startable(new.agent)
    position = None if new.source is None else _next_place(work, new.source, new.opened_by)
    carried = join(new.labels, frozenset() if new.source is None else new.source.labels)
    stopped = crossing(carried, new.agent.ref.scope)
    if stopped is not None:
        raise Refused(f"{stopped.label} may not go to {stopped.into}: {stopped.rule}")
    if position is not None and not work.chains.take(position.chain, work.chains.limits().runs):
        raise Refused(f"the chain has spent its budget of {work.chains.limits().runs} runs")
    version = work.registry.version(new.agent, number)
    assert version is not None  # `_startable` gave the published one
    opened = NewRun(
        agent=new.agent,
        number=number,
        driver=driver_of(version.content.manifest),
        opened_by=new.opened_by,
        opener=new.on_behalf_of if new.source is None else None,
        on_behalf_of=new.on_behalf_of,
        labels=join(label_of(new.agent.ref.scope), carried),
        source_run_id=None if new.source is None else new.source.id,
        position=position,
        input=_kept(work, content, new.text),
    )
    run = work.runs.open(opened, now_ms())
    assert run is not None  # only a delivery can have opened its run before
    work.spaces.place(run.id, new.workplace)
    return run


def _startable(agent: Agent) -> int:
    """The number of the agent's published version. Raises Refused."""
    if agent.current is None:
        raise Refused(f"{agent.ref.name} has no published version")
    if agent.paused:
        raise Refused(f"{agent.ref.name} is paused")
    return agent.current


def _next_place(work: Work, source: Run, opened_by: OpenedBy) -> Position:
    """Where in the source's chain the run would stand. Raises Refused where the chain goes no further."""
    position = position_of(source)
    stopped = withheld(position, work.chains.limits())
    if position is None:
        raise Refused("the run's place in its chain is not known, so that nothing follows from it")
    # A step of a pipeline stays at its source's hop, so it is one hop further from the limit.
    if isinstance(stopped, AtHopLimit) and after(position, opened_by).hop > stopped.limit:
        raise Refused(f"the chain has come to hop {stopped.limit}, which is its last")
    return after(position, opened_by)


def _kept(work: Work, content: ContentStore, text: str) -> Blob:
    data = text.encode()
    blob = content.put(data)
    keep_named(work, content, {blob: data})
    return blob
