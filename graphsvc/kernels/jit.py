"""The search compiled by numba. It equals `reference` in everything, visits included; read that one first.

Every function here has its twin there. Scratch arrays hold a number for every node, are reset only where they were touched and
are used again, so that a search costs what it visits and not what the graph holds. The interpreter lock is released.

It is one long module because numba's cache watches only the file of the function that is called: a change elsewhere would go on
running the old search.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from graphsvc.kernels.rows import (
    COMPLETE,
    MORE_LOOPS,
    NOT_VERIFIED,
    SIZE,
    START,
    WALK_LIMITED,
    Answer,
    Ints,
    Longs,
    Order,
    Question,
)

# Lists of nodes hold unsigned numbers: with signed ones every access asks whether to count from the end.
Nodes = npt.NDArray[np.uint32]

# Constants that go to other functions as arguments are numpy's: numba compiles a function anew for each literal it is given.
_NEVER = 1 << 40
_SPENT = -1
_HIDDEN = Order.HIDDEN
_ZERO, _ONE, _TWO = np.int64(0), np.int64(1), np.int64(2)

# Scratch of a node, side by side in one cell: the distances of the four balls plus one (0: not reached), the steps of the two that
# come from the root, flags and marks. A search waits for memory: a node's first touch should be its only one.
_WIDTH = 8
_WAVE = 128
_AHEAD_AT, _BACK_AT, _BACK_STEP, _ONCE_AHEAD_AT, _ONCE_BACK_AT, _ONCE_BACK_STEP, _FLAG, _MARK = range(_WIDTH)
# Marks of the events that the root will hear, heard, will emit and emitted.
_HEARS, _HEARD, _EMITS, _EMITTED = 1, 2, 4, 8
# Flags of agents during one look at a branch.
_CLOSED, _SHUT, _SEEN = 1, 2, 4
# What a level may take in.
_FRESH, _WIDE, _INSIDE = np.int64(0), np.int64(1), np.int64(2)
# A ball's numbers. Its nodes stand in `queue` from first to last; LOW to HIGH is the level that grows next.
_DEPTH, _LOW, _HIGH, _COST, _SEEDS, _SEEDS_END, _FULL = range(7)
# The ledger.
_LEFT, _BOUNDING, _SEARCHING = range(3)
# A branch's columns; parts of the pool are an offset and a length. What a loop leaves over are branches of one length that leave it
# at one agent each, and the order among them is known: the later they leave, the sooner they come. So one row stands for all of
# them: it is the latest that is left, and those that leave with a shorter path, down to _LEAST, come into being one by one.
_LENGTH, _PATH, _PATH_N, _SHUTS, _SHUTS_N, _WHICH, _WHICH_N, _LOOP, _LOOP_N, _TAIL, _MADE, _LEAST = range(12)
_BRANCH = 12
_NO_TAIL = -2
_NO_STEP = -1


class _Side(NamedTuple):
    """One table as it will be. own: the root's proposed row. An event's row holds the root where its mark has the bit `now`; the
    stored row held it where its mark has the bit `was`."""

    heads: Ints
    data: Nodes
    own: Nodes
    now: int
    was: int


class _Graph(NamedTuple):
    """all_readable: whether the reader may read every scope, so that no agent's has to be looked up."""

    root: int
    nodes: int
    all_readable: bool
    agent: Ints
    place: Longs
    scope: Ints
    readable: npt.NDArray[np.bool_]
    cells: Ints
    wave: Nodes


class _Ball(NamedTuple):
    """at, step: its columns of the cells; the ball that comes from a path's end has no steps, -1."""

    at: int
    step: int
    queue: Nodes
    number: Longs


class _Scratch(NamedTuple):
    """cells: (nodes, _WIDTH). lists: (5, 2 * nodes), the balls' queues and a list of agents; a queue holds a level twice where
    `_trace` goes on from a part of it."""

    cells: Ints
    lists: Nodes


_generated: Any = intrinsic


@_generated
def _prefetch(_context, array, row):
    """Ask for the memory of array[row] without waiting for it."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        place = [context.cast(builder, arguments[1], signature.args[1], types.intp)]
        place += [context.get_constant(types.intp, 0)] * (kind.ndim - 1)
        held = context.make_array(kind)(context, builder, arguments[0])
        at = cgutils.get_item_pointer(context, builder, kind, held, place, wraparound=False)
        word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(fetch, [builder.bitcast(at, byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, row), generate


@_generated
def _bare(_context, array):
    """The same memory without an owner, so that nobody counts references to it. Its owner must outlive it, as an argument does."""

    def generate(context, builder, signature, arguments):
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        held.meminfo = held.meminfo.type(None)
        held.parent = held.parent.type(None)
        return held._getvalue()

    return array(array), generate


def _compiled(function: Any) -> Any:
    # Only compiled code calls these, so that no door for Python is made; `_run` alone has one, and a place in the cache. Arrays
    # are always their callers' here, so that nobody counts references to them: half the time of a search went into that.
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return numba.njit(function, nogil=True, **options)


def _allocating(function: Any) -> Any:
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(function, nogil=True, **options)


@_compiled
def _key(graph, node):
    if node == graph.root:
        return -1
    agent = graph.agent[node]
    return graph.place[agent] if graph.all_readable or graph.readable[graph.scope[agent]] else _HIDDEN + node


@_compiled
def _size(graph, side, node):
    if node == graph.root:
        return side.own.size
    mark = graph.cells[node, _MARK]
    stored = side.heads[node, SIZE] if node < graph.nodes else 0
    return stored - ((mark & side.was) != 0) + ((mark & side.now) != 0)


@_compiled
def _begin(graph, side, ball, node):
    number = ball.number
    number[:] = 0
    number[_HIGH] = 1
    number[_COST] = _size(graph, side, node)
    ball.queue[0] = node
    graph.cells[node, ball.at] = 1


@_compiled
def _reset(graph, ball):
    cells, at, queue = graph.cells, ball.at, ball.queue
    for i in range(ball.number[_HIGH]):
        cells[queue[i], at] = 0


@_compiled
def _grow(graph, side, ball, ledger, rule, limit, other, kept):
    number = ball.number
    if number[_COST] + kept > ledger[_LEFT]:
        return False
    ledger[_LEFT] -= number[_COST]
    number[_DEPTH] += 1
    # Everything the loop touches is a local: numba counts references at each access to a tuple's array.
    root, nodes, cells, wave = graph.root, graph.nodes, graph.cells, graph.wave
    heads, data, own, now, was = side
    column, steps, queue, inside = ball.at, ball.step, ball.queue, other.at
    depth, low, end = number[_DEPTH], number[_LOW], number[_HIGH]
    high, cost = end, 0
    i, j = low, 0
    while i < end:
        # A wave of incidences is read first, and what it leads to is fetched from memory all at once.
        filled = 0
        while i < end and filled < _WAVE:
            node = queue[i]
            step = node if depth % 2 == 1 or steps < 0 else cells[node, steps]
            if node == root:
                first, stored, extra = 0, own.size, 0
            else:
                first, stored = (heads[node, START], heads[node, SIZE]) if node < nodes else (0, 0)
                extra = 1 if (cells[node, _MARK] & now) != 0 else 0
            stop = min(stored, j + _WAVE - filled)
            while j < stop:
                found = own[j] if node == root else data[first + j]
                # The stored root is skipped; where the row will hold the root, it comes after all others.
                if found != root:
                    _prefetch(cells, found)
                    _prefetch(heads, found)
                    wave[filled, 0] = found
                    wave[filled, 1] = step
                    filled += 1
                j += 1
            if j == stored and (extra == 0 or filled < _WAVE):
                if extra:
                    wave[filled, 0] = root
                    wave[filled, 1] = step
                    filled += 1
                i += 1
                j = 0
        for k in range(filled):
            found = wave[k, 0]
            step = wave[k, 1]
            reached = cells[found, column]
            if reached == 0:
                if rule == _INSIDE:
                    allowed = cells[found, inside] != 0 and cells[found, inside] - 1 + depth <= limit
                elif rule == _WIDE:
                    allowed = (cells[found, _FLAG] & _CLOSED) == 0
                else:
                    allowed = found != root and cells[found, _FLAG] == 0
                if allowed:
                    cells[found, column] = depth + 1
                    if steps >= 0:
                        cells[found, steps] = step
                    queue[high] = found
                    high += 1
                    if found == root:
                        cost += own.size
                    else:
                        mark = cells[found, _MARK]
                        if found < nodes:
                            _prefetch(data, heads[found, START])
                            cost += heads[found, SIZE]
                        cost += ((mark & now) != 0) - ((mark & was) != 0)
            elif (
                steps >= 0
                and reached == depth + 1
                and cells[found, steps] != step
                and _key(graph, step) < _key(graph, cells[found, steps])
            ):
                cells[found, steps] = step
    number[_LOW], number[_HIGH], number[_COST] = end, high, cost
    return True


@_compiled
def _may_meet(graph, ahead, back):
    cells = graph.cells
    if ahead.number[_LOW] == ahead.number[_HIGH]:
        return False
    if back.number[_LOW] < back.number[_HIGH]:
        return True
    if ahead.number[_DEPTH] == 0:
        return back.number[_HIGH] > 1
    if ahead.number[_DEPTH] == 1:
        for i in range(ahead.number[_LOW], ahead.number[_HIGH]):
            if cells[ahead.queue[i], back.at] != 0:
                return True
    return False


@_compiled
def _seed(graph, ahead, back):
    """Only the next agents stay in the ball; returns the shortest way round through one that `back` has reached already."""
    cells = graph.cells
    number = ahead.number
    for i in range(number[_LOW]):
        cells[ahead.queue[i], ahead.at] = 0
    number[_SEEDS], number[_SEEDS_END] = number[_LOW], number[_HIGH]
    around = _NEVER
    for i in range(number[_LOW], number[_HIGH]):
        at = cells[ahead.queue[i], back.at]
        if at != 0 and at + 1 < around:
            around = at + 1
    return around


@_compiled
def _touches(graph, ball, other):
    queue, cells, at = ball.queue, graph.cells, other.at
    for i in range(ball.number[_LOW], ball.number[_HIGH]):
        if cells[queue[i], at] != 0:
            return True
    return False


@_compiled
def _meet(graph, sides, ahead, back, last, ledger, first):
    forth, behind = sides
    _begin(graph, forth, ahead, last)
    _begin(graph, behind, back, graph.root)
    kept = 0
    while _may_meet(graph, ahead, back):
        back_open = back.number[_LOW] < back.number[_HIGH]
        forward = not back_open or ahead.number[_COST] <= back.number[_COST]
        spare = kept + (back.number[_COST] if first and forward else 0)
        if forward and ahead.number[_DEPTH] == 1:
            if not _grow(graph, forth, ahead, ledger, _FRESH, _ZERO, back, spare):
                return _SPENT
            around = _seed(graph, ahead, back)
            if around < _NEVER:
                return around
            continue
        if not _grow(graph, forth if forward else behind, ahead if forward else back, ledger, _WIDE, _ZERO, back, spare):
            return _SPENT
        if ahead.number[_DEPTH] > 1 and _touches(graph, ahead if forward else back, back if forward else ahead):
            return ahead.number[_DEPTH] + back.number[_DEPTH]
        if first and forward and ahead.number[_DEPTH] > 2:
            for i in range(ahead.number[_LOW], ahead.number[_HIGH]):
                kept += _size(graph, behind, ahead.queue[i])
    return _NEVER


@_compiled
def _trace(graph, behind, ahead, back, ledger, limit):
    """Go on from `back` in place. What it held before is given by the numbers that the caller saved; see `_untrace`."""
    cells = graph.cells
    number = back.number
    end = number[_HIGH]
    high = end
    cost = 0
    for i in range(number[_LOW], end):
        node = back.queue[i]
        if cells[node, ahead.at] != 0 and cells[node, ahead.at] - 1 + number[_DEPTH] <= limit:
            back.queue[high] = node
            high += 1
            cost += _size(graph, behind, node)
    number[_LOW], number[_HIGH], number[_COST], number[_FULL] = end, high, cost, high
    while number[_LOW] < number[_HIGH] and number[_DEPTH] < limit - 2:
        if not _grow(graph, behind, back, ledger, _INSIDE, limit, ahead, _ZERO):
            return False
    return True


@_compiled
def _untrace(graph, back, saved):
    cells = graph.cells
    for i in range(back.number[_FULL], back.number[_HIGH]):
        cells[back.queue[i], back.at] = 0
    for i in range(saved.size):
        back.number[i] = saved[i]


@_compiled
def _sift(keys, nodes, at, size):
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= keys[at]:
            break
        keys[at], keys[child] = keys[child], keys[at]
        nodes[at], nodes[child] = nodes[child], nodes[at]
        at = child


@_allocating
def _sort(graph, nodes, count):
    """Bring the first `count` nodes into name order, as a heap sort (the library's sort costs ten seconds of compiling)."""
    if count < 2:
        return
    keys = np.empty(count, np.int64)
    for i in range(count):
        keys[i] = _key(graph, nodes[i])
    for at in range(count // 2 - 1, -1, -1):
        _sift(keys, nodes, at, count)
    for size in range(count - 1, 0, -1):
        keys[0], keys[size] = keys[size], keys[0]
        nodes[0], nodes[size] = nodes[size], nodes[0]
        _sift(keys, nodes, _ZERO, size)


@_compiled
def _first_steps(graph, ahead, back, around, kids):
    """Fill `kids` with the next agents that give the shortest way round; returns how many."""
    cells = graph.cells
    count = 0
    for i in range(ahead.number[_SEEDS], ahead.number[_SEEDS_END]):
        if cells[ahead.queue[i], back.at] == around - 1:
            kids[count] = ahead.queue[i]
            count += 1
    return count


@_compiled
def _children(graph, forth, agent, kids, ledger):
    """Fill `kids` with the agents that may come next; returns how many, or _SPENT."""
    root, nodes, cells = graph.root, graph.nodes, graph.cells
    heads, data, own = forth.heads, forth.data, forth.own
    cost = _size(graph, forth, agent)
    if cost > ledger[_LEFT]:
        return _SPENT
    ledger[_LEFT] -= cost
    events = own if agent == root else data[heads[agent, START] : heads[agent, START] + heads[agent, SIZE]]
    cost = 0
    for event in events:
        cost += _size(graph, forth, event)
    if cost > ledger[_LEFT]:
        return _SPENT
    ledger[_LEFT] -= cost
    count = 0
    for event in events:
        first, size = (heads[event, START], heads[event, SIZE]) if event < nodes else (0, 0)
        for i in range(first, first + size):
            child = data[i]
            if child != root and cells[child, _FLAG] == 0:
                _prefetch(graph.agent, child)
                cells[child, _FLAG] = _SEEN
                kids[count] = child
                count += 1
    for i in range(count):
        cells[kids[i], _FLAG] = 0
    return count


@_compiled
def _bound(graph, forth, back, path_n, known, least, kids, ledger, agent):
    """Returns (length, how many next agents are in `kids`); the length is _SPENT where the visits do not reach."""
    count = _children(graph, forth, agent, kids, ledger)
    if count == _SPENT:
        return _SPENT, _ZERO
    beyond = known + 2 if known < _NEVER else _NEVER
    best, chosen, sure = _NEVER, 0, True
    cells, column = graph.cells, back.at
    for i in range(count):
        at = cells[kids[i], column]
        length = 2 * path_n + at - 1 if at != 0 else beyond
        if length < least:
            length = least
        if length < best:
            best, chosen, sure = length, 0, True
        if length == best:
            kids[chosen] = kids[i]
            chosen += 1
            sure = sure and at != 0
    if not sure or best >= _NEVER:
        return best, _ZERO
    return best, chosen


@_compiled
def _deepen(graph, sides, ahead, back, saved, ledger, goal):
    """Returns what is known now, or _SPENT."""
    _untrace(graph, back, saved)
    a, b = ahead.number, back.number
    while a[_DEPTH] + b[_DEPTH] < goal and a[_LOW] < a[_HIGH] and b[_LOW] < b[_HIGH]:
        forward = a[_COST] <= b[_COST]
        if not _grow(graph, sides[0] if forward else sides[1], ahead if forward else back, ledger, _FRESH, _ZERO, back, _ZERO):
            return _SPENT
    known = goal if a[_LOW] < a[_HIGH] and b[_LOW] < b[_HIGH] else _NEVER
    for i in range(saved.size):
        saved[i] = b[i]
    return known if _trace(graph, sides[1], ahead, back, ledger, known) else _SPENT


@_compiled
def _flagged(graph, pool, branch, on):
    """Close the branch's path but for the root, and shut its shut agents; or open them again."""
    cells = graph.cells
    for i in range(branch[_PATH] + 1, branch[_PATH] + branch[_PATH_N]):
        cells[pool[i], _FLAG] = _CLOSED if on else 0
    for i in range(branch[_SHUTS], branch[_SHUTS] + branch[_SHUTS_N]):
        cells[pool[i], _FLAG] = (cells[pool[i], _FLAG] | _SHUT) if on else 0


@_allocating
def _larger(array, used, need):
    """The array, or a longer copy, with room for `need` more after the first `used`."""
    if used + need <= array.size:
        return array
    grown = np.empty(2 * (used + need), array.dtype)
    for i in range(used):
        grown[i] = array[i]
    return grown


@_allocating
def _more_rows(table, used, need):
    if used + need <= table.shape[0]:
        return table
    grown = np.empty((2 * (used + need), table.shape[1]), table.dtype)
    for i in range(used):
        for j in range(table.shape[1]):
            grown[i, j] = table[i, j]
    return grown


@_compiled
def _put(branches, at, length, path, path_n, shuts, shuts_n, tail, made, least):
    """A branch without next agents or loop, in a fresh row. made: its place in the order in which the reference makes them."""
    row = branches[at]
    row[_LENGTH], row[_TAIL], row[_MADE], row[_LEAST] = length, tail, made, least
    row[_PATH], row[_PATH_N], row[_SHUTS], row[_SHUTS_N] = path, path_n, shuts, shuts_n
    row[_WHICH], row[_WHICH_N], row[_LOOP], row[_LOOP_N] = 0, 0, 0, 0


@_compiled
def _copy(source, first, count, target, at):
    for i in range(count):
        target[at + i] = source[first + i]


@_compiled
def _step_on(graph, back, pool, offset, length, child):
    """Lead the path at `offset` on over the child to the root; returns the loop's length, 0 where it comes back to the path."""
    cells = graph.cells
    at = offset + length
    pool[at] = child
    at += 1
    if cells[child, back.at] == 0:
        return 0
    step = cells[child, back.step]
    while step != graph.root:
        for i in range(offset, offset + length):
            if pool[i] == step:
                return 0
        pool[at] = step
        at += 1
        step = cells[step, back.step]
    return at - offset


@_compiled
def _less(graph, pool, branches, first_row, second_row):
    one, two = branches[first_row], branches[second_row]
    if one[_LENGTH] != two[_LENGTH]:
        return one[_LENGTH] < two[_LENGTH]
    first = one[_LOOP] if one[_LOOP_N] else one[_PATH]
    second = two[_LOOP] if two[_LOOP_N] else two[_PATH]
    n, m = max(one[_LOOP_N], one[_PATH_N]), max(two[_LOOP_N], two[_PATH_N])
    n_all, m_all = n + (one[_TAIL] != _NO_TAIL), m + (two[_TAIL] != _NO_TAIL)
    for i in range(min(n_all, m_all)):
        if i < n and i < m and pool[first + i] == pool[second + i]:
            continue
        a = _key(graph, pool[first + i]) if i < n else one[_TAIL]
        b = _key(graph, pool[second + i]) if i < m else two[_TAIL]
        if a != b:
            return a < b
    return n_all < m_all if n_all != m_all else one[_MADE] < two[_MADE]


@_compiled
def _heap_push(graph, pool, branches, heap, size, branch):
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if not _less(graph, pool, branches, branch, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = branch


@_compiled
def _heap_sink(graph, pool, branches, heap, size, branch):
    """Put a branch in the place of the top."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _less(graph, pool, branches, heap[child + 1], heap[child]):
            child += 1
        if not _less(graph, pool, branches, heap[child], branch):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = branch


@_compiled
def _resolve(graph, sides, ahead, back, last, kids, ledger):
    """Returns the length of the shortest way round from `last`, and how many next agents, in `kids`, give it. Both balls are
    left filled."""
    before = ledger[_LEFT]
    around = _meet(graph, sides, ahead, back, last, ledger, False)
    if 0 < around < _NEVER and not _trace(graph, sides[1], ahead, back, ledger, around):
        around = _SPENT
    ledger[_SEARCHING] += before - ledger[_LEFT]
    return around, _first_steps(graph, ahead, back, around, kids) if 0 < around < _NEVER else 0


@_compiled
def _mark_root(graph, sides, clear):
    """Mark the events whose rows hold the root, stored or as it will be; or take the marks away again."""
    cells, root = graph.cells, graph.root
    for side, opposite in ((sides[0], sides[1]), (sides[1], sides[0])):
        # The events that the root emits are those whose row of emitters, the opposite side's, holds it.
        for event in side.own:
            cells[event, _MARK] = 0 if clear else cells[event, _MARK] | opposite.now
        if root < graph.nodes:
            for i in range(side.heads[root, START], side.heads[root, START] + side.heads[root, SIZE]):
                event = side.data[i]
                cells[event, _MARK] = 0 if clear else cells[event, _MARK] | opposite.was


@numba.njit(cache=True, nogil=True)
def _run(root, nodes, order, ahead_rows, behind_rows, scratch, max_loops, max_visits):
    """The loops as spans (offset, length) of a pool of nodes, how the search ended, and the visits spent.

    One function with one way out, not several: every level of compiled calls has numba compile all below it once more.
    """
    wave, ledger = np.empty((_WAVE, 2), np.uint32), np.zeros(3, np.int64)
    pool, branches, branch = np.empty(512, np.uint32), np.empty((512, _BRANCH), np.int64), np.empty(_BRANCH, np.int64)
    heap, spans = np.empty(512, np.int32), np.empty((16, 2), np.int64)
    number = np.zeros((4, _FULL + 1), np.int64)
    lists, cells = _bare(scratch.lists), _bare(scratch.cells)
    kids = lists[4]
    agent, place, scope, readable = order
    graph = _Graph(root, nodes, readable.all(), _bare(agent), _bare(place), _bare(scope), _bare(readable), cells, wave)
    forth = _Side(_bare(ahead_rows[0]), _bare(ahead_rows[1]), _bare(ahead_rows[2]), _HEARS, _HEARD)
    behind = _Side(_bare(behind_rows[0]), _bare(behind_rows[1]), _bare(behind_rows[2]), _EMITS, _EMITTED)
    sides = forth, behind
    ahead = _Ball(_AHEAD_AT, _NO_STEP, lists[0], number[0])
    back = _Ball(_BACK_AT, _BACK_STEP, lists[1], number[1])
    once_ahead = _Ball(_ONCE_AHEAD_AT, _NO_STEP, lists[2], number[2])
    once_back = _Ball(_ONCE_BACK_AT, _ONCE_BACK_STEP, lists[3], number[3])
    ledger[_LEFT] = max_visits
    found, used, rows, made, waiting, ended = 0, 1, 0, 0, 0, COMPLETE
    _mark_root(graph, sides, False)

    pool[0] = root
    cells[root, _FLAG] = _SHUT
    known = _meet(graph, sides, ahead, back, root, ledger, True)
    ledger[_SEARCHING] = max_visits - ledger[_LEFT]
    cells[root, _FLAG] = 0
    saved = back.number.copy()
    if known == _SPENT or (known < _NEVER and not _trace(graph, behind, ahead, back, ledger, known)):
        ended = NOT_VERIFIED
    elif known < _NEVER:
        which_n = _first_steps(graph, ahead, back, known, kids)
        _sort(graph, kids, which_n)
        which_n = min(which_n, max_loops + 1)
        pool = _larger(pool, used, which_n)
        _copy(kids, _ZERO, which_n, pool, used)
        _put(branches, _ZERO, known, 0, 1, 0, 1, _key(graph, kids[0]), 0, 1)
        branches[0, _WHICH], branches[0, _WHICH_N] = used, which_n
        _heap_push(graph, pool, branches, heap, waiting, _ZERO)
        used, rows, made, waiting = used + which_n, 1, 1, 1

    while waiting:
        for column in range(_BRANCH):
            branch[column] = branches[heap[0], column]
        path, path_n = branch[_PATH], branch[_PATH_N]
        if branch[_LEAST] < path_n:
            branches = _more_rows(branches, rows, _ONE)
            shut, left = path + path_n - 1, path_n - 1
            _put(
                branches, rows, branch[_LENGTH], path, left, shut, 1, _key(graph, pool[shut]) + 1, branch[_MADE] - 1, branch[_LEAST]
            )
            _heap_sink(graph, pool, branches, heap, waiting, rows)
            rows += 1
            branch[_LEAST] = path_n
        else:
            waiting -= 1
            _heap_sink(graph, pool, branches, heap, waiting, heap[waiting])
        again, search = False, False
        if branch[_LOOP_N]:
            if found == max_loops:
                ended = MORE_LOOPS
                break
            spans = _more_rows(spans, found, _ONE)
            loop, loop_n = branch[_LOOP], branch[_LOOP_N]
            spans[found, 0], spans[found, 1] = loop, loop_n
            found += 1
            branches = _more_rows(branches, rows, _TWO)
            heap = _larger(heap, waiting, _TWO)
            made += loop_n - path_n
            last = loop + loop_n - 1
            if path_n + 1 < loop_n:
                tail = _key(graph, pool[last]) + 1
                _put(branches, rows, 2 * loop_n, loop, loop_n - 1, last, 1, tail, made - 2, path_n + 1)
                _heap_push(graph, pool, branches, heap, waiting, rows)
                rows += 1
                waiting += 1
            _put(branches, rows, 2 * loop_n + 2, loop, loop_n, loop, 1, _NO_TAIL, made - 1, loop_n)
            _heap_push(graph, pool, branches, heap, waiting, rows)
            rows += 1
            waiting += 1
            shuts_n = branch[_SHUTS_N]
            pool = _larger(pool, used, shuts_n + 1)
            _copy(pool, branch[_SHUTS], shuts_n, pool, used)
            pool[used + shuts_n] = pool[loop + path_n]
            branch[_SHUTS], branch[_SHUTS_N] = used, shuts_n + 1
            used += shuts_n + 1
            branch[_LOOP_N] = 0
            if not branch[_WHICH_N]:
                branch[_LENGTH] += 2
            again = True
        elif branch[_WHICH_N]:
            child = pool[branch[_WHICH]]
            pool = _larger(pool, used, path_n + back.number[_DEPTH] + 2)
            _copy(pool, path, path_n, pool, used)
            loop_n = _step_on(graph, back, pool, used, path_n, child)
            if loop_n and 2 * loop_n == branch[_LENGTH]:
                branch[_LOOP], branch[_LOOP_N] = used, loop_n
                branch[_WHICH] += 1
                branch[_WHICH_N] -= 1
                used += loop_n
                again = True
            else:
                search = True
        else:
            _flagged(graph, pool, branch, True)
            before = ledger[_LEFT]
            bound, which_n = _bound(graph, forth, back, path_n, known, branch[_LENGTH], kids, ledger, pool[path + path_n - 1])
            ledger[_BOUNDING] += before - ledger[_LEFT]
            _flagged(graph, pool, branch, False)
            if bound == _SPENT:
                ended = WALK_LIMITED
                break
            if bound < _NEVER and (which_n or bound > branch[_LENGTH]):
                _sort(graph, kids, which_n)
                which_n = min(which_n, max_loops + 1 - found)
                pool = _larger(pool, used, which_n)
                _copy(kids, _ZERO, which_n, pool, used)
                branch[_LENGTH], branch[_WHICH], branch[_WHICH_N] = bound, used, which_n
                used += which_n
                again = True
            elif bound < _NEVER and ledger[_BOUNDING] <= 4 * ledger[_SEARCHING]:
                before = ledger[_LEFT]
                known = _deepen(graph, sides, ahead, back, saved, ledger, branch[_LENGTH])
                if known == _SPENT:
                    ended = WALK_LIMITED
                    break
                ledger[_BOUNDING] += before - ledger[_LEFT]
                again = True
            elif bound < _NEVER:
                search = True
        if search:
            _flagged(graph, pool, branch, True)
            around, which_n = _resolve(graph, sides, once_ahead, once_back, pool[path + path_n - 1], kids, ledger)
            _flagged(graph, pool, branch, False)
            if around == _SPENT:
                ended = WALK_LIMITED
                break
            if around < _NEVER:
                _sort(graph, kids, which_n)
                which_n = min(which_n, max_loops + 1 - found)
                pool = _larger(pool, used, path_n + once_back.number[_DEPTH] + 2 + which_n)
                _copy(pool, path, path_n, pool, used)
                branch[_LOOP], branch[_LOOP_N] = used, _step_on(graph, once_back, pool, used, path_n, kids[0])
                used += branch[_LOOP_N]
                _copy(kids, _ONE, which_n - 1, pool, used)
                branch[_LENGTH] = around + 2 * (path_n - 1)
                branch[_WHICH], branch[_WHICH_N] = used, which_n - 1
                used += which_n - 1
                again = True
            _reset(graph, once_ahead)
            _reset(graph, once_back)
        if again:
            branch[_TAIL] = _NO_TAIL
            if branch[_WHICH_N] and not branch[_LOOP_N]:
                branch[_TAIL] = _key(graph, pool[branch[_WHICH]])
            branch[_MADE] = made
            branches = _more_rows(branches, rows, _ONE)
            heap = _larger(heap, waiting, _ONE)
            for column in range(_BRANCH):
                branches[rows, column] = branch[column]
            _heap_push(graph, pool, branches, heap, waiting, rows)
            rows += 1
            made += 1
            waiting += 1

    if ended == WALK_LIMITED and found == 0:
        ended = NOT_VERIFIED
    _mark_root(graph, sides, True)
    for ball in (ahead, back, once_ahead, once_back):
        _reset(graph, ball)
    sizes = np.empty(found, np.int32)
    for at in range(found):
        sizes[at] = spans[at, 1]
    nodes, at = np.empty(sizes.sum(), np.int32), 0
    for loop in range(found):
        for place in range(spans[loop, 0], spans[loop, 0] + spans[loop, 1]):
            nodes[at] = pool[place]
            at += 1
    return nodes, sizes, ended, max_visits - ledger[_LEFT]


def _new_scratch(nodes: int) -> _Scratch:
    line = 64 // 4
    flat = np.zeros(nodes * _WIDTH + line, np.int32)
    skip = -(flat.ctypes.data // 4) % line  # so that no cell lies across two cache lines
    return _Scratch(flat[skip : skip + nodes * _WIDTH].reshape(nodes, _WIDTH), np.empty((5, 2 * nodes), np.uint32))


class _Pool:
    """Scratch for searches that run side by side; what a search used is kept for the next one of the same size or less."""

    def __init__(self) -> None:
        self._free: list[_Scratch] = []
        self._lock = Lock()

    def take(self, nodes: int) -> _Scratch:
        with self._lock:
            scratch = self._free.pop() if self._free else None
        if scratch is not None and len(scratch.cells) >= nodes:
            return scratch
        return _new_scratch(nodes + nodes // 8 + 64)

    def give_back(self, scratch: _Scratch) -> None:
        with self._lock:
            self._free.append(scratch)


_pool = _Pool()


def search(question: Question) -> Answer:
    """The same answer as `reference.search`, compiled. Safe to call from several threads while the rows do not change."""
    rows, order = question.rows, question.order
    emits, hears = question.emits.view(np.uint32), question.hears.view(np.uint32)
    scratch = _pool.take(rows.nodes + 1 + emits.size + hears.size)  # the root and all its events may be new
    nodes, sizes, ended, visits = _run(
        question.root,
        rows.nodes,
        (order.agent, order.place, order.scope, order.readable),
        (rows.ahead.heads, rows.ahead.data.view(np.uint32), emits),
        (rows.behind.heads, rows.behind.data.view(np.uint32), hears),
        scratch,
        question.max_loops,
        question.max_visits,
    )
    # Only now: a search that failed, for want of memory, has left its marks in the scratch, and the next would answer wrongly.
    _pool.give_back(scratch)
    return Answer(nodes, sizes, int(ended), int(visits))
