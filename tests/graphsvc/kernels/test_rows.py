"""The rows hold what was put into them, in little more memory than that takes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphsvc.kernels.rows import Rows, Table

Pair = tuple[int, int]


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


def change(rows: Rows, pairs: list[Pair], *, present: bool) -> None:
    rows.change(ints([source for source, _ in pairs]), ints([target for _, target in pairs]), present=present)


def contents(rows: Rows) -> tuple[set[Pair], set[Pair]]:
    """The incidences by each of the two tables, each of which must hold none twice."""

    def read(table: Table) -> list[Pair]:
        return [(node, int(value)) for node in range(rows.nodes) for value in table.row(node)]

    ahead, behind = read(rows.ahead), read(rows.behind)
    assert len(set(ahead)) == len(ahead) == rows.incidences == len(behind)
    return set(ahead), {(source, target) for target, source in behind}


@pytest.mark.parametrize("seed", range(20))
def test_after_any_changes_both_tables_hold_what_is_there(seed: int) -> None:
    rng = random.Random(seed)
    rows, held = Rows(), set()
    for _ in range(60):
        rows.add_nodes(rng.choice([0, 1, 2, 40]))
        possible = (
            {(rng.randrange(rows.nodes), rng.randrange(rows.nodes)) for _ in range(rng.choice([1, 5, 60]))} if rows.nodes else set()
        )
        come = sorted(possible - held)
        rng.shuffle(come)
        change(rows, come, present=True)
        held.update(come)
        gone = rng.sample(sorted(held), rng.randint(0, len(held)) if rng.random() < 0.4 else 0)
        change(rows, gone, present=False)
        held.difference_update(gone)
        assert contents(rows) == (held, held)


@pytest.mark.promise("G-12")
def test_rows_that_come_and_go_for_long_take_no_more_than_three_times_their_room() -> None:
    rng = random.Random(1)
    pairs = [(source, 200 + target) for source in range(200) for target in range(200)]
    rng.shuffle(pairs)
    held, free = pairs[:4_000], pairs[4_000:]
    rows = Rows()
    rows.add_nodes(400)
    change(rows, held, present=True)
    for _ in range(600):
        places = rng.sample(range(4_000), 20)
        change(rows, [held[i] for i in places], present=False)
        for i in places:
            other = rng.randrange(len(free))
            held[i], free[other] = free[other], held[i]
        change(rows, [held[i] for i in places], present=True)
    assert contents(rows) == (set(held), set(held))
    assert max(rows.ahead.data.size, rows.behind.data.size) <= 3 * rows.incidences


@pytest.mark.promise("G-12")
def test_a_crowd_leaves_a_hub_in_one_pass_over_its_row() -> None:
    # Looking each of them up in the row would be a hundred billion comparisons, which no patience outlasts.
    crowd = 500_000
    rows = Rows()
    rows.add_nodes(crowd + 1)
    agents, hub = np.arange(1, crowd + 1, dtype=np.int32), np.zeros(crowd, np.int32)
    rows.change(agents, hub, present=True)
    rows.change(agents[::-1][:-1], hub[:-1], present=False)
    assert rows.behind.row(0).tolist() == [1]
    assert rows.incidences == 1


@pytest.mark.promise("G-12")
def test_a_hub_that_grows_agent_by_agent_always_finds_room() -> None:
    rows = Rows()
    rows.add_nodes(2_001)
    for agent in range(1, 2_001):
        change(rows, [(agent, 0)], present=True)
    assert sorted(rows.behind.row(0).tolist()) == list(range(1, 2_001))
    assert rows.behind.data.size <= 4 * rows.incidences


@pytest.mark.parametrize("seed", range(10))
def test_rows_that_grow_long_and_short_again_hold_what_is_there(seed: int) -> None:
    rng = random.Random(seed)
    rows, held = Rows(), set()
    rows.add_nodes(200)
    for _ in range(80):
        come = sorted({(rng.randrange(4), 4 + rng.randrange(196)) for _ in range(rng.choice([1, 8, 120]))} - held)
        change(rows, come, present=True)
        held.update(come)
        gone = rng.sample(sorted(held), rng.choice([1, len(held) // 2, len(held) - 3]) if len(held) > 3 else 0)
        change(rows, gone, present=False)
        held.difference_update(gone)
        assert contents(rows) == (held, held)


@pytest.mark.promise("G-12")
def test_hubs_that_win_and_lose_an_agent_by_turns_are_moved_once() -> None:
    hubs, size = 4, 1 << 14  # as many as there is room for: one more does not fit
    rows = Rows()
    rows.add_nodes(hubs + size + 1)
    agents = np.arange(hubs, hubs + size, dtype=np.int32)
    for hub in range(hubs):
        rows.change(np.full(size, hub, np.int32), agents, present=True)
    moves, turns = 0, 100
    for turn in range(turns):
        hub, before = turn % hubs, int(rows.ahead.heads[turn % hubs, 0])
        change(rows, [(hub, hubs + size)], present=True)
        moves += int(rows.ahead.heads[hub, 0]) != before
        change(rows, [(hub, hubs + size)], present=False)
    assert moves <= 3 * hubs  # of its own, and when all rows are copied, which two hubs' moves make worth while
    assert rows.ahead.data.size <= 3 * rows.incidences
