"""Loop components as drawings: Mermaid, DOT and GraphML. Events are nodes beside agents, so that a crowded event stays small.

Hidden agents of a component are one node together, as two appearances of one of them must not be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import networkx as nx

from graphsvc.audit.baseline import Judged
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.messages import outside_text
from graphsvc.domain.audit import LoopComponent, TriggersToDrop


@dataclass(slots=True)
class _Picture:
    """One component. nodes: (id, kind, label); edges: (from, to, whether dropping this trigger would help)."""

    number: int
    nodes: list[tuple[str, str, str]] = field(default_factory=list)
    edges: list[tuple[str, str, bool]] = field(default_factory=list)


def _pictures(judged: Iterable[Judged]) -> Iterator[_Picture]:
    """The components that are not accepted, each when what to drop of it is known."""
    number = 0
    component: LoopComponent | None = None
    for each in judged:
        if isinstance(each.finding, LoopComponent):
            component = None if each.accepted else each.finding
        elif isinstance(each.finding, TriggersToDrop) and component is not None:
            yield _picture(number, component, each.finding)
            number += 1
            component = None


def _picture(number: int, component: LoopComponent, drops: TriggersToDrop) -> _Picture:
    picture = _Picture(number)
    ids = {agent: f"c{number}a{i}" for i, agent in enumerate(component.agents)}
    dropped = {(trigger.agent, trigger.event) for trigger in drops.triggers}
    picture.nodes += [(ids[agent], "agent", agent.text) for agent in component.agents]
    hidden = f"c{number}h"
    if component.hidden:
        picture.nodes.append((hidden, "hidden", outside_text(component.hidden)))
    for i, event in enumerate(component.events):
        node = f"c{number}e{i}"
        picture.nodes.append((node, "event", event.event))
        picture.edges += [(ids[agent], node, False) for agent in event.emitters]
        picture.edges += [(hidden, node, False)] if event.hidden_emitters else []
        picture.edges += [(node, ids[agent], (agent, event.event) in dropped) for agent in event.listeners]
        picture.edges += [(node, hidden, False)] if event.hidden_listeners else []
    return picture


_PLAIN = re.compile(r"[\w .:/-]")
_SHAPES = {"agent": ("[", "]"), "hidden": ("[/", "/]"), "event": ("([", "])")}


def _mermaid_text(text: str) -> str:
    # Quotes end a label, and the rest of it is read as Markdown and HTML: all but plain characters goes by number.
    return '"' + "".join(c if _PLAIN.fullmatch(c) else f"#{ord(c)};" for c in text) + '"'


def mermaid(_: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """A flowchart; triggers to drop are dotted."""
    yield "flowchart LR"
    for picture in _pictures(judged):
        yield f'  subgraph c{picture.number}["component {picture.number + 1}"]'
        for node, kind, label in picture.nodes:
            opening, closing = _SHAPES[kind]
            yield f"    {node}{opening}{_mermaid_text(label)}{closing}"
        for source, target, drop in picture.edges:
            yield f"    {source} {'-. drop .->' if drop else '-->'} {target}"
        yield "  end"


def _dot_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_DOT_SHAPES = {"agent": "box", "hidden": "box, style=dashed", "event": "ellipse"}


def dot(_: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """A digraph for Graphviz; triggers to drop are dashed."""
    yield "digraph audit {"
    for picture in _pictures(judged):
        yield f"  subgraph cluster_{picture.number} {{"
        yield f'    label="component {picture.number + 1}";'
        for node, kind, label in picture.nodes:
            yield f"    {node} [label={_dot_text(label)}, shape={_DOT_SHAPES[kind]}];"
        for source, target, drop in picture.edges:
            yield f"    {source} -> {target}{' [style=dashed, label=drop]' if drop else ''};"
        yield "  }"
    yield "}"


def graphml(_: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """GraphML; all components are held until it is written."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for picture in _pictures(judged):
        for node, kind, label in picture.nodes:
            graph.add_node(node, kind=kind, label=label, component=picture.number + 1)
        for source, target, drop in picture.edges:
            graph.add_edge(source, target, drop=drop)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from nx.generate_graphml(graph)
