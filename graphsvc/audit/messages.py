"""A finding in one English sentence, for people; long lists are cut and say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphsvc.domain.audit import (
    CrossingCompanies,
    Finding,
    LoopComponent,
    NearMiss,
    OwnEvent,
    SearchCut,
    ShortestLoop,
    TriggersToDrop,
    UnfedHearing,
    UnheardEmission,
)
from graphsvc.domain.names import AgentRef
from graphsvc.domain.report import Loop
from graphsvc.domain.wording import Language, hidden_agent, path_text, set_apart

MOST_NAMED = 20
"""Most names in one sentence; JSON has them all."""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(set_apart(name) for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def _refs(agents: Sequence[AgentRef]) -> str:
    return _listed([agent.text for agent in agents[: MOST_NAMED + 1]]) if len(agents) <= MOST_NAMED else _cut(agents)


def _cut(agents: Sequence[AgentRef]) -> str:
    return f"{_listed([agent.text for agent in agents[:MOST_NAMED]])} and {len(agents) - MOST_NAMED} more"


def _agents(count: int) -> str:
    return "1 agent" if count == 1 else f"{count} agents"


def outside_text(count: int) -> str:
    """How many hidden agents there are, in words."""
    return hidden_agent() if count == 1 else f"{count} agents outside your access"


def way_text(loop: Loop) -> str:
    """A loop as a line of references that comes back to the first."""
    return path_text(loop, {agent: agent.text for agent in loop.agents if agent is not None}, Language.ENGLISH)


def _component(finding: LoopComponent) -> Iterator[str]:
    hidden = f" and {outside_text(finding.hidden)}" if finding.hidden else ""
    yield f"{_agents(finding.size)} lead to each other: {_refs(finding.agents)}{hidden}"
    yield f"events between them: {_listed([event.event for event in finding.events])}"
    if finding.shortest is not None:
        yield f"the shortest loop has {finding.shortest.length} agents"
    if finding.beyond:
        yield f"for {_agents(finding.beyond)} no loop is short enough to be listed"


def _loop(finding: ShortestLoop) -> Iterator[str]:
    yield way_text(finding.loop)
    if finding.loop.over_chain_limit:
        yield f"has {finding.loop.length} agents, so a chain stops before it comes round"
    if any(hop.barrier for hop in finding.loop.hops):
        yield "may be stopped by the data barrier"


def _drops(finding: TriggersToDrop) -> Iterator[str]:
    count = len(finding.triggers)
    names = _listed([f"{trigger.event} of {trigger.agent.text}" for trigger in finding.triggers[: MOST_NAMED + 1]][:MOST_NAMED])
    more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    yield f"without {'this trigger' if count == 1 else f'these {count} triggers'} no loop is left that you may read: {names}{more}"
    yield "no fewer would do" if finding.is_smallest else f"fewer might do, but at least {finding.at_least}"


def _parts(finding: Finding) -> Iterator[str]:
    match finding:
        case LoopComponent():
            yield from _component(finding)
        case CrossingCompanies():
            yield f"agents of {len(finding.companies)} companies lead to each other: {_listed(finding.companies)}"
        case ShortestLoop():
            yield from _loop(finding)
        case TriggersToDrop():
            yield from _drops(finding)
        case SearchCut():
            yield f"the search for the shortest loop was cut short for {_agents(len(finding.agents))}: {_refs(finding.agents)}"
        case OwnEvent():
            yield f"{set_apart(finding.agent.text)} hears what it emits itself, which never starts it: {_listed(finding.events)}"
        case UnheardEmission():
            yield f"nobody you can read hears {set_apart(finding.event)}, which {set_apart(finding.agent.text)} emits"
        case UnfedHearing():
            yield (
                f"nobody you can read emits {set_apart(finding.event)}, which starts {set_apart(finding.agent.text)};"
                " it may come from outside"
            )
        case NearMiss():
            yield (
                f"nobody you can read emits {set_apart(finding.event)}, which starts {set_apart(finding.agent.text)},"
                f" but a name like it is emitted: {_listed(finding.similar)}"
            )


def message_of(finding: Finding) -> str:
    """The finding in words."""
    return "; ".join(_parts(finding))
