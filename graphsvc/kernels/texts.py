"""Names in bulk: which of them need no second look, and the order of those that belong together."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from graphsvc.kernels.rows import Longs

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


@numba.njit(cache=True, nogil=True)
def plain(data: Bytes, ends: Longs, most: int) -> Flags:
    """Whether each text is 1 to `most` printable ASCII characters without a space at either end."""
    found = np.empty(ends.size, np.bool_)
    first = 0
    for i in range(ends.size):
        end = ends[i]
        good = 0 < end - first <= most
        if good:
            good = data[first] != 32 and data[end - 1] != 32
            for at in range(first, end):
                good = good and 32 <= data[at] < 127
        found[i] = good
        first = end
    return found


@numba.njit(cache=True, nogil=True)
def _compared(data: Bytes, starts: Longs, ends: Longs, one: int, other: int) -> int:
    """Below, at or above 0 as one text comes before, is, or comes after another: UTF-8 sorts as its code points do."""
    i, j = starts[one], starts[other]
    while i < ends[one] and j < ends[other]:
        if data[i] != data[j]:
            return int(np.int64(data[i]) - np.int64(data[j]))
        i += 1
        j += 1
    return int((ends[one] - i) - (ends[other] - j))


@numba.njit(cache=True, nogil=True)
def order_within(data: Bytes, starts: Longs, ends: Longs, group_ends: Longs, order: Longs, repeats: Flags) -> bool:
    """Sort the texts of each group, the groups following one another: fill `order` with their places, and `repeats` with whether
    a group has a text twice. Returns whether any text has moved."""
    moved, first = False, 0
    for group in range(group_ends.size):
        end = group_ends[group]
        source = np.arange(first, end)
        target = np.empty_like(source)
        count, width = source.size, 1
        rising = True
        for i in range(1, count):
            rising = rising and _compared(data, starts, ends, source[i - 1], source[i]) < 0
        while width < count and not rising:
            for low in range(0, count, 2 * width):
                middle, high = min(low + width, count), min(low + 2 * width, count)
                i, j = low, middle
                for at in range(low, high):
                    if j == high or (i < middle and _compared(data, starts, ends, source[i], source[j]) <= 0):
                        target[at] = source[i]
                        i += 1
                    else:
                        target[at] = source[j]
                        j += 1
            source, target = target, source
            width *= 2
        repeats[group] = False
        for i in range(count):
            order[first + i] = source[i]
            moved = moved or source[i] != first + i
            if i and not rising and _compared(data, starts, ends, source[i - 1], source[i]) == 0:
                repeats[group] = True
        first = end
    return moved
