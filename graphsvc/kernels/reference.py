"""The search in plain Python: the law that the fast kernel is held to.

A best-first partition of the loops through the root after Lawler (1972). A *branch* (path, shut) stands for the loops that begin
with `path` and whose next agent is not in `shut`. The branch whose bound (length, then names) is smallest is looked at first:
either its bound rises, or its best loop is found. What a found loop leaves over falls apart into new branches. Distances count
incidences, two for each hop; levels are charged whole before they are read, so that no order of rows can change an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import Protocol

import numpy as np

from graphsvc.kernels.rows import COMPLETE, MORE_LOOPS, NOT_VERIFIED, WALK_LIMITED, Answer, Question

NEVER = 1 << 40


class View(Protocol):
    """Rows of the graph as it will be; sizes are known without looking at the incidences."""

    def ahead(self, node: int) -> list[int]:
        """Events that an agent emits; listeners of an event."""

    def behind(self, node: int) -> list[int]:
        """Events that an agent hears; emitters of an event."""

    def ahead_size(self, node: int) -> int:
        """How many incidences `ahead` would look at."""

    def behind_size(self, node: int) -> int:
        """How many incidences `behind` would look at."""


class Overlay:
    """A question's graph, its root's stored rows replaced by the proposed ones."""

    def __init__(self, question: Question) -> None:
        rows, root = question.rows, question.root
        self._rows, self._root = rows, root
        self._own: dict[bool, list[int]] = {True: question.emits.tolist(), False: question.hears.tolist()}
        self._now = {True: set(self._own[False]), False: set(self._own[True])}  # events whose row must hold the root
        self._was = {ahead: set(self._stored(not ahead, root)) for ahead in (True, False)}

    def _stored(self, ahead: bool, node: int) -> list[int]:
        table = self._rows.ahead if ahead else self._rows.behind
        return [] if node >= self._rows.nodes else [int(value) for value in table.row(node)]

    def _row(self, ahead: bool, node: int) -> list[int]:
        if node == self._root:
            return self._own[ahead]
        row = self._stored(ahead, node)
        if node in self._was[ahead]:
            row.remove(self._root)
        return [*row, self._root] if node in self._now[ahead] else row

    def _size(self, ahead: bool, node: int) -> int:
        if node == self._root:
            return len(self._own[ahead])
        stored = 0 if node >= self._rows.nodes else len((self._rows.ahead if ahead else self._rows.behind).row(node))
        return stored - (node in self._was[ahead]) + (node in self._now[ahead])

    def ahead(self, node: int) -> list[int]:
        """Events that an agent emits; listeners of an event."""
        return self._row(True, node)

    def behind(self, node: int) -> list[int]:
        """Events that an agent hears; emitters of an event."""
        return self._row(False, node)

    def ahead_size(self, node: int) -> int:
        """How many incidences `ahead` would look at."""
        return self._size(True, node)

    def behind_size(self, node: int) -> int:
        """How many incidences `behind` would look at."""
        return self._size(False, node)


class _Spent(Exception):
    """The next step would take more visits than are left."""


class _Ball:
    """Nodes by their distance from one end, and the level that grows next. `step`: the first agent by name towards that end."""

    def __init__(self, row: Callable[[int], list[int]], size: Callable[[int], int], level: list[int], depth: int = 0) -> None:
        self.row, self.size, self.level, self.depth = row, size, level, depth
        self.at = dict.fromkeys(level, depth)
        self.step: dict[int, int] = {}

    def cost(self) -> int:
        return sum(map(self.size, self.level))


def _may_meet(ahead: _Ball, back: _Ball) -> bool:
    """Whether growing can still make the two meet. Until its second level, `ahead` may run into a `back` that is full grown."""
    if not ahead.level or back.level:
        return bool(ahead.level)
    return len(back.at) > 1 if ahead.depth == 0 else ahead.depth == 1 and any(event in back.at for event in ahead.level)


class _Search:
    def __init__(self, view: View, question: Question) -> None:
        self.view, self.root, self.order = view, question.root, question.order
        self.left = question.max_visits
        self.bounding = self.searching = 0  # visits spent on bounds, and on searches of single branches

    def key(self, agent: int) -> int:
        return -1 if agent == self.root else self.order.key(agent)

    def spend(self, visits: int, kept: int = 0) -> None:
        if visits + kept > self.left:
            raise _Spent
        self.left -= visits

    def grow(self, ball: _Ball, allowed: Callable[[int, int], bool], kept: int = 0) -> None:
        """One level more. Of several ways to a node, the one whose first agent is first by name is kept."""
        self.spend(ball.cost(), kept)
        ball.depth += 1
        level = []
        for node in ball.level:
            step = node if ball.depth % 2 else ball.step[node]
            for found in ball.row(node):
                if found not in ball.at:
                    if allowed(found, ball.depth):
                        ball.at[found], ball.step[found] = ball.depth, step
                        level.append(found)
                elif ball.at[found] == ball.depth and self.key(step) < self.key(ball.step[found]):
                    ball.step[found] = step
        ball.level = level

    def meet(self, path: tuple[int, ...], shut: frozenset[int], *, first: bool = False) -> tuple[int, _Ball, _Ball]:
        """Grow from the path's last agent and from the root, the cheaper side first, until the two meet.

        Returns the length of the shortest way round from the last agent back to the root, NEVER where there is none, and the
        two balls. The path's agents are closed, and those of `shut` as the next agent. In the first search so many visits are
        kept back that the loop can be written out whenever a level meets.
        """
        closed, root, view = set(path) - {self.root}, self.root, self.view
        ahead, back = _Ball(view.ahead, view.ahead_size, [path[-1]]), _Ball(view.behind, view.behind_size, [root])
        kept = 0
        while _may_meet(ahead, back):
            side = ahead if not back.level or ahead.cost() <= back.cost() else back
            if side is ahead and ahead.depth == 1:
                self.grow(
                    ahead, lambda found, _: found != root and found not in closed and found not in shut, kept + back.cost() * first
                )
                ahead.at = dict.fromkeys(ahead.level, 2)
                met = [2 + back.at[node] for node in ahead.level if node in back.at]
            else:
                self.grow(side, lambda found, _: found not in closed, kept + (back.cost() if first and side is ahead else 0))
                met = [ahead.depth + back.depth for node in side.level if node in ahead.at and node in back.at and ahead.depth > 1]
                if first and side is ahead and ahead.depth > 2:
                    kept += sum(map(view.behind_size, ahead.level))
            if met:
                return min(met), ahead, back
        return NEVER, ahead, back

    def trace(self, ahead: _Ball, back: _Ball, limit: int) -> _Ball:
        """Go on from `back`, but only to nodes of `ahead` that lie on a way round of at most `limit`."""
        inner = _Ball(
            back.row, back.size, [n for n in back.level if n in ahead.at and ahead.at[n] + back.depth <= limit], back.depth
        )
        inner.step = {node: back.step[node] for node in inner.level if node != self.root}
        while inner.level and inner.depth < limit - 2:
            self.grow(inner, lambda found, depth: found not in back.at and found in ahead.at and ahead.at[found] + depth <= limit)
        inner.at |= back.at
        inner.step |= back.step
        return inner

    def children(self, agent: int) -> set[int]:
        """The agents that an agent starts."""
        self.spend(self.view.ahead_size(agent))
        events = self.view.ahead(agent)
        self.spend(sum(map(self.view.ahead_size, events)))
        return {listener for event in events for listener in self.view.ahead(event)}

    def follow(self, path: tuple[int, ...], ball: _Ball) -> tuple[int, ...] | None:
        """The path led on to the root along the ball's steps, or None where they come back to the path."""
        length = len(path) - 1
        while (step := ball.step.get(path[-1])) != self.root:
            if step is None or step in path[:length]:
                return None
            path += (step,)
        return path

    def deepen(self, goal: int) -> None:
        """Know the distance to the root of every node on a way round of at most `goal`, or of every node that has one."""
        before = self.left
        while self.ahead.depth + self.back.depth < goal and self.ahead.level and self.back.level:
            self.grow(min(self.ahead, self.back, key=_Ball.cost), lambda found, _: found != self.root)
        self.known = goal if self.ahead.level and self.back.level else NEVER
        self.inner = self.trace(self.ahead, self.back, self.known)
        self.bounding += before - self.left

    def bound(self, path: tuple[int, ...], shut: frozenset[int], least: int) -> tuple[int, list[int]]:
        """The least length that a loop of this branch may have, and the next agents that may give it, by name.

        The list is empty where the next agent's distance is not known yet; the length is NEVER where the branch has no loop.
        """
        before = self.left
        beyond = self.known + 2 if self.known < NEVER else NEVER
        lengths = {
            child: max(least, 2 * len(path) + self.inner.at[child]) if child in self.inner.at else max(least, beyond)
            for child in self.children(path[-1]) - shut - set(path) - {self.root}
        }
        self.bounding += before - self.left
        best = min(lengths.values(), default=NEVER)
        which = [child for child, length in lengths.items() if length == best]
        return best, sorted(which, key=self.key) if all(child in self.inner.at for child in which) else []

    def resolve(self, path: tuple[int, ...], shut: frozenset[int]) -> tuple[int, list[int], tuple[int, ...]]:
        """The exact length of a branch's best loop, the next agents that give it, by name, and the loop of the first of them."""
        before = self.left
        around, ahead, back = self.meet(path, shut)
        inner = self.trace(ahead, back, around) if around < NEVER else back
        self.searching += before - self.left
        which = sorted((c for c, d in ahead.at.items() if d == 2 and inner.at.get(c) == around - 2), key=self.key)
        loop = self.follow((*path, which[0]), inner) if which else None
        return around + 2 * (len(path) - 1), which, loop or ()

    def loops(self) -> Iterator[tuple[int, ...]]:
        """Every loop of at least two agents, in order."""
        root, key = self.root, self.key
        before = self.left
        around, self.ahead, self.back = self.meet((root,), frozenset({root}), first=True)
        self.searching = before - self.left
        if around >= NEVER:
            return
        self.known, self.inner = around, self.trace(self.ahead, self.back, around)
        heap: list[tuple[int, list[int], int, tuple[int, ...], frozenset[int], list[int], tuple[int, ...]]] = []
        made = 0

        def push(
            length: int, low: list[int], path: tuple[int, ...], shut: frozenset[int], which: list[int], loop: tuple[int, ...]
        ) -> None:
            nonlocal made
            made += 1
            heappush(heap, (length, [key(agent) for agent in loop or path] + low, made, path, shut, which, loop))

        def push_next(length: int, path: tuple[int, ...], shut: frozenset[int], which: list[int]) -> None:
            push(length, [key(which[0])] if which else [], path, shut, which, ())

        first = sorted((c for c, d in self.ahead.at.items() if d == 2 and self.inner.at.get(c) == around - 2), key=key)
        push_next(around, (root,), frozenset({root}), first)
        while heap:
            length, _, _, path, shut, which, loop = heappop(heap)
            if loop:
                yield loop
                for at in range(len(path), len(loop) - 1):
                    push(2 * len(loop), [key(loop[at + 1]) + 1], loop[: at + 1], frozenset({loop[at + 1]}), [], ())
                push(2 * len(loop) + 2, [], loop, frozenset({root}), [], ())
                push_next(length if which else length + 2, path, shut | {loop[len(path)]}, which)
            elif which:
                found = self.follow((*path, which[0]), self.inner)
                if found and 2 * len(found) == length:
                    push(length, [], path, shut, which[1:], found)
                else:
                    length, which, found = self.resolve(path, shut)
                    if which:
                        push(length, [], path, shut, which[1:], found)
            else:
                bound, which = self.bound(path, shut, length)
                if which or length < bound < NEVER:
                    push_next(bound, path, shut, which)
                elif bound < NEVER and self.bounding <= 4 * self.searching:
                    # Bounds serve every branch, a search only one: they go first, until they have cost four times as much.
                    self.deepen(length)
                    push_next(length, path, shut, [])
                elif bound < NEVER:
                    length, which, found = self.resolve(path, shut)
                    if which:
                        push(length, [], path, shut, which[1:], found)


def search(question: Question, view: View | None = None) -> Answer:
    """The first `max_loops` loops through the root by length, then names, and how the search ended. The view may be given to
    count what is read."""
    run = _Search(view or Overlay(question), question)
    found: list[tuple[int, ...]] = []
    ended = COMPLETE
    try:
        for loop in run.loops():
            if len(found) == question.max_loops:
                ended = MORE_LOOPS
                break
            found.append(loop)
    except _Spent:
        ended = WALK_LIMITED if found else NOT_VERIFIED
    nodes, sizes = np.array([*chain.from_iterable(found)], np.int32), np.array([*map(len, found)], np.int32)
    return Answer(nodes, sizes, ended, question.max_visits - run.left)
