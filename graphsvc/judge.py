"""From a graph and a proposed version to the report that one reader may see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration
from graphsvc.domain.names import AgentRef
from graphsvc.domain.notices import breaking_set
from graphsvc.domain.redaction import Reader, barrier_stops
from graphsvc.domain.report import Hop, Loop, Notice, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.graph import Graph, Kernel
from graphsvc.kernels import rows

_VERIFICATION = {
    rows.COMPLETE: Verification.COMPLETE,
    rows.MORE_LOOPS: Verification.MORE_LOOPS,
    rows.WALK_LIMITED: Verification.WALK_LIMITED,
    rows.NOT_VERIFIED: Verification.NOT_VERIFIED,
}


Hops = dict[tuple[AgentRef, AgentRef], Hop]
"""The hops of one report by their two ends: its loops have most of them in common."""


def judge(
    graph: Graph, agent: AgentRef, declaration: Declaration, reader: Reader, limits: Limits, kernel: Kernel, revision: int | None
) -> Report:
    """What this declaration would close as the agent's version, redacted for the reader; the agent itself is always named."""
    found = graph.search(agent, declaration, reader, limits, kernel)
    proposed = AgentVersion(agent, 0, declaration)
    hops: Hops = {}
    longer = tuple(_loop(versions, reader, limits, hops) for versions in found.loops)
    loops = (*_own_loop(proposed, reader, limits), *longer)
    return Report(
        agent=agent,
        verification=_VERIFICATION[found.ended],
        loops=loops,
        notices=tuple(_notices(graph, agent, declaration, reader, loops)),
        limits=limits,
        visits=found.visits if reader.reads_everything else None,
        revision=revision,
    )


def _own_loop(proposed: AgentVersion, reader: Reader, limits: Limits) -> Iterator[Loop]:
    if {emit.event for emit in proposed.declaration.emits}.intersection(proposed.declaration.listens):
        yield _loop((proposed,), reader, limits, {})


def _loop(versions: Sequence[AgentVersion], reader: Reader, limits: Limits, hops: Hops) -> Loop:
    """The loop of these versions as the reader may see it. The first one's agent is the one asked about, whom they may name."""
    named = [i == 0 or reader.may_read(version.agent.scope) for i, version in enumerate(versions)]
    steps = []
    for i, j in enumerate([*range(1, len(versions)), 0]):
        ends = versions[i].agent, versions[j].agent
        if ends not in hops:
            hops[ends] = _hop(versions[i], versions[j], named[i], named[j])
        steps.append(hops[ends])
    return Loop(
        agents=tuple([version.agent if seen else None for version, seen in zip(versions, named, strict=True)]),
        hops=tuple(steps),
        over_chain_limit=len(versions) > limits.chain_limit,
    )


def _hop(source: AgentVersion, target: AgentVersion, source_named: bool, target_named: bool) -> Hop:
    if not source_named and not target_named:
        return Hop(events=None)
    heard = frozenset(target.declaration.listens)
    shared = [emit for emit in source.declaration.emits if emit.event in heard]
    stopped = source_named and target_named and barrier_stops(source.agent.scope, target.agent.scope)
    return Hop(events=tuple(emit.event for emit in shared), barrier=stopped and all(emit.artifacts for emit in shared))


def _notices(graph: Graph, agent: AgentRef, declaration: Declaration, reader: Reader, loops: Sequence[Loop]) -> Iterator[Notice]:
    emitted = {emit.event for emit in declaration.emits}
    for emit in declaration.emits:
        heard = emit.event in declaration.listens or any(other != agent for other in graph.listeners(emit.event, reader))
        if not heard:
            yield UnheardEvent(emit.event)
    for trigger in declaration.listens:
        if trigger not in emitted and all(other == agent for other in graph.emitters(trigger, reader)):
            yield UnfedTrigger(trigger, _hint(graph, agent, trigger, reader))
    breaking = breaking_set(loops)
    if breaking is not None:
        yield breaking


def _hint(graph: Graph, agent: AgentRef, trigger: str, reader: Reader) -> str | None:
    """The first event in name order that is like the trigger and that another readable agent emits."""
    for name in graph.alike(trigger):
        if any(other != agent for other in graph.emitters(name, reader)):
            return name
    return None
