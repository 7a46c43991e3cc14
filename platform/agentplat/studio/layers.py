"""Drawing who starts whom in layers: agents and events as nodes, from left to right, and lines on lanes of their own.

An event is a node of its own, so that one with a hundred emitters and a hundred listeners is two hundred lines, not ten thousand.
The method is the usual one of layered drawings: take out what closes cycles, give each node the longest way to it as its layer, and
order every layer by the middle of its neighbours (Sugiyama, Tagawa, Toda 1981). Everything begins in the order of names, so that
the same graph gives the same picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import rustworkx as rx

from agentplat.studio.lanes import Columns, Lanes, lanes_of, neighbours, path_of, settle

_WIDTH_AGENT, _WIDTH_EVENT, _ROW, _LANE, _MARGIN = 168, 156, 40, 14, 22
_GAP, _LINE_GAP, _MOST_GAP = 36, 2, 120
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
    return _draw(tuple(nodes), tuple(sorted(set(edges))))


@lru_cache(maxsize=8)
def _draw(nodes: tuple[Node, ...], edges: tuple[tuple[int, int], ...]) -> Drawing:
    # Kept, as a page that is looked at again mostly has the same graph, and a large picture takes longer than all else on it.
    graph: rx.PyDiGraph[Node, None] = rx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(nodes)
    graph.add_edges_from_no_data(list(edges))
    inside = components(graph)
    lanes = lanes_of(_layers(graph, _backward(len(nodes), graph)), edges)
    near = neighbours(len(lanes.layer), lanes.segments)
    rows = _ordered(lanes.layer, near)
    columns = _columns(nodes, rows, lanes, near)
    placed = tuple(
        Placed(
            node=node,
            x=columns.left[lanes.layer[n]],
            y=round(columns.y[n], 1),
            width=columns.right[lanes.layer[n]] - columns.left[lanes.layer[n]],
            component=inside[n],
        )
        for n, node in enumerate(nodes)
    )
    lines = tuple(
        Line(source=u, target=v, path=path_of((u, v), lanes, columns), looping=inside[u] > 0 and inside[u] == inside[v])
        for u, v in edges
    )
    lowest = columns.low if lanes.below else max((columns.y[n] for row in rows for n in row), default=0)
    return Drawing(
        width=max(columns.right, default=0) + _MARGIN, height=round(lowest + _ROW / 2 + _MARGIN), nodes=placed, lines=lines
    )


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


def _ordered(layer: Sequence[int], near: Sequence[Sequence[int]]) -> list[list[int]]:
    """The nodes and lanes of each layer from above to below."""
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, at in enumerate(layer):
        rows[at].append(node)
    place = {node: row / max(1, len(nodes)) for nodes in rows for row, node in enumerate(nodes)}
    for sweep in range(_SWEEPS):
        for nodes in rows if sweep % 2 == 0 else reversed(rows):
            middle = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n] for n in nodes}
            nodes.sort(key=lambda n: (middle[n], n))
            place.update({node: (row + 0.5) / len(nodes) for row, node in enumerate(nodes)})
    return rows


def _columns(nodes: Sequence[Node], rows: Sequence[Sequence[int]], lanes: Lanes, near: Sequence[Sequence[int]]) -> Columns:
    """Where the layers and everything in them stand. A gap that many lines bend in is wider."""
    height = [float(_ROW if n < len(nodes) else _LANE) for n in range(len(lanes.layer))]
    y = settle(rows, near, height, len(nodes))
    top = min((y[n] - height[n] / 2 for row in rows for n in row), default=0)
    y = [at - top + _MARGIN for at in y]
    bending = [0] * len(rows)
    for u, v in lanes.segments:
        if lanes.layer[u] != lanes.layer[v]:
            bending[min(lanes.layer[u], lanes.layer[v])] += abs(y[u] - y[v]) > _ROW
    widths = [_WIDTH_AGENT if any(n < len(nodes) and nodes[n].agent for n in row) else _WIDTH_EVENT for row in rows]
    gap = [min(_GAP + _LINE_GAP * count, _MOST_GAP) for count in bending]
    left = [float(_MARGIN + sum(widths[:i]) + sum(gap[:i])) for i in range(len(rows))]
    low = max((y[n] + height[n] / 2 for row in rows for n in row), default=0) + _LANE
    return Columns(left=left, right=[x + width for x, width in zip(left, widths, strict=True)], y=y, low=low)
