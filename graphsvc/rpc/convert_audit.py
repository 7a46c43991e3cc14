"""Findings of an audit to the wire and back."""

from __future__ import annotations

from collections.abc import Iterable

from graphsvc.domain.audit import (
    AuditLimits,
    CrossingCompanies,
    EventEnds,
    Finding,
    LoopComponent,
    NearMiss,
    OwnEvent,
    Progress,
    SearchCut,
    ShortestLoop,
    Trigger,
    TriggersToDrop,
    UnfedHearing,
    UnheardEmission,
)
from graphsvc.domain.names import AgentRef
from graphsvc.domain.rules import RULE_OF
from graphsvc.rpc.convert import Unreadable, agent_from_proto, agent_to_proto, loop_from_proto, loop_to_proto
from graphsvc.v1 import graph_pb2 as pb


def _to_refs(agents: Iterable[AgentRef]) -> list[pb.AgentRef]:
    return [agent_to_proto(agent) for agent in agents]


def _from_refs(messages: Iterable[pb.AgentRef]) -> tuple[AgentRef, ...]:
    return tuple([agent_from_proto(message) for message in messages])


def _component_to_proto(found: LoopComponent) -> pb.LoopComponent:
    return pb.LoopComponent(
        agents=_to_refs(found.agents),
        hidden=found.hidden,
        events=[
            pb.EventEnds(
                event=event.event,
                emitters=_to_refs(event.emitters),
                listeners=_to_refs(event.listeners),
                hidden_emitters=event.hidden_emitters,
                hidden_listeners=event.hidden_listeners,
            )
            for event in found.events
        ],
        companies=found.companies,
        shortest=None if found.shortest is None else loop_to_proto(found.shortest),
        beyond=found.beyond,
    )


def _finding_to_proto(found: Finding) -> pb.AuditFinding:
    message = pb.AuditFinding(rule=found.rule.id, fingerprint=found.fingerprint)
    match found:
        case LoopComponent():
            message.loop_component.CopyFrom(_component_to_proto(found))
        case CrossingCompanies():
            message.crossing_companies.CopyFrom(pb.CrossingCompanies(component=found.component, companies=found.companies))
        case ShortestLoop():
            loop, serves = loop_to_proto(found.loop), _to_refs(found.shortest_for)
            message.shortest_loop.CopyFrom(pb.ShortestLoop(component=found.component, loop=loop, shortest_for=serves))
        case TriggersToDrop():
            triggers = [pb.Trigger(agent=agent_to_proto(trigger.agent), event=trigger.event) for trigger in found.triggers]
            drops = pb.TriggersToDrop(component=found.component, triggers=triggers, at_least=found.at_least)
            message.triggers_to_drop.CopyFrom(drops)
        case SearchCut():
            message.search_cut.CopyFrom(pb.SearchCut(component=found.component, agents=_to_refs(found.agents)))
        case OwnEvent():
            message.own_event.CopyFrom(pb.OwnEvent(agent=agent_to_proto(found.agent), events=found.events))
        case UnheardEmission():
            message.unheard_event.CopyFrom(pb.AgentEvent(agent=agent_to_proto(found.agent), event=found.event))
        case UnfedHearing():
            message.unfed_trigger.CopyFrom(pb.AgentEvent(agent=agent_to_proto(found.agent), event=found.event))
        case NearMiss():
            miss = pb.NearMiss(agent=agent_to_proto(found.agent), event=found.event, similar=found.similar)
            message.near_miss.CopyFrom(miss)
    return message


def limits_to_proto(limits: AuditLimits) -> pb.AppliedAuditLimits:
    """Applied limits for the wire."""
    return pb.AppliedAuditLimits(max_length=limits.max_length, max_visits=limits.max_visits, chain_limit=limits.chain_limit)


def limits_from_proto(message: pb.AppliedAuditLimits) -> AuditLimits:
    """Applied limits of an answer."""
    return AuditLimits(max_length=message.max_length, max_visits=message.max_visits, chain_limit=message.chain_limit)


def part_to_proto(part: Progress | Finding, revision: int) -> pb.AuditLoopsResponse:
    """A part of an audit for the wire."""
    if isinstance(part, Progress):
        progress = pb.AuditProgress(step=part.step, done=part.done, total=part.total)
        return pb.AuditLoopsResponse(revision=revision, progress=progress)
    return pb.AuditLoopsResponse(revision=revision, finding=_finding_to_proto(part))


def _component_from_proto(message: pb.LoopComponent) -> LoopComponent:
    return LoopComponent(
        agents=_from_refs(message.agents),
        hidden=message.hidden,
        events=tuple(
            [
                EventEnds(
                    event.event,
                    _from_refs(event.emitters),
                    _from_refs(event.listeners),
                    event.hidden_emitters,
                    event.hidden_listeners,
                )
                for event in message.events
            ]
        ),
        companies=tuple(message.companies),
        shortest=loop_from_proto(message.shortest) if message.HasField("shortest") else None,
        beyond=message.beyond,
    )


def _finding_from_proto(message: pb.AuditFinding) -> Finding:
    match message.WhichOneof("found"):
        case "loop_component":
            return _component_from_proto(message.loop_component)
        case "crossing_companies":
            crossing = message.crossing_companies
            return CrossingCompanies(component=crossing.component, companies=tuple(crossing.companies))
        case "shortest_loop":
            short = message.shortest_loop
            loop, serves = loop_from_proto(short.loop), _from_refs(short.shortest_for)
            return ShortestLoop(component=short.component, loop=loop, shortest_for=serves)
        case "triggers_to_drop":
            drops = message.triggers_to_drop
            triggers = tuple([Trigger(agent_from_proto(trigger.agent), trigger.event) for trigger in drops.triggers])
            return TriggersToDrop(component=drops.component, triggers=triggers, at_least=drops.at_least)
        case "search_cut":
            return SearchCut(component=message.search_cut.component, agents=_from_refs(message.search_cut.agents))
        case "own_event":
            return OwnEvent(agent=agent_from_proto(message.own_event.agent), events=tuple(message.own_event.events))
        case "unheard_event":
            return UnheardEmission(agent=agent_from_proto(message.unheard_event.agent), event=message.unheard_event.event)
        case "unfed_trigger":
            return UnfedHearing(agent=agent_from_proto(message.unfed_trigger.agent), event=message.unfed_trigger.event)
        case "near_miss":
            miss = message.near_miss
            return NearMiss(agent=agent_from_proto(miss.agent), event=miss.event, similar=tuple(miss.similar))
    raise Unreadable(f"the audit has a finding of the unknown rule {message.rule}")


def part_from_proto(message: pb.AuditLoopsResponse) -> Progress | Finding | int:
    """A part of an audit; its end as the number of findings. Raises Unreadable where a newer server says more."""
    match message.WhichOneof("part"):
        case "progress":
            told = message.progress
            return Progress(step=told.step, done=told.done, total=told.total if told.HasField("total") else None)
        case "finding":
            found = _finding_from_proto(message.finding)
            if found.rule is not RULE_OF.get(message.finding.rule) or found.fingerprint != message.finding.fingerprint:
                raise Unreadable("the audit has a finding that is not what its rule and fingerprint say")
            return found
        case "end":
            return message.end.findings
    raise Unreadable("the audit has a part of an unknown kind")
