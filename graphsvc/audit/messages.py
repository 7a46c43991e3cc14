"""A finding in one English sentence, for people; long lists are cut and say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

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


T = TypeVar("T")


def _listed(things: Sequence[T], say: Callable[[T], str]) -> str:
    shown = ", ".join(say(thing) for thing in things[:MOST_NAMED])
    return shown if len(things) <= MOST_NAMED else f"{shown} and {len(things) - MOST_NAMED} more"


def _names(names: Sequence[str]) -> str:
    return _listed(names, set_apart)


def _ref(agent: AgentRef) -> str:
    return set_apart(agent.text)


def _refs(agents: Sequence[AgentRef]) -> str:
    return _listed(agents, _ref)


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
    yield f"events between them: {_listed(finding.events, lambda event: set_apart(event.event))}"
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
    names = _listed(finding.triggers, lambda trigger: f"{set_apart(trigger.event)} of {_ref(trigger.agent)}")
    yield f"without {'this trigger' if count == 1 else f'these {count} triggers'} no agent that you may read is on a loop: {names}"
    yield "no fewer would do" if finding.is_smallest else f"fewer might do, but at least {finding.at_least}"


def _parts(finding: Finding) -> Iterator[str]:
    match finding:
        case LoopComponent():
            yield from _component(finding)
        case CrossingCompanies():
            yield f"agents of {len(finding.companies)} companies lead to each other: {_names(finding.companies)}"
        case ShortestLoop():
            yield from _loop(finding)
        case TriggersToDrop():
            yield from _drops(finding)
        case SearchCut():
            yield f"the search for the shortest loop was cut short for {_agents(len(finding.agents))}: {_refs(finding.agents)}"
        case OwnEvent():
            yield f"{_ref(finding.agent)} hears what it emits itself, which never starts it: {_names(finding.events)}"
        case UnheardEmission():
            yield f"nobody you can read hears {set_apart(finding.event)}, which {_ref(finding.agent)} emits"
        case UnfedHearing():
            yield (
                f"nobody you can read emits {set_apart(finding.event)}, which starts {_ref(finding.agent)};"
                " it may come from outside"
            )
        case NearMiss():
            yield (
                f"nobody you can read emits {set_apart(finding.event)}, which starts {_ref(finding.agent)},"
                f" but a name like it is emitted: {_names(finding.similar)}"
            )


def message_of(finding: Finding) -> str:
    """The finding in words."""
    return "; ".join(_parts(finding))
