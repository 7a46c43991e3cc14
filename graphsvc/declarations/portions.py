"""An input cut into portions, each of which is stored in one step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from graphsvc.columns import Columns, Longs, columns_of, joined

MOST_EVENTS = 1_000_000
"""Most events of a portion, whatever the number of its versions; a single version may have a thousand."""


def portions(parts: Iterable[Columns], most: int, most_events: int = MOST_EVENTS) -> Iterator[Columns]:
    """The versions of these parts in their order, at most so many at a time, and so many events where there are several.

    The same versions are cut alike, however they come in parts. There is a portion, an empty one, where there are no versions.
    """
    waiting: list[Columns] = []
    for part in parts:
        waiting.append(part)
        while _full(waiting, most, most_events):
            whole = joined(waiting)
            cut = _cut(whole, most, most_events)
            yield whole.taken(_range(0, cut))
            waiting = [whole.taken(_range(cut, whole.size))]
    yield joined(waiting) if waiting else columns_of([])


def _full(waiting: list[Columns], most: int, most_events: int) -> bool:
    """Whether there is more than one portion of it."""
    size, events = sum(part.size for part in waiting), sum(part.events.ends.size for part in waiting)
    return size > most or (events > most_events and size > 1)


def _range(first: int, end: int) -> Longs:
    return np.arange(first, end, dtype=np.int64)


def _cut(columns: Columns, most: int, most_events: int) -> int:
    """How many of the versions go into one portion."""
    return min(most, max(1, int(np.searchsorted(columns.ends, most_events, side="right"))), columns.size)
