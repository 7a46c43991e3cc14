"""What is worth knowing beside loops: look-alike event names, and what to take out of a version to break its loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
    ways = [(loop.is_self, frozenset(loop.hops[0].events or ()), frozenset(loop.hops[-1].events or ())) for loop in loops]
    events = {event for _, out, _ in ways for event in out}
    triggers = {trigger for _, _, back in ways for trigger in back}

    def uses(item: tuple[bool, str]) -> tuple[int, bool, str]:
        is_trigger, name = item
        return sum(name in (back if is_trigger else out) for _, out, back in ways), is_trigger, name

    def breaks(events: set[str], triggers: set[str]) -> bool:
        return all(out <= events | triggers if own else out <= events or back <= triggers for own, out, back in ways)

    if not ways:
        return None
    for is_trigger, name in sorted([(False, e) for e in events] + [(True, t) for t in triggers], key=uses):
        side = triggers if is_trigger else events
        side.discard(name)
        if not breaks(events, triggers):
            side.add(name)
    return BreakingSet(_sorted(triggers), _sorted(events))


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
