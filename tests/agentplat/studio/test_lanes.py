"""Lines of the graph's picture: they bend around boxes that they do not belong to (U-8)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import combinations

import pytest
from agentplat.studio import lanes, layers
from agentplat.studio.layers import Drawing, Node, Placed, draw

HALF = {True: 17, False: 11}
"""Half the height of an agent's box and of an event's, as the page draws them."""

_PIECE = re.compile(r"([MCH])([-\d. ]+)")


def _points(path: str) -> Iterator[tuple[float, float]]:
    """Points close to each other along a path."""
    x = y = 0.0
    for kind, text in _PIECE.findall(path):
        given = [float(number) for number in text.split()]
        match kind:
            case "M":
                x, y = given
            case "H":
                yield from ((x + (given[0] - x) * i / 32, y) for i in range(33))
                x = given[0]
            case _:
                a, b, c, d, u, v = given
                for t in (i / 32 for i in range(33)):
                    near, far = (1 - t) ** 3, t**3
                    one, two = 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2
                    yield near * x + one * a + two * c + far * u, near * y + one * b + two * d + far * v
                x, y = u, v


def _inside(box: Placed, x: float, y: float) -> bool:
    half = HALF[box.node.agent]
    return box.x < x < box.x + box.width and box.y - half < y < box.y + half


def _crossed(drawing: Drawing) -> list[tuple[int, int, str]]:
    """Lines that run into a box, be it one of their own."""
    found = []
    for line in drawing.lines:
        points = list(_points(line.path))
        assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in points)
        left, right = min(x for x, _ in points), max(x for x, _ in points)
        near = [box for box in drawing.nodes if box.x < right and box.x + box.width > left]
        found += [(line.source, line.target, box.node.key) for box in near if any(_inside(box, x, y) for x, y in points)]
    return found


def _nodes(agents: int, events: int) -> list[Node]:
    return [Node(key=f"a:{i}", agent=True) for i in range(agents)] + [Node(key=f"e{i}", agent=False) for i in range(events)]


def _any_graph(size: int, edges: int, seed: int) -> Drawing:
    rng = random.Random(seed)
    pairs = [(rng.randrange(size), size + rng.randrange(size)) for _ in range(edges)]
    return draw(_nodes(size, size), [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs])


@pytest.mark.promise("U-8")
@pytest.mark.parametrize(("size", "edges"), [(2, 4), (4, 9), (8, 22), (20, 44), (60, 150), (120, 260)])
@pytest.mark.parametrize("seed", range(3))
def test_no_line_runs_behind_a_box(size: int, edges: int, seed: int) -> None:
    assert _crossed(_any_graph(size, edges, seed)) == []


@pytest.mark.promise("U-8")
def test_no_line_runs_behind_a_box_among_three_hundred_agents() -> None:
    edges = [(i, 300 + i) for i in range(300)] + [(300 + (i * 7 + 1) % 300, i) for i in range(300)]
    drawing = draw(_nodes(300, 300), edges)
    assert _crossed(drawing) == []
    for one, other in combinations(drawing.nodes, 2):
        assert one.x != other.x or abs(one.y - other.y) >= HALF[one.node.agent] + HALF[other.node.agent]


@pytest.mark.promise("U-8")
def test_lines_that_find_no_lane_go_beneath_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_LANES", 3)
    layers._draw.cache_clear()
    # Six agents in a row, a way past all of them, and one back from the last to the first.
    row = [(i, 6 + i) for i in range(6)] + [(6 + i, i + 1) for i in range(5)]
    drawing = draw(_nodes(6, 7), [*row, (0, 12), (12, 5), (11, 0)])
    assert _crossed(drawing) == []
    lowest = max(box.y for box in drawing.nodes)
    deep = {(line.source, line.target) for line in drawing.lines if max(y for _, y in _points(line.path)) > lowest + 20}
    assert deep == {(11, 0), (12, 5)}
    layers._draw.cache_clear()
