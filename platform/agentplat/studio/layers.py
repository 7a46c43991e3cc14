"""Drawing who starts whom in layers: agents and events as nodes, from left to right; what leads back is drawn below.

An event is a node of its own, so that one with a hundred emitters and a hundred listeners is two hundred lines, not ten thousand.
The method is the usual one of layered drawings: take out what closes cycles, give each node the longest way to it as its layer, and
order every layer by the middle of its neighbours (Sugiyama, Tagawa, Toda 1981). Everything begins in the order of names, so that
the same graph gives the same picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import rustworkx as rx

_WIDTH_AGENT, _WIDTH_EVENT, _ROW, _GAP, _MARGIN = 168, 156, 40, 36, 22
_SWEEPS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node to draw. key: its reference or its event. agent: whether it is an agent."""

    key: str
    agent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A node with the middle of its left edge, its width, and the number of the loop component that it is in, 0 for none."""

    node: Node
    x: float
    y: float
    width: float
    component: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An edge as an SVG path, by the numbers of its nodes. looping: whether it lies within a loop component."""

    source: int
    target: int
    path: str
    looping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture of a graph."""

    width: float
    height: float
    nodes: tuple[Placed, ...]
    lines: tuple[Line, ...]


def components(graph: rx.PyDiGraph[Node, None]) -> list[int]:
    """The number of each node's loop component, from 1 in the order of the nodes; 0 for a node that is in no loop.

    One agent alone with its own events is no loop: nothing starts an agent by its own event (G-4).
    """
    numbers = [0] * graph.num_nodes()
    found = (sorted(component) for component in rx.strongly_connected_components(graph))
    looping = [component for component in found if sum(graph[node].agent for node in component) > 1]
    for number, component in enumerate(sorted(looping), start=1):
        for node in component:
            numbers[node] = number
    return numbers


def draw(nodes: Sequence[Node], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Lay out a graph. nodes: in the order of their names; edges: by the numbers of their nodes."""
    graph: rx.PyDiGraph[Node, None] = rx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(list(nodes))
    graph.add_edges_from_no_data(list(edges))
    inside = components(graph)
    backward = _backward(len(nodes), graph)
    layer = _layers(graph, backward)
    rows = _ordered(layer, edges)
    placed = _place(nodes, layer, rows, inside)
    lines = tuple(
        Line(source=u, target=v, path=_path(placed[u], placed[v]), looping=inside[u] > 0 and inside[u] == inside[v])
        for u, v in sorted(set(edges))
    )
    width = max((one.x + one.width for one in placed), default=0) + _MARGIN
    lowest = max((one.y for one in placed), default=0)
    below = 40 if any(placed[u].x >= placed[v].x for u, v in edges) else 0
    return Drawing(width=width, height=lowest + _ROW / 2 + _MARGIN + below, nodes=tuple(placed), lines=lines)


def _backward(count: int, graph: rx.PyDiGraph[Node, None]) -> set[tuple[int, int]]:
    """Edges whose removal leaves no cycle: those that a search in depth finds leading back to where it came from."""
    state, found = [0] * count, set()
    successors = [sorted(graph.successor_indices(node)) for node in range(count)]
    # Where nothing leads to is a natural beginning.
    for root in sorted(range(count), key=lambda node: (graph.in_degree(node) > 0, node)):
        if state[root]:
            continue
        state[root], stack = 1, [(root, iter(successors[root]))]
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[node] = 2
                stack.pop()
            elif state[following] == 1:
                found.add((node, following))
            elif state[following] == 0:
                state[following] = 1
                stack.append((following, iter(successors[following])))
    return found


def _layers(graph: rx.PyDiGraph[Node, None], backward: set[tuple[int, int]]) -> list[int]:
    """For each node the number of edges on the longest way to it."""
    ahead = graph.copy()
    ahead.remove_edges_from(sorted(backward))
    layer = [0] * graph.num_nodes()
    for node in rx.topological_sort(ahead):
        for following in ahead.successor_indices(node):
            layer[following] = max(layer[following], layer[node] + 1)
    # A node that nothing leads to stands right before what it leads to.
    for node in range(graph.num_nodes()):
        after = ahead.successor_indices(node)
        if ahead.in_degree(node) == 0 and after:
            layer[node] = min(layer[one] for one in after) - 1
    return layer


def _ordered(layer: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The nodes of each layer from above to below."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, at in enumerate(layer):
        rows[at].append(node)
    near: list[list[int]] = [[] for _ in layer]
    for u, v in edges:
        near[u].append(v)
        near[v].append(u)
    place = {node: row / max(1, len(nodes)) for nodes in rows for row, node in enumerate(nodes)}
    for sweep in range(_SWEEPS):
        for nodes in rows if sweep % 2 == 0 else reversed(rows):
            middle = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n] for n in nodes}
            nodes.sort(key=lambda n: (middle[n], n))
            place.update({node: (row + 0.5) / len(nodes) for row, node in enumerate(nodes)})
    return rows


def _place(nodes: Sequence[Node], layer: Sequence[int], rows: Sequence[Sequence[int]], inside: Sequence[int]) -> list[Placed]:
    tallest = max((len(row) for row in rows), default=0)
    widths = [max(_WIDTH_AGENT if nodes[n].agent else _WIDTH_EVENT for n in row) if row else 0 for row in rows]
    left = [_MARGIN + sum(widths[:i]) + i * _GAP for i in range(len(rows))]
    found: dict[int, Placed] = {}
    for at, row in enumerate(rows):
        # Spread over the whole height, so that what belongs together is near each other.
        step = _ROW * max(1.0, tallest / max(1, len(row)))
        for i, n in enumerate(row):
            y = _MARGIN + step * (i + 0.5)
            found[n] = Placed(node=nodes[n], x=left[at], y=y, width=widths[at], component=inside[n])
    return [found[n] for n in range(len(layer))]


def _path(start: Placed, end: Placed) -> str:
    x, y, u, v = start.x + start.width, start.y, end.x, end.y
    if u > x:
        bend = (u - x) / 2
        return f"M{x} {y} C{x + bend} {y} {u - bend} {v} {u - 3} {v}"
    # Back: out on the right, below both, in on the left.
    low = max(y, v) + _ROW * 0.75
    turn = _GAP * 0.4
    return f"M{x} {y} C{x + turn} {y} {x + turn} {low} {x} {low} L{u} {low} C{u - turn} {low} {u - turn} {v} {u - 3} {v}"
