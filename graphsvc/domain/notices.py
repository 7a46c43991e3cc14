"""What is worth knowing beside loops: look-alike event names, and what to take out of a version to break its loops."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from graphsvc.domain.report import BreakingSet, Loop

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def look_alike(name: str) -> str:
    """A key that names share which differ only in case, in separators or in a plural s (G-18)."""
    words = (word for part in _WORD.findall(name) for word in _CAMEL.split(part))
    folded = (word.casefold() for word in words)
    return "".join(word[:-1] if len(word) > 2 and word.endswith("s") else word for word in folded)


def breaking_set(loops: Sequence[Loop]) -> BreakingSet | None:
    """Triggers and events of the published version whose removal breaks all these loops, none of which could be left out (G-19).

    A loop breaks when the hop out of the version, or the hop back into it, has lost all its events; the own-event loop when each
    of its events is gone on one of the two sides. Taking out less only ever mends loops, so that one pass that puts things back
    where it can leaves a set without anything needless. What serves the fewest loops is put back first, events before triggers.
    """
    if not loops:
        return None
    serves: defaultdict[tuple[bool, str], list[int]] = defaultdict(list)  # by whether it is a trigger, and name: places of loops
    for place, loop in enumerate(loops):
        for event in loop.hops[0].events or ():
            serves[False, event].append(place)
        for event in loop.hops[-1].events or ():
            serves[True, event].append(place)
    own = {place for place, loop in enumerate(loops) if loop.is_self}
    back: set[tuple[bool, str]] = set()
    mended: tuple[set[int], set[int]] = set(), set()  # places of loops whose hop out, and whose hop back, has an event again
    for item in sorted(serves, key=lambda item: (len(serves[item]), item)):
        is_trigger, name = item
        other = not is_trigger
        places = serves[item]
        if mended[other].isdisjoint(places) and not ((other, name) in back and not own.isdisjoint(places)):
            back.add(item)
            mended[is_trigger].update(set(places) - own)
    left = sorted(serves.keys() - back)
    return BreakingSet(
        tuple(name for is_trigger, name in left if is_trigger), tuple(name for is_trigger, name in left if not is_trigger)
    )
