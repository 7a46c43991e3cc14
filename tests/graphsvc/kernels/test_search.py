"""Both kernels against brute force, on thousands of small graphs with histories, overlays, readers and limits."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from typing import Any

import networkx
import pytest

from graphsvc.kernels import jit, reference, rows
from graphsvc.kernels.rows import Answer, Question
from tests import oracle
from tests.graphsvc.folding import KERNELS, Counting, ask, fold, question_of, refs
from tests.graphsvc.kernels import shapes
from tests.graphsvc.kernels.random_graphs import world, worlds
from tests.oracle import Agent, agent

GRAPHS, IN_ONE_TEST = 20_000, 1_000


class Counted:
    """The reference kernel; keeps the question, the answer and what was read for it in the last search."""

    def __call__(self, question: Question) -> Answer:
        self.question = question
        self.view = Counting(reference.Overlay(question))
        self.answer = reference.search(question, self.view)
        return self.answer


@pytest.mark.promise("G-1", "G-2", "G-3", "G-5", "G-8", "G-10", "G-13", "G-15")
@pytest.mark.parametrize("first", range(0, GRAPHS, IN_ONE_TEST))
def test_both_kernels_give_the_loops_order_and_ending_that_brute_force_finds(first: int) -> None:
    counted = Counted()
    for seed, case in enumerate(worlds(first, IN_ONE_TEST), start=first):
        rng = random.Random(seed)
        every = oracle.loops(case.published, case.proposed, case.reader)
        max_loops = rng.choice([1, 2, 3, 5, 10, 50])

        found = ask(case.graph(), case.proposed, case.reader, counted, max_loops=max_loops)
        assert found.loops == refs(every[:max_loops]), seed
        assert found.ended == ("more_loops" if len(every) > max_loops else "complete"), seed
        assert found.visits == counted.view.incidences, seed
        full = counted.answer
        assert told(jit.search(counted.question)) == told(full), seed

        limited = replace(counted.question, max_visits=rng.randint(0, full.visits))
        cut = counted(limited)
        assert cut.visits == counted.view.incidences <= limited.max_visits, seed
        assert _is_cut(cut, full) or (told(cut) == told(full) and limited.max_visits == full.visits), seed
        assert told(jit.search(limited)) == told(cut), seed


def told(answer: Answer) -> tuple[list[tuple[int, ...]], int, int]:
    """All that an answer says, as values that can be compared."""
    return answer.loops, answer.ended, answer.visits


def _is_cut(answer: Answer, full: Answer) -> bool:
    """Whether this is a beginning of the full answer that says that a walk limit cut it."""
    beginning = answer.loops == full.loops[: len(answer.loops)]
    return beginning and answer.ended == (rows.WALK_LIMITED if answer.loops else rows.NOT_VERIFIED)


def _met(view: Counting, root: int) -> bool:
    """Whether what was read forward from the agents after the root, and what was read backward from it, have a node in common."""
    forward = {node for source, row in view.rows_ahead if source != root for node in row}
    return any(node in forward for _, row in view.rows_behind for node in row if node != root)


@pytest.mark.promise("G-8", "G-9", "G-10")
@pytest.mark.parametrize("first", range(100_000, 100_400, 50))
def test_under_every_walk_limit_the_answer_is_the_beginning_of_the_full_one_and_names_what_was_found(first: int) -> None:
    counted = Counted()
    for seed, case in enumerate(worlds(first, 50), start=first):
        question = question_of(case.graph(), case.proposed, case.reader, max_loops=5)
        full = reference.search(question)
        # A search that has not found a loop yet keeps visits back to write one out, never more than there are incidences.
        enough = full.visits + question.rows.incidences + len(question.emits) + len(question.hears)
        answers = []
        for max_visits in [*range(full.visits + 1), enough]:
            limited = replace(question, max_visits=max_visits)
            cut = counted(limited)
            where = f"seed {seed}, {max_visits} visits"
            assert told(jit.search(limited)) == told(cut), where
            assert cut.visits == counted.view.incidences <= max_visits, where
            assert _is_cut(cut, full) or (told(cut) == told(full) and max_visits >= full.visits), where
            assert cut.loops or not _met(counted.view, question.root), f"{where}: a loop was found and is not named"
            answers.append(cut)
        assert told(answers[-1]) == told(full), seed
        assert [len(answer.loops) for answer in answers] == sorted(len(answer.loops) for answer in answers), seed


@pytest.mark.promise("G-10")
@pytest.mark.parametrize("kernel", KERNELS)
def test_fewer_loops_asked_for_are_the_beginning_of_more(kernel: str) -> None:
    for seed in range(200_000, 200_150):
        case = world(random.Random(seed))
        graph = case.graph()
        every = ask(graph, case.proposed, case.reader, KERNELS[kernel], max_loops=1_000)
        for max_loops in range(1, min(len(every.loops), 12) + 1):
            some = ask(graph, case.proposed, case.reader, KERNELS[kernel], max_loops=max_loops)
            assert some.loops == every.loops[:max_loops], (seed, max_loops)
            assert some.visits <= every.visits, (seed, max_loops)


def test_brute_force_finds_what_a_library_finds() -> None:
    some = 0
    for case in worlds(300_000, 1_000):
        found = oracle.loops(case.published, case.proposed, case.reader)
        assert found == oracle.loops_by_networkx(case.published, case.proposed, case.reader)
        some += bool(found)
    assert some > 200


@pytest.mark.promise("G-2")
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_event_may_carry_two_hops_of_a_loop(kernel: str) -> None:
    a, b = agent("a", ["e"], ["e"]), agent("b", ["e"], ["e"])
    assert ask(fold([a, b]), a, kernel=KERNELS[kernel]).loops == [("*:a", "*:b")]


@pytest.mark.promise("G-5", "G-10", "G-11")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_on_larger_graphs_the_kernels_agree_and_find_the_lengths_that_a_library_finds(first: int) -> None:
    for seed in range(first, first + 10):
        rng = random.Random(seed)
        count = rng.randint(30, 90)
        edges = {(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randint(count, 3 * count))}
        agents = shapes.of_edges(edge for edge in edges if edge[0] != edge[1])
        rng.shuffle(agents)
        graph = fold(agents)
        for root in rng.sample(agents, 5):
            question = question_of(graph, root, max_loops=25)
            answer = reference.search(question)
            assert told(jit.search(question)) == told(answer), seed
            limited = replace(question, max_visits=rng.randint(0, answer.visits))
            assert told(jit.search(limited)) == told(reference.search(limited)), seed
            found = ask(graph, root, max_loops=25)
            assert [len(loop) for loop in found.loops] == _shortest(agents, root, 25), seed
            assert found.loops == sorted(set(found.loops), key=lambda loop: (len(loop), loop)), seed
            assert all(len(set(loop)) == len(loop) for loop in found.loops), seed


def _shortest(agents: list[Agent], root: Agent, count: int) -> list[int]:
    """The lengths of the first loops through an agent, as paths from it to a copy of it that nothing leaves."""
    graph = networkx.DiGraph()
    graph.add_nodes_from([root, "end"])
    graph.add_edges_from((one, "end" if two == root else two) for one in agents for two in agents if one.starts(two))
    try:
        return [len(path) - 1 for path in islice(networkx.shortest_simple_paths(graph, root, "end"), count)]
    except networkx.NetworkXNoPath:
        return []


@pytest.mark.promise("G-11")
def test_a_search_that_fails_half_way_leaves_nothing_behind_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    world = [agent("a", ["x"], ["y"]), agent("b", ["y"], ["x"])]
    question = question_of(fold(world), world[0])
    expected = told(reference.search(question))
    assert told(jit.search(question)) == expected

    def fail(*given: Any) -> None:
        given[5].cells[:] = 1
        raise MemoryError

    with monkeypatch.context() as during:
        during.setattr(jit, "_run", fail)
        with pytest.raises(MemoryError):
            jit.search(question)
    assert told(jit.search(question)) == expected
