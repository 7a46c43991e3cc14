"""The search compiled by numba. It equals `reference` in everything, visits included; read that one first.

Every function here has its twin there. Scratch arrays hold a number for every node, are reset only where they were touched and
are used again, so that a search costs what it visits and not what the graph holds. The interpreter lock is released.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from graphsvc.kernels.rows import COMPLETE, MORE_LOOPS, NOT_VERIFIED, WALK_LIMITED, Answer, Ints, Longs, Order, Question

_NEVER = 1 << 40
_SPENT = -1
_HIDDEN = Order.HIDDEN

# Marks of the events whose rows hold the root: in the stored graph, and as they will be.
_HEARS, _HEARD, _EMITS, _EMITTED = 1, 2, 4, 8
# Flags of agents during one look at a branch.
_CLOSED, _SHUT, _SEEN = 1, 2, 4
# What a level may take in.
_FRESH, _WIDE, _INSIDE = 0, 1, 2
# A ball's numbers. Its nodes stand in `queue` from first to last; LOW to HIGH is the level that grows next.
_DEPTH, _LOW, _HIGH, _COST, _SEEDS, _SEEDS_END, _FULL = range(7)
# The ledger.
_LEFT, _BOUNDING, _SEARCHING = range(3)
# A branch's columns; parts of the pool are an offset and a length.
_LENGTH, _PATH, _PATH_N, _SHUTS, _SHUTS_N, _WHICH, _WHICH_N, _LOOP, _LOOP_N, _TAIL, _MADE = range(11)
_NO_TAIL = -2


class _Graph(NamedTuple):
    root: int
    nodes: int
    ahead_start: Longs
    ahead_size: Ints
    ahead_data: Ints
    behind_start: Longs
    behind_size: Ints
    behind_data: Ints
    emits: Ints
    hears: Ints
    mark: npt.NDArray[np.int8]
    place: Longs
    scope: Ints
    readable: npt.NDArray[np.bool_]


class _Ball(NamedTuple):
    """at: distance plus one, 0 where not reached. step: the first agent by name towards the ball's end."""

    at: Ints
    step: Ints
    queue: Ints
    number: Longs


class _Scratch(NamedTuple):
    ahead: _Ball
    back: _Ball
    once_ahead: _Ball
    once_back: _Ball
    flag: npt.NDArray[np.int8]
    mark: npt.NDArray[np.int8]
    kids: Ints


def _compiled(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True)(function)


@_compiled
def _key(graph, node):
    if node == graph.root:
        return -1
    return graph.place[node] if graph.readable[graph.scope[node]] else _HIDDEN + node


@_compiled
def _size(graph, ahead, node):
    if node == graph.root:
        return graph.emits.size if ahead else graph.hears.size
    mark = graph.mark[node]
    if ahead:
        size = graph.ahead_size[node] if node < graph.nodes else 0
        return size - ((mark & _HEARD) != 0) + ((mark & _HEARS) != 0)
    size = graph.behind_size[node] if node < graph.nodes else 0
    return size - ((mark & _EMITTED) != 0) + ((mark & _EMITS) != 0)


@_compiled
def _row(graph, ahead, node):
    """The stored row, or the root's proposed one. The stored root in it is to be skipped."""
    if node == graph.root:
        return graph.emits if ahead else graph.hears
    if node >= graph.nodes:
        return graph.emits[:0]
    if ahead:
        first = graph.ahead_start[node]
        return graph.ahead_data[first : first + graph.ahead_size[node]]
    first = graph.behind_start[node]
    return graph.behind_data[first : first + graph.behind_size[node]]


@_compiled
def _holds_root(graph, ahead, node):
    return node != graph.root and (graph.mark[node] & (_HEARS if ahead else _EMITS)) != 0


@_compiled
def _begin(graph, ball, ahead, node):
    number = ball.number
    number[:] = 0
    number[_HIGH] = 1
    number[_COST] = _size(graph, ahead, node)
    ball.queue[0] = node
    ball.at[node] = 1


@_compiled
def _reset(ball):
    for i in range(ball.number[_HIGH]):
        ball.at[ball.queue[i]] = 0


@_compiled
def _take(graph, ball, flag, rule, limit, other, found, step, high):
    """Look at one incidence of a growing level; returns the level's new end."""
    depth = ball.number[_DEPTH]
    at = ball.at[found]
    if at == 0:
        if rule == _INSIDE:
            allowed = other.at[found] != 0 and other.at[found] - 1 + depth <= limit
        elif rule == _WIDE:
            allowed = (flag[found] & _CLOSED) == 0
        else:
            allowed = found != graph.root and flag[found] == 0
        if allowed:
            ball.at[found] = depth + 1
            ball.step[found] = step
            ball.queue[high] = found
            return high + 1
    elif at == depth + 1 and _key(graph, step) < _key(graph, ball.step[found]):
        ball.step[found] = step
    return high


@_compiled
def _grow(graph, ball, ahead, flag, ledger, rule, limit, other, kept):
    number = ball.number
    if number[_COST] + kept > ledger[_LEFT]:
        return False
    ledger[_LEFT] -= number[_COST]
    number[_DEPTH] += 1
    low, end = number[_LOW], number[_HIGH]
    high = end
    odd = number[_DEPTH] % 2 == 1
    for i in range(low, end):
        node = ball.queue[i]
        step = node if odd else ball.step[node]
        for found in _row(graph, ahead, node):
            if found != graph.root:
                high = _take(graph, ball, flag, rule, limit, other, found, step, high)
        if _holds_root(graph, ahead, node):
            high = _take(graph, ball, flag, rule, limit, other, graph.root, step, high)
    number[_LOW], number[_HIGH] = end, high
    cost = 0
    for i in range(end, high):
        cost += _size(graph, ahead, ball.queue[i])
    number[_COST] = cost
    return True


@_compiled
def _may_meet(ahead, back):
    if ahead.number[_LOW] == ahead.number[_HIGH]:
        return False
    if back.number[_LOW] < back.number[_HIGH]:
        return True
    if ahead.number[_DEPTH] == 0:
        return back.number[_HIGH] > 1
    if ahead.number[_DEPTH] == 1:
        for i in range(ahead.number[_LOW], ahead.number[_HIGH]):
            if back.at[ahead.queue[i]] != 0:
                return True
    return False


@_compiled
def _seed(graph, ahead, back):
    """Only the next agents stay in the ball; returns the shortest way round through one that `back` has reached already."""
    number = ahead.number
    for i in range(number[_LOW]):
        ahead.at[ahead.queue[i]] = 0
    number[_SEEDS], number[_SEEDS_END] = number[_LOW], number[_HIGH]
    around = _NEVER
    for i in range(number[_LOW], number[_HIGH]):
        at = back.at[ahead.queue[i]]
        if at != 0:
            around = min(around, at + 1)
    return around


@_compiled
def _meet(graph, ahead, back, last, flag, ledger, first):
    _begin(graph, ahead, True, last)
    _begin(graph, back, False, graph.root)
    kept = 0
    while _may_meet(ahead, back):
        back_open = back.number[_LOW] < back.number[_HIGH]
        forward = not back_open or ahead.number[_COST] <= back.number[_COST]
        spare = kept + (back.number[_COST] if first and forward else 0)
        if forward and ahead.number[_DEPTH] == 1:
            if not _grow(graph, ahead, True, flag, ledger, _FRESH, 0, back, spare):
                return _SPENT
            around = _seed(graph, ahead, back)
            if around < _NEVER:
                return around
            continue
        side = ahead if forward else back
        if not _grow(graph, side, forward, flag, ledger, _WIDE, 0, back, spare):
            return _SPENT
        if ahead.number[_DEPTH] > 1:
            other = back if forward else ahead
            for i in range(side.number[_LOW], side.number[_HIGH]):
                if other.at[side.queue[i]] != 0:
                    return ahead.number[_DEPTH] + back.number[_DEPTH]
        if first and forward and ahead.number[_DEPTH] > 2:
            for i in range(ahead.number[_LOW], ahead.number[_HIGH]):
                kept += _size(graph, False, ahead.queue[i])
    return _NEVER


@_compiled
def _trace(graph, ahead, back, flag, ledger, limit):
    """Go on from `back` in place. What it held before is given by the numbers that the caller saved; see `_untrace`."""
    number = back.number
    end = number[_HIGH]
    high = end
    cost = 0
    for i in range(number[_LOW], end):
        node = back.queue[i]
        if ahead.at[node] != 0 and ahead.at[node] - 1 + number[_DEPTH] <= limit:
            back.queue[high] = node
            high += 1
            cost += _size(graph, False, node)
    number[_LOW], number[_HIGH], number[_COST], number[_FULL] = end, high, cost, high
    while number[_LOW] < number[_HIGH] and number[_DEPTH] < limit - 2:
        if not _grow(graph, back, False, flag, ledger, _INSIDE, limit, ahead, 0):
            return False
    return True


@_compiled
def _untrace(back, saved):
    for i in range(back.number[_FULL], back.number[_HIGH]):
        back.at[back.queue[i]] = 0
    back.number[:] = saved


@_compiled
def _sorted(graph, nodes):
    keys = np.empty(nodes.size, np.int64)
    for i in range(nodes.size):
        keys[i] = _key(graph, nodes[i])
    return nodes[np.argsort(keys)]


@_compiled
def _first_steps(graph, ahead, back, around):
    """The next agents that give the shortest way round, by name."""
    low, high = ahead.number[_SEEDS], ahead.number[_SEEDS_END]
    count = 0
    which = np.empty(high - low, np.int32)
    for i in range(low, high):
        if back.at[ahead.queue[i]] == around - 1:
            which[count] = ahead.queue[i]
            count += 1
    return _sorted(graph, which[:count])


@_compiled
def _children(graph, agent, flag, kids, ledger):
    """Fill `kids` with the agents that may come next; returns how many, or _SPENT."""
    cost = _size(graph, True, agent)
    if cost > ledger[_LEFT]:
        return _SPENT
    ledger[_LEFT] -= cost
    events = _row(graph, True, agent)
    cost = 0
    for event in events:
        cost += _size(graph, True, event)
    if cost > ledger[_LEFT]:
        return _SPENT
    ledger[_LEFT] -= cost
    count = 0
    for event in events:
        for child in _row(graph, True, event):
            if child != graph.root and flag[child] == 0:
                flag[child] = _SEEN
                kids[count] = child
                count += 1
    for i in range(count):
        flag[kids[i]] = 0
    return count


@_compiled
def _bound(graph, back, path_n, known, least, flag, kids, ledger, agent):
    """Returns (length, next agents by name); the length is _SPENT where the visits do not reach."""
    count = _children(graph, agent, flag, kids, ledger)
    if count == _SPENT:
        return _SPENT, kids[:0]
    beyond = known + 2 if known < _NEVER else _NEVER
    best, chosen, sure = _NEVER, 0, True
    for i in range(count):
        at = back.at[kids[i]]
        length = max(least, 2 * path_n + at - 1) if at != 0 else max(least, beyond)
        if length < best:
            best, chosen, sure = length, 0, True
        if length == best:
            kids[chosen] = kids[i]
            chosen += 1
            sure = sure and at != 0
    if not sure or best >= _NEVER:
        return best, kids[:0]
    return best, _sorted(graph, kids[:chosen])


@_compiled
def _deepen(graph, ahead, back, saved, flag, ledger, goal):
    """Returns what is known now, or _SPENT."""
    _untrace(back, saved)
    a, b = ahead.number, back.number
    while a[_DEPTH] + b[_DEPTH] < goal and a[_LOW] < a[_HIGH] and b[_LOW] < b[_HIGH]:
        forward = a[_COST] <= b[_COST]
        if not _grow(graph, ahead if forward else back, forward, flag, ledger, _FRESH, 0, back, 0):
            return _SPENT
    known = goal if a[_LOW] < a[_HIGH] and b[_LOW] < b[_HIGH] else _NEVER
    saved[:] = b
    return known if _trace(graph, ahead, back, flag, ledger, known) else _SPENT


@_compiled
def _flagged(flag, nodes, value):
    for node in nodes:
        flag[node] |= value


@_compiled
def _unflagged(flag, nodes):
    for node in nodes:
        flag[node] = 0


@_compiled
def _larger(array, used, need):
    """The array, or a longer copy, with room for `need` more rows after `used`."""
    if used + need <= array.shape[0]:
        return array
    grown = np.empty((2 * (used + need), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


@_compiled
def _step_on(graph, back, pool, offset, length, child):
    """Lead the path at `offset` on over the child to the root; returns the loop's length, 0 where it comes back to the path."""
    at = offset + length
    pool[at] = child
    at += 1
    if back.at[child] == 0:
        return 0
    step = back.step[child]
    while step != graph.root:
        for i in range(offset, offset + length):
            if pool[i] == step:
                return 0
        pool[at] = step
        at += 1
        step = back.step[step]
    return at - offset


@_compiled
def _less(graph, pool, one, two):
    if one[_LENGTH] != two[_LENGTH]:
        return one[_LENGTH] < two[_LENGTH]
    first = one[_LOOP] if one[_LOOP_N] else one[_PATH]
    second = two[_LOOP] if two[_LOOP_N] else two[_PATH]
    n, m = max(one[_LOOP_N], one[_PATH_N]), max(two[_LOOP_N], two[_PATH_N])
    n_all, m_all = n + (one[_TAIL] != _NO_TAIL), m + (two[_TAIL] != _NO_TAIL)
    for i in range(min(n_all, m_all)):
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
        if not _less(graph, pool, branches[branch], branches[heap[parent]]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = branch


@_compiled
def _heap_pop(graph, pool, branches, heap, size):
    top, moved = heap[0], heap[size - 1]
    size -= 1
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _less(graph, pool, branches[heap[child + 1]], branches[heap[child]]):
            child += 1
        if not _less(graph, pool, branches[heap[child]], branches[moved]):
            break
        heap[at] = heap[child]
        at = child
    if size > 0:
        heap[at] = moved
    return top


@_compiled
def _resolve(graph, ahead, back, last, flag, ledger):
    """Returns the length of the shortest way round from `last`, and the next agents that give it. Both balls are left filled."""
    before = ledger[_LEFT]
    around = _meet(graph, ahead, back, last, flag, ledger, False)
    if 0 < around < _NEVER and not _trace(graph, ahead, back, flag, ledger, around):
        around = _SPENT
    ledger[_SEARCHING] += before - ledger[_LEFT]
    if 0 < around < _NEVER:
        return around, _first_steps(graph, ahead, back, around)
    return around, ahead.queue[:0]


@_compiled
def _run(graph, scratch, ledger, max_loops):
    """The loops as spans (offset, length) of a pool of nodes; how many; and how the search ended."""
    ahead, back, once_ahead, once_back, flag, _, kids = scratch
    pool = np.empty(256, np.int32)
    branches = np.empty((16, 11), np.int64)
    heap = np.empty(16, np.int32)
    spans = np.empty((max_loops, 2), np.int64)
    found, used, made, waiting = 0, 0, 0, 0

    flag[graph.root] = _SHUT
    known = _meet(graph, ahead, back, graph.root, flag, ledger, True)
    flag[graph.root] = 0
    if known == _NEVER:
        return pool, spans, found, COMPLETE
    if known == _SPENT:
        return pool, spans, found, NOT_VERIFIED
    saved = back.number.copy()
    if not _trace(graph, ahead, back, flag, ledger, known):
        return pool, spans, found, NOT_VERIFIED
    which = _first_steps(graph, ahead, back, known)[: max_loops + 1]
    pool = _larger(pool, used, which.size + 1)
    pool[0] = graph.root
    pool[1 : 1 + which.size] = which
    used = 1 + which.size
    root = np.array([known, 0, 1, 0, 1, 1, which.size, 0, 0, _key(graph, which[0]), made], np.int64)
    branches[0] = root
    made += 1
    _heap_push(graph, pool, branches, heap, waiting, 0)
    waiting += 1

    while waiting:
        at = _heap_pop(graph, pool, branches, heap, waiting)
        waiting -= 1
        branch = branches[at].copy()
        path, path_n = branch[_PATH], branch[_PATH_N]
        again, search = False, False
        if branch[_LOOP_N]:
            if found == max_loops:
                return pool, spans, found, MORE_LOOPS
            loop, loop_n = branch[_LOOP], branch[_LOOP_N]
            spans[found, 0], spans[found, 1] = loop, loop_n
            found += 1
            branches = _larger(branches, made, loop_n)
            heap = _larger(heap, waiting, loop_n + 1)
            # New branches take fresh rows; `made` counts pushes, so that it is at least the number of rows given out.
            for end in range(path_n, loop_n + 1 - 1):
                fresh = made
                tail = _key(graph, pool[loop + end + 1]) + 1 if end + 1 < loop_n else _NO_TAIL
                length = 2 * loop_n if end + 1 < loop_n else 2 * loop_n + 2
                shut = loop + end + 1 if end + 1 < loop_n else loop
                branches[fresh] = np.array([length, loop, end + 1, shut, 1, 0, 0, 0, 0, tail, made], np.int64)
                made += 1
                _heap_push(graph, pool, branches, heap, waiting, fresh)
                waiting += 1
            shuts_n = branch[_SHUTS_N]
            pool = _larger(pool, used, shuts_n + 1)
            pool[used : used + shuts_n] = pool[branch[_SHUTS] : branch[_SHUTS] + shuts_n]
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
            pool[used : used + path_n] = pool[path : path + path_n]
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
            closed, shut = pool[path + 1 : path + path_n], pool[branch[_SHUTS] : branch[_SHUTS] + branch[_SHUTS_N]]
            _flagged(flag, closed, _CLOSED)
            _flagged(flag, shut, _SHUT)
            before = ledger[_LEFT]
            bound, which = _bound(graph, back, path_n, known, branch[_LENGTH], flag, kids, ledger, pool[path + path_n - 1])
            ledger[_BOUNDING] += before - ledger[_LEFT]
            _unflagged(flag, closed)
            _unflagged(flag, shut)
            if bound == _SPENT:
                return pool, spans, found, WALK_LIMITED
            if bound < _NEVER and (which.size or bound > branch[_LENGTH]):
                which = which[: max_loops + 1 - found]
                pool = _larger(pool, used, which.size)
                pool[used : used + which.size] = which
                branch[_LENGTH], branch[_WHICH], branch[_WHICH_N] = bound, used, which.size
                used += which.size
                again = True
            elif bound < _NEVER and ledger[_BOUNDING] <= 2 * ledger[_SEARCHING]:
                before = ledger[_LEFT]
                known = _deepen(graph, ahead, back, saved, flag, ledger, branch[_LENGTH])
                if known == _SPENT:
                    return pool, spans, found, WALK_LIMITED
                ledger[_BOUNDING] += before - ledger[_LEFT]
                again = True
            elif bound < _NEVER:
                search = True
        if search:
            closed, shut = pool[path + 1 : path + path_n], pool[branch[_SHUTS] : branch[_SHUTS] + branch[_SHUTS_N]]
            _flagged(flag, closed, _CLOSED)
            _flagged(flag, shut, _SHUT)
            around, which = _resolve(graph, once_ahead, once_back, pool[path + path_n - 1], flag, ledger)
            _unflagged(flag, closed)
            _unflagged(flag, shut)
            if around == _SPENT:
                return pool, spans, found, WALK_LIMITED
            if around < _NEVER:
                which = which[: max_loops + 1 - found]
                pool = _larger(pool, used, path_n + once_back.number[_DEPTH] + 2 + which.size)
                pool[used : used + path_n] = pool[path : path + path_n]
                branch[_LOOP], branch[_LOOP_N] = used, _step_on(graph, once_back, pool, used, path_n, which[0])
                used += branch[_LOOP_N]
                pool[used : used + which.size - 1] = which[1:]
                branch[_LENGTH] = around + 2 * (path_n - 1)
                branch[_WHICH], branch[_WHICH_N] = used, which.size - 1
                used += which.size - 1
                again = True
            _reset(once_ahead)
            _reset(once_back)
        if again:
            branch[_TAIL] = _NO_TAIL
            if branch[_WHICH_N] and not branch[_LOOP_N]:
                branch[_TAIL] = _key(graph, pool[branch[_WHICH]])
            branch[_MADE] = made
            branches = _larger(branches, made, 1)
            heap = _larger(heap, waiting, 1)
            branches[made] = branch
            _heap_push(graph, pool, branches, heap, waiting, made)
            made += 1
            waiting += 1
    return pool, spans, found, COMPLETE


def _new_ball(nodes: int, number: int = 7) -> _Ball:
    return _Ball(np.zeros(nodes, np.int32), np.empty(nodes, np.int32), np.empty(2 * nodes + 2, np.int32), np.zeros(number, np.int64))


class _Pool:
    """Scratch for searches that run side by side; what a search used is kept for the next one of the same size or less."""

    def __init__(self) -> None:
        self._free: list[_Scratch] = []
        self._lock = Lock()

    def take(self, nodes: int) -> _Scratch:
        with self._lock:
            scratch = self._free.pop() if self._free else None
        if scratch is not None and scratch.flag.size >= nodes:
            return scratch
        room = nodes + nodes // 8 + 64
        balls = [_new_ball(room) for _ in range(4)]
        return _Scratch(*balls, np.zeros(room, np.int8), np.zeros(room, np.int8), np.empty(room, np.int32))

    def give_back(self, scratch: _Scratch) -> None:
        with self._lock:
            self._free.append(scratch)


_pool = _Pool()


@_compiled
def _search(graph, scratch, max_loops, max_visits):
    ledger = np.zeros(3, np.int64)
    ledger[_LEFT] = max_visits
    for events, value in ((graph.hears, _HEARS), (graph.emits, _EMITS)):
        for event in events:
            graph.mark[event] |= value
    if graph.root < graph.nodes:
        for event in graph.behind_data[graph.behind_start[graph.root] :][: graph.behind_size[graph.root]]:
            graph.mark[event] |= _HEARD
        for event in graph.ahead_data[graph.ahead_start[graph.root] :][: graph.ahead_size[graph.root]]:
            graph.mark[event] |= _EMITTED
    pool, spans, found, ended = _run(graph, scratch, ledger, max_loops)
    for ball in (scratch.ahead, scratch.back, scratch.once_ahead, scratch.once_back):
        _reset(ball)
        ball.number[:] = 0
    scratch.flag[:0] = 0
    for events in (graph.hears, graph.emits):
        for event in events:
            graph.mark[event] = 0
    if graph.root < graph.nodes:
        for event in graph.behind_data[graph.behind_start[graph.root] :][: graph.behind_size[graph.root]]:
            graph.mark[event] = 0
        for event in graph.ahead_data[graph.ahead_start[graph.root] :][: graph.ahead_size[graph.root]]:
            graph.mark[event] = 0
    return pool, spans, found, ended, max_visits - ledger[_LEFT]


def search(question: Question) -> Answer:
    """The same answer as `reference.search`, compiled. Safe to call from several threads while the rows do not change."""
    rows, order = question.rows, question.order
    most = max((rows.nodes, question.root + 1, *(n + 1 for n in question.emits), *(n + 1 for n in question.hears)))
    scratch = _pool.take(most)
    try:
        graph = _Graph(
            question.root,
            rows.nodes,
            rows.ahead.start,
            rows.ahead.size,
            rows.ahead.data,
            rows.behind.start,
            rows.behind.size,
            rows.behind.data,
            np.array(question.emits, np.int32),
            np.array(question.hears, np.int32),
            scratch.mark,
            order.place,
            order.scope,
            order.readable,
        )
        pool, spans, found, ended, visits = _search(graph, scratch, question.max_loops, question.max_visits)
    finally:
        _pool.give_back(scratch)
    loops = [tuple(int(node) for node in pool[offset : offset + length]) for offset, length in spans[:found]]
    return Answer(loops, int(ended), int(visits))
