"""The graph page of a scope: who starts whom, as a picture and as tables (U-8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter
from starlette.responses import Response

from agentplat.domain.registry import Declared
from agentplat.domain.scopes import Ref
from agentplat.studio.layers import Drawing, Node, draw
from agentplat.studio.rendering import Page
from agentplat.studio.visitors import Reader
from agentplat.usecases.names import check_scope
from agentplat.usecases.read_graph import EventEnds, ScopeGraph

router = APIRouter()

MOST_DRAWN = 2_000
"""Most agents and events of a picture; the tables tell all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """An agent of the scope. own: its own events that it hears. component: which group of loops it is in, 0 for none."""

    agent: Ref
    paused: bool
    component: int
    own: tuple[str, ...]
    starts: tuple[tuple[str, tuple[Ref, ...]], ...]
    started_by: tuple[tuple[str, tuple[Ref, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNode:
    """What stands in the picture. number: in the order of names. kind: member, around or event. alone: an end is missing."""

    number: int
    kind: str
    text: str
    scope: str
    name: str
    x: float
    y: float
    width: float
    looping: bool
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPage(Page):
    """scope: which one, empty for everything. unheard: events nobody hears; unfed: triggers nobody emits."""

    template: ClassVar[str] = "graph.html"
    scope: str
    scopes: tuple[str, ...]
    agents: tuple[AgentRow, ...]
    unheard: tuple[EventEnds, ...]
    unfed: tuple[EventEnds, ...]
    around: int
    loops: int
    cut: bool
    drawing: Drawing | None
    drawn: tuple[DrawnNode, ...]


@router.get("/graph", response_model=None)
def graph(found: Reader, scope: str = "") -> Response:
    """Who starts whom in a scope, or in everything that may be read."""
    within = check_scope(scope, "scope") if scope else ""
    read = found.cases.read_graph(found.person, within or None)
    drawing = _drawing(read)
    component = {one.node.key: one.component for one in drawing.nodes if one.node.agent}
    shown = len(drawing.nodes) <= MOST_DRAWN
    page = GraphPage(
        scope=within,
        scopes=found.person.scopes,
        agents=_rows(read, component),
        unheard=tuple(ends for ends in read.events if not ends.listeners),
        unfed=tuple(ends for ends in read.events if not ends.emitters),
        around=len(read.around),
        loops=max(component.values(), default=0),
        cut=read.cut,
        drawing=drawing if shown and drawing.nodes else None,
        drawn=_drawn(drawing, read) if shown else (),
    )
    return found.show(page, "graph")


def _drawing(read: ScopeGraph) -> Drawing:
    """The picture."""
    agents = [Node(key=ref.text, agent=True) for ref in (*(member.agent for member in read.members), *read.around)]
    nodes = [*agents, *(Node(key=ends.event, agent=False) for ends in read.events)]
    number = {(node.agent, node.key): i for i, node in enumerate(nodes)}
    edges: list[tuple[int, int]] = []
    for ends in read.events:
        event = number[False, ends.event]
        edges += [(number[True, ref.text], event) for ref in ends.emitters]
        edges += [(event, number[True, ref.text]) for ref in ends.listeners]
    return draw(nodes, edges)


def _rows(read: ScopeGraph, component: dict[str, int]) -> tuple[AgentRow, ...]:
    ends = {one.event: one for one in read.events}

    def row(member: Declared) -> AgentRow:
        def others(refs: tuple[Ref, ...]) -> tuple[Ref, ...]:
            return tuple(ref for ref in refs if ref != member.agent)

        return AgentRow(
            agent=member.agent,
            paused=member.paused,
            component=component[member.agent.text],
            own=tuple(event for event in member.emits if event in member.listens),
            starts=tuple((event, others(ends[event].listeners)) for event in member.emits),
            started_by=tuple((event, others(ends[event].emitters)) for event in member.listens),
        )

    return tuple(map(row, read.members))


def _drawn(drawing: Drawing, read: ScopeGraph) -> tuple[DrawnNode, ...]:
    members = {member.agent.text for member in read.members}
    alone = {ends.event for ends in read.events if not ends.listeners or not ends.emitters}
    found = []
    for number, placed in enumerate(drawing.nodes):
        node = placed.node
        scope, _, name = node.key.partition(":") if node.agent else ("", "", node.key)
        kind = "event" if not node.agent else "member" if node.key in members else "around"
        found.append(
            DrawnNode(
                number=number,
                kind=kind,
                text=node.key,
                scope=scope if len(scope) <= 26 else f"{scope[:25]}…",
                name=name if len(name) <= 19 else f"{name[:18]}…",
                x=placed.x,
                y=placed.y,
                width=placed.width,
                looping=placed.component > 0,
                alone=not node.agent and node.key in alone,
            )
        )
    return tuple(found)
