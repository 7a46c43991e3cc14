"""SARIF 2.1.0, for tools that collect the results of analyses. What a baseline accepts is there, marked as suppressed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from graphsvc.audit.baseline import Acceptance, Judged
from graphsvc.audit.formats.heading import Heading, PlaceOf, uri_of
from graphsvc.audit.messages import message_of
from graphsvc.domain.audit import CrossingCompanies, Finding, LoopComponent, SearchCut, ShortestLoop, TriggersToDrop
from graphsvc.domain.names import AgentRef
from graphsvc.domain.report import Loop
from graphsvc.domain.rules import RULES, Level, Rule
from graphsvc.domain.wording import hidden_agent

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

# A result that is no failure has the level none, says the standard; what was not looked at is open.
_KINDS = {
    Level.LOOP: ("fail", "warning"),
    Level.SELF: ("fail", "warning"),
    Level.NOTICE: ("fail", "note"),
    Level.ADVICE: ("informational", "none"),
    Level.DOUBT: ("open", "none"),
}
_INDEX = {rule.id: i for i, rule in enumerate(RULES)}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.meaning},
        "help": {"text": rule.remedy},
        "defaultConfiguration": {"level": _KINDS[rule.level][1]},
    }


def _agent(agent: AgentRef) -> dict[str, Any]:
    return {"name": agent.name, "fullyQualifiedName": agent.text, "kind": "agent"}


def agents_of(finding: Finding) -> list[AgentRef]:
    """The agents that a finding is about, the first one first."""
    match finding:
        case LoopComponent() | SearchCut():
            return list(finding.agents)
        case ShortestLoop():
            return [agent for agent in finding.loop.agents if agent is not None]
        case TriggersToDrop():
            return [trigger.agent for trigger in finding.triggers]
        case CrossingCompanies():
            return []
        case _:
            return [finding.agent]


def _location(agent: AgentRef, place_of: PlaceOf) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [_agent(agent)]}
    place = place_of(agent)
    if place is not None:
        path, line = place
        location["physicalLocation"] = {"artifactLocation": {"uri": uri_of(path)}}
        if line is not None:
            location["physicalLocation"]["region"] = {"startLine": line}
    return location


def _flow(loop: Loop, place_of: PlaceOf) -> dict[str, Any]:
    steps = []
    events = [None, *[hop.events for hop in loop.hops]]
    for agent, heard in zip([*loop.agents, loop.agents[0]], events, strict=True):
        location: dict[str, Any] = {"message": {"text": hidden_agent() if agent is None else agent.text}}
        if agent is not None:
            location |= _location(agent, place_of)
        steps.append({"location": location, "properties": {"startedBy": list(heard)}} if heard else {"location": location})
    return {"threadFlows": [{"locations": steps}]}


def _suppression(accepted: Acceptance) -> dict[str, Any]:
    return {
        "kind": "external",
        "status": "accepted",
        "justification": f"{accepted.reason} (owner: {accepted.owner}, until {accepted.expires.isoformat()})",
    }


def _result(judged: Judged, place_of: PlaceOf) -> dict[str, Any]:
    finding = judged.finding
    kind, level = _KINDS[finding.rule.level]
    result: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": _INDEX[finding.rule.id],
        "kind": kind,
        "level": level,
        "message": {"text": message_of(finding)},
        "partialFingerprints": {"finding/v1": finding.fingerprint},
        "properties": finding.details(),
    }
    agents = list(dict.fromkeys(agents_of(finding)))
    if agents:
        result["locations"] = [_location(agent, place_of) for agent in agents]
    if isinstance(finding, ShortestLoop):
        result["codeFlows"] = [_flow(finding.loop, place_of)]
    if judged.accepted is not None:
        result["suppressions"] = [_suppression(judged.accepted)]
    return result


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def sarif(heading: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """One SARIF log with one run, written as the findings come."""
    driver = {"name": "graphsvc audit", "rules": [_rule(rule) for rule in RULES]}
    yield f'{{"$schema": {_json(SCHEMA)}, "version": "2.1.0", "runs": [{{'
    yield f'"tool": {{"driver": {_json(driver)}}}, "columnKind": "unicodeCodePoints",'
    yield f'"properties": {_json(heading.as_json())}, "results": ['
    before = ""
    for each in judged:
        yield before + _json(_result(each, heading.place_of))
        before = ","
    yield "]}]}"
