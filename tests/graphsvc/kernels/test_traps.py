"""Graphs on which searches of the usual kinds take exponential work, with the work that is enough."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.graphsvc.folding import KERNELS, Asked, ask, fold
from tests.graphsvc.kernels import shapes
from tests.oracle import Agent

kernels = pytest.mark.parametrize("kernel", KERNELS)
Turned = Callable[[list[Agent]], list[Agent]]
directions = pytest.mark.parametrize("turned", [list, shapes.mirrored], ids=["ahead", "behind"])


def searched(agents: list[Agent], kernel: str, root: int = 0, **limits: int) -> Asked:
    return ask(fold(agents), agents[root], kernel=KERNELS[kernel], **limits)


def names(answer: Asked) -> list[list[str]]:
    return [[ref.removeprefix("*:").lstrip("0") or "0" for ref in loop] for loop in answer.loops]


@pytest.mark.promise("G-12")
@kernels
@directions
def test_diamonds_that_lead_back_to_the_path_cost_their_incidences(kernel: str, turned: Turned) -> None:
    answer = searched(turned(shapes.diamonds(12)), kernel)
    assert (names(answer), answer.ended) == ([["0", "1"]], "complete")
    assert answer.visits <= 120


@pytest.mark.promise("G-12")
@kernels
@directions
def test_twice_as_many_diamonds_cost_twice_as_much(kernel: str, turned: Turned) -> None:
    few, many = (searched(turned(shapes.diamonds(count)), kernel).visits for count in (50, 100))
    assert many <= 2 * few


@pytest.mark.promise("G-12")
@kernels
@directions
def test_a_crowd_that_leads_back_to_the_path_costs_its_incidences(kernel: str, turned: Turned) -> None:
    answer = searched(turned(shapes.crowd_that_leads_back_to_its_own_start()), kernel)
    assert (answer.loops, answer.ended) == ([("*:v", "*:p")], "complete")
    assert answer.visits <= 600


@pytest.mark.promise("G-5", "G-12")
@kernels
def test_the_first_ten_of_a_hundred_million_equal_loops_are_found_without_the_others(kernel: str) -> None:
    answer = searched(shapes.crowd_with_equal_loops(), kernel)
    first = ["*:v", "*:0.00", "*:1.00", "*:2.00", "*:3.00"]
    assert answer.loops == [(*first, f"*:4.0{i}") for i in range(10)]
    assert answer.ended == "more_loops"
    assert answer.visits <= 998


@pytest.mark.promise("G-12")
@kernels
@directions
@pytest.mark.parametrize("max_loops", [1, 10])
def test_a_long_ring_beside_a_region_that_leads_nowhere_stays_within_its_work(kernel: str, turned: Turned, max_loops: int) -> None:
    agents = turned(shapes.ring_beside_a_region(ring=60, region=500))
    answer = searched(agents, kernel, max_loops=max_loops)
    around = ["0", *sorted(map(str, range(1, 60)), key=int, reverse=turned is not list)]
    assert (names(answer), answer.ended) == ([around], "complete")
    # One loop found, and one more looked for in vain.
    assert answer.visits <= 2 * 3 * 60 * shapes.incidences(agents)


@pytest.mark.promise("G-8", "G-12")
@kernels
@pytest.mark.parametrize(
    "shape",
    [shapes.complete_with_an_event_for_each_edge, shapes.complete_with_an_event_for_each_agent, shapes.complete_over_one_event],
)
def test_where_everybody_starts_everybody_the_shortest_loops_come_at_once_and_more_are_known_of(
    kernel: str, shape: Callable[[int], list[Agent]]
) -> None:
    answer = searched(shape(12), kernel, max_loops=10, max_visits=10_000)
    assert names(answer) == [["0", str(i)] for i in range(1, 11)]
    assert answer.ended == "more_loops"


@pytest.mark.promise("G-5", "G-8", "G-12")
@kernels
def test_beside_millions_of_loops_the_longer_ones_follow_by_name(kernel: str) -> None:
    answer = searched(shapes.complete_with_an_event_for_each_agent(12), kernel, max_loops=20, max_visits=10_000)
    assert names(answer) == [["0", str(i)] for i in range(1, 12)] + [["0", "1", str(i)] for i in range(2, 11)]
    assert answer.ended == "more_loops"


@pytest.mark.promise("G-12")
@kernels
def test_an_agent_with_nothing_ahead_or_nothing_behind_costs_no_more_than_its_own_events(kernel: str) -> None:
    agents = shapes.of_edges([(0, i) for i in range(1, 300)] + [(i, 300 + i) for i in range(1, 300)])
    graph = fold(agents)
    for silent in (agents[0], agents[-1]):
        answer = ask(graph, silent, kernel=KERNELS[kernel], max_visits=len(silent.hears) + len(silent.emits))
        assert (answer.loops, answer.ended) == ([], "complete")
