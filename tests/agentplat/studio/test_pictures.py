"""Rings and layers: where things stand."""

from __future__ import annotations

from itertools import combinations

import pytest
from agentplat.studio.layers import Node, draw
from agentplat.studio.rings import BOX_H, BOX_W, Ring, rings


def _ring(size: int) -> Ring:
    agents: list[str | None] = [f"acme:agent-{i}" for i in range(size)]
    agents[size // 2] = agents[size // 2] if size < 3 else None
    hops = [{"events": [f"event-{i}", "other"], "barrier": i == 0} for i in range(size)]
    [found] = rings({"loops": [{"agents": agents, "hops": hops, "over_chain_limit": size > 8}]})
    return found


@pytest.mark.promise("U-1")
@pytest.mark.parametrize("size", range(1, 21))
def test_a_ring_of_any_size_shows_every_agent_and_hop_without_overlap(size: int) -> None:
    ring = _ring(size)
    assert (len(ring.agents), len(ring.hops), ring.own, ring.over) == (size, size, size == 1, size > 8)
    assert [agent.ref for agent in ring.agents].count(None) == (size >= 3)
    for one, other in combinations(ring.agents, 2):
        assert abs(one.x - other.x) >= BOX_W or abs(one.y - other.y) >= BOX_H + 20
    for agent in ring.agents:
        assert BOX_W / 2 <= agent.x <= ring.width - BOX_W / 2
        assert BOX_H / 2 <= agent.y <= ring.height - BOX_H / 2
    places = [(hop.x, hop.y) for hop in ring.hops]
    for hop in ring.hops:
        assert hop.label.endswith("+1")
        assert 0 < hop.y < ring.height
        assert all(abs(hop.y - agent.y) > BOX_H / 2 or abs(hop.x - agent.x) > BOX_W / 2 - 1 for agent in ring.agents)
    assert len(set(places)) == size


@pytest.mark.promise("U-1")
def test_arrows_go_from_each_agent_to_the_next_and_back_to_the_first() -> None:
    ring = _ring(6)
    xs = [agent.x for agent in ring.agents]
    ys = [agent.y for agent in ring.agents]
    assert ys[1:4] == sorted(ys[1:4])
    assert [ys[0], *ys[:3:-1]] == sorted([ys[0], *ys[:3:-1]])
    assert len(set(xs)) == 2


def _nodes(agents: int, events: int) -> list[Node]:
    return [Node(key=f"a:{i}", agent=True) for i in range(agents)] + [Node(key=f"e{i}", agent=False) for i in range(events)]


@pytest.mark.promise("U-8")
def test_what_starts_something_stands_before_it_and_loops_are_marked() -> None:
    # a0 → e → a1 → f → a2 → g → a1
    drawing = draw(_nodes(3, 3), [(0, 3), (3, 1), (1, 4), (4, 2), (2, 5), (5, 1)])
    x = [one.x for one in drawing.nodes]
    assert x[0] < x[3] < x[1] < x[4] < x[2] < x[5]
    assert [one.component for one in drawing.nodes] == [0, 1, 1, 0, 1, 1]
    assert [(line.source, line.target) for line in drawing.lines if line.looping] == [(1, 4), (2, 5), (4, 2), (5, 1)]


@pytest.mark.promise("U-8")
def test_an_own_event_is_no_loop_of_the_picture() -> None:
    drawing = draw(_nodes(2, 1), [(0, 2), (2, 0), (1, 2)])
    assert [one.component for one in drawing.nodes] == [0, 0, 0]


@pytest.mark.promise("U-8")
def test_the_same_graph_gives_the_same_picture_whatever_the_order_of_its_edges() -> None:
    edges = [(0, 3), (3, 1), (1, 4), (4, 2), (2, 5), (5, 0)]
    assert draw(_nodes(3, 3), edges) == draw(_nodes(3, 3), edges[::-1])
    assert draw([], []).nodes == ()
