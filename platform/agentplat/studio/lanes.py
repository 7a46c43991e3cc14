"""Lanes: where a line that spans several layers goes through those in between, so that it never runs behind a box.

A lane is a place in a layer's column like that of a node, only lower, and takes part in the ordering like one (Gansner, Koutsofios,
North, Vo 1993). All lines of one node that lead ahead share a chain of lanes, and so do all that lead back. Where lanes would
be too many, the longest lines go along one road beneath the picture instead, which no box stands on either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_LANES = 1_000
"""Most lanes of a picture; ordering takes longer with each."""

Edge = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Lanes:
    """The lanes of a picture, numbered on from its nodes.

    layer: of each node and lane. segments: pairs that are drawn beside each other, by these numbers. ahead, back: the lanes of a
    node by layer. below: edges that go beneath the picture.
    """

    nodes: int
    layer: list[int]
    segments: list[Edge] = field(default_factory=list)
    ahead: dict[int, dict[int, int]] = field(default_factory=dict)
    back: dict[int, dict[int, int]] = field(default_factory=dict)
    below: set[Edge] = field(default_factory=set)

    def way(self, edge: Edge) -> list[int]:
        """The lanes that an edge goes through, in its direction."""
        u, v = edge
        if self.layer[v] > self.layer[u]:
            return [self.ahead[u][at] for at in range(self.layer[u] + 1, self.layer[v])]
        return [self.back[u][at] for at in range(self.layer[u], self.layer[v] - 1, -1)]

    def _lane(self, chain: dict[int, int], at: int, before: int) -> int:
        """The lane of a chain in a layer, made where it is not there yet. before: what it is joined to."""
        if at not in chain:
            chain[at] = len(self.layer)
            self.layer.append(at)
            self.segments.append((before, chain[at]))
        return chain[at]

    def add(self, edge: Edge) -> None:
        """Lay the lanes of an edge, as far as they are not there yet."""
        u, v = edge
        forward = self.layer[v] > self.layer[u]
        chain = (self.ahead if forward else self.back).setdefault(u, {})
        first, end, step = (self.layer[u] + 1, self.layer[v], 1) if forward else (self.layer[u], self.layer[v] - 1, -1)
        before = u
        for at in range(first, end, step):
            before = self._lane(chain, at, before)
        self.segments.append((before, v))


def lanes_of(layer: Sequence[int], edges: Sequence[Edge]) -> Lanes:
    """The lanes that these edges need, shortest edges first as long as there is room."""
    found = Lanes(nodes=len(layer), layer=list(layer))
    for edge in sorted(set(edges), key=lambda edge: (abs(layer[edge[1]] - layer[edge[0]]), edge)):
        if len(found.layer) - found.nodes + abs(layer[edge[1]] - layer[edge[0]]) > MOST_LANES:
            found.below.add(edge)
        else:
            found.add(edge)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where things stand. left, right: of each layer. y: of each node and lane. low: of the road beneath."""

    left: Sequence[float]
    right: Sequence[float]
    y: Sequence[float]
    low: float


_TURN = 14
_TIP = 3


def path_of(edge: Edge, lanes: Lanes, columns: Columns) -> str:
    """An edge as an SVG path. It bends in the gaps between columns alone, and passes through a column on lanes alone."""
    u, v = edge
    a, b = lanes.layer[u], lanes.layer[v]
    begin = f"M{columns.right[a]:g} {columns.y[u]:.1f}"
    if edge in lanes.below:
        return f"{begin} {_beneath(a, b, columns.y[u], columns.y[v], columns)}"
    steps = [begin, *(_ahead if b > a else _back)(edge, lanes, columns)]
    return " ".join(steps)


def _curve(x: float, y: float, u: float, v: float) -> str:
    """From one point to another within a gap, level at both ends."""
    bend = (u - x) / 2
    return f"C{x + bend:g} {y:.1f} {u - bend:g} {v:.1f} {u:g} {v:.1f}"


def _turn(x: float, y: float, v: float, out: float) -> str:
    """Back to the same edge of a column at another height."""
    return f"C{x + out:g} {y:.1f} {x + out:g} {v:.1f} {x:g} {v:.1f}"


def _ahead(edge: Edge, lanes: Lanes, columns: Columns) -> list[str]:
    u, v = edge
    at, y, steps = lanes.layer[u], columns.y[u], []
    for lane in lanes.way(edge):
        then = lanes.layer[lane]
        steps += [_curve(columns.right[at], y, columns.left[then], columns.y[lane]), f"H{columns.right[then]:g}"]
        at, y = then, columns.y[lane]
    return [*steps, _curve(columns.right[at], y, columns.left[lanes.layer[v]] - _TIP, columns.y[v])]


def _back(edge: Edge, lanes: Lanes, columns: Columns) -> list[str]:
    u, v = edge
    first, *rest = lanes.way(edge)
    at, y = lanes.layer[u], columns.y[first]
    steps = [_turn(columns.right[at], columns.y[u], y, _TURN), f"H{columns.left[at]:g}"]
    for lane in rest:
        then = lanes.layer[lane]
        steps += [_curve(columns.left[at], y, columns.right[then], columns.y[lane]), f"H{columns.left[then]:g}"]
        at, y = then, columns.y[lane]
    left = columns.left[at]
    return [*steps, f"C{left - _TURN:g} {y:.1f} {left - _TURN:g} {columns.y[v]:.1f} {left - _TIP:g} {columns.y[v]:.1f}"]


def _beneath(a: int, b: int, y: float, v: float, columns: Columns) -> str:
    """Down behind the first column, along the road, and up before the last."""
    x, u, low = columns.right[a], columns.left[b], columns.low
    down = _turn(x, y, low, _TURN) if b <= a else _curve(x, y, x + 2 * _TURN, low)
    if b <= a:
        up = f"C{u - _TURN:g} {low:.1f} {u - _TURN:g} {v:.1f} {u - _TIP:g} {v:.1f}"
        return f"{down} H{u:g} {up}"
    return f"{down} H{u - 2 * _TURN:g} {_curve(u - 2 * _TURN, low, u - _TIP, v)}"


def neighbours(count: int, segments: Sequence[Edge]) -> list[list[int]]:
    """What each node and lane is joined to."""
    near: list[list[int]] = [[] for _ in range(count)]
    for u, v in segments:
        near[u].append(v)
        near[v].append(u)
    return near


def settle(rows: Sequence[Sequence[int]], near: Sequence[Sequence[int]], height: Sequence[float], nodes: int) -> list[float]:
    """The heights at which lines run as level as can be, while what stands in one column keeps its order and its room.

    Each column in turn is put where its neighbours would have it, by least squares; under an order that is the isotonic regression,
    which pooling neighbours that violate it solves exactly (Ayer and others 1955). Between lanes a bend counts more than at a node,
    as there it is one more than is needed. nodes: how many of the numbers are not lanes.
    """
    y = [0.0] * len(near)
    for row in rows:
        at = 0.0
        for node in row:
            y[node] = at + height[node] / 2
            at += height[node]
    weigh = [[_WEIGHTS[(one >= nodes) + (node >= nodes)] for one in found] for node, found in enumerate(near)]
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _settle(row, near, weigh, height, y)
    return y


_SWEEPS = 6
_WEIGHTS = (1, 2, 8)
"""What a bend counts between two nodes, at a lane and between two lanes."""

_HARDLY = 1e-6
"""What the place of a node without lines counts."""


def _settle(
    row: Sequence[int], near: Sequence[Sequence[int]], weigh: Sequence[Sequence[int]], height: Sequence[float], y: list[float]
) -> None:
    offsets, at = [], 0.0
    for node in row:
        offsets.append(at + height[node] / 2)
        at += height[node]
    pools: list[tuple[float, float, int]] = []
    for node, offset in zip(row, offsets, strict=True):
        weight = sum(weigh[node]) or _HARDLY
        wanted = sum(y[one] * w for one, w in zip(near[node], weigh[node], strict=True)) / weight if near[node] else offset
        if not near[node] and pools:
            # Right below the one before it.
            wanted = pools[-1][0] / pools[-1][1] + offset
        pool = ((wanted - offset) * weight, float(weight), 1)
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    index = 0
    for total, weight_of_all, count in pools:
        for node, offset in zip(row[index : index + count], offsets[index : index + count], strict=True):
            y[node] = total / weight_of_all + offset
        index += count
