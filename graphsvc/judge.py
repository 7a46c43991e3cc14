"""From a graph and a proposed version to the report that one reader may see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphsvc.domain.limits import Limits
from graphsvc.domain.model import Declaration
from graphsvc.domain.names import AgentRef
from graphsvc.domain.notices import breaking_set
from graphsvc.domain.redaction import Reader, barrier_stops
from graphsvc.domain.report import Hop, Loop, Notice, Proof, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.graph import Found, Graph, Kernel
from graphsvc.kernels import rows

_VERIFICATION = {
    rows.COMPLETE: Verification.COMPLETE,
    rows.MORE_LOOPS: Verification.MORE_LOOPS,
    rows.WALK_LIMITED: Verification.WALK_LIMITED,
    rows.NOT_VERIFIED: Verification.NOT_VERIFIED,
}


def judge(
    graph: Graph, agent: AgentRef, declaration: Declaration, reader: Reader, limits: Limits, kernel: Kernel, revision: int | None
) -> Report:
    """What this declaration would close as the agent's version, redacted for the reader; the agent itself is always named."""
    found = graph.search(agent, declaration, reader, limits, kernel)
    # Whether the index or the whole search told is not said: which of the two it was depends on the graph's history.
    proven = found.ended == rows.COMPLETE and not found.loops
    loops = (*_own_loop(agent, declaration, limits), *_longer(found, limits))
    return Report(
        agent=agent,
        verification=_VERIFICATION[found.ended],
        loops=loops,
        notices=tuple(_notices(graph, agent, declaration, reader, found, loops)),
        limits=limits,
        visits=found.visits if reader.reads_everything and not proven else None,
        proof=Proof.ORDER if proven else None,
        revision=revision,
    )


def _own_loop(agent: AgentRef, declaration: Declaration, limits: Limits) -> Iterator[Loop]:
    shared = {emit.event for emit in declaration.emits}.intersection(declaration.listens)
    if shared:
        yield Loop((agent,), (Hop(tuple(sorted(shared))),), over_chain_limit=limits.chain_limit < 1)


def _longer(found: Found, limits: Limits) -> Iterator[Loop]:
    """Loops of at least two agents as the reader may see them."""
    hops, guarded = found.hops, found.guarded
    for agents, steps in zip(found.loops, found.steps, strict=True):
        if guarded or found.hidden:
            ends = zip(steps, agents, agents[1:] + agents[:1], strict=True)
            along = tuple([_hop(hops[step], step in guarded, source, target) for step, source, target in ends])
        else:
            along = tuple([hops[step] for step in steps])
        yield Loop(agents, along, len(agents) > limits.chain_limit)


def _hop(hop: Hop, guarded: bool, source: AgentRef | None, target: AgentRef | None) -> Hop:
    if source is None and target is None:
        return Hop(None)
    if guarded and source is not None and target is not None and barrier_stops(source.scope, target.scope):
        return Hop(hop.events, barrier=True)
    return hop


def _notices(
    graph: Graph, agent: AgentRef, declaration: Declaration, reader: Reader, found: Found, loops: Sequence[Loop]
) -> Iterator[Notice]:
    emitted, triggers = {emit.event for emit in declaration.emits}, set(declaration.listens)
    for emit, heard in zip(declaration.emits, found.heard, strict=True):
        if not heard and emit.event not in triggers:
            yield UnheardEvent(emit.event)
    for trigger, fed in zip(declaration.listens, found.fed, strict=True):
        if not fed and trigger not in emitted:
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
