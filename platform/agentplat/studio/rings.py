"""Loops as pictures: each agent once on a ring, each hop an arrow with its events. Geometry only; the template draws it.

The agents go down the right side and come back up the left one, at even distances, so that a ring of twenty can be read like one of
two. The picture runs the same way in every language, as the lines of names do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BOX_W, BOX_H = 152, 40
_GAP_X, _GAP_Y, _MARGIN = 176, 80, 20
_MOST_CHARACTERS = 18
_MOST_EVENT_CHARACTERS = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class RingAgent:
    """A box, by its centre. ref: None for an agent outside the reader's access. published: whether this is the one published."""

    x: float
    y: float
    ref: str | None
    scope: str
    name: str
    published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RingHop:
    """An arrow as an SVG path. events: None where the reader may not know them. label: what is written, at its place and anchor."""

    path: str
    x: float
    y: float
    anchor: str
    label: str
    events: tuple[str, ...] | None
    barrier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A loop as a picture. own: whether it is an agent that hears its own event."""

    width: float
    height: float
    agents: tuple[RingAgent, ...]
    hops: tuple[RingHop, ...]
    own: bool
    over: bool
    box_width: int = BOX_W
    box_height: int = BOX_H


Point = tuple[float, float]


def rings(body: Mapping[str, Any]) -> tuple[Ring, ...]:
    """A picture for each loop of a report, given as JSON values."""
    return tuple(_ring(loop) for loop in body["loops"])


def _ring(loop: Mapping[str, Any]) -> Ring:
    refs: Sequence[str | None] = loop["agents"]
    places = _places(len(refs))
    width = 2 * _MARGIN + 2 * BOX_W + _GAP_X if len(refs) > 1 else 2 * _MARGIN + 2 * BOX_W
    return Ring(
        width=width,
        height=max(y for _, y in places) + BOX_H / 2 + _MARGIN + 6,
        agents=tuple(_agent(ref, place, i == 0) for i, (ref, place) in enumerate(zip(refs, places, strict=True))),
        hops=tuple(_hop(i, places, hop) for i, hop in enumerate(loop["hops"])),
        own=len(refs) == 1,
        over=loop["over_chain_limit"],
    )


def _agent(ref: str | None, place: Point, published: bool) -> RingAgent:
    scope, _, name = ("", "", "") if ref is None else ref.partition(":")
    shown = (_cut(scope, _MOST_CHARACTERS + 6), _cut(name, _MOST_CHARACTERS))
    return RingAgent(x=place[0], y=place[1], ref=ref, scope=shown[0], name=shown[1], published=published)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def halves(text: str) -> tuple[str, ...]:
    """A text that is wider than a box as two lines, broken where its words come closest to even ones."""
    gaps = [i for i, character in enumerate(text) if character == " "]
    if len(text) <= _MOST_CHARACTERS or not gaps:
        return (text,)
    middle = min(gaps, key=lambda i: (abs(2 * i - len(text)), i))
    return text[:middle], text[middle + 1 :]


def _places(count: int) -> list[Point]:
    """The centres of the boxes in the order of the loop, from the upper left."""
    left, right = _MARGIN + BOX_W / 2, _MARGIN + BOX_W * 1.5 + _GAP_X
    top = _MARGIN + BOX_H / 2 + 10
    if count == 1:
        return [(_MARGIN + BOX_W / 2, top)]
    ups, downs = math.ceil(count / 2), count // 2
    shift = _GAP_Y / 2 * (ups - downs)
    going = [(right, top + shift + i * _GAP_Y) for i in range(downs)]
    coming = [(left, top + i * _GAP_Y) for i in range(ups - 1, 0, -1)]
    return [(left, top), *going, *coming]


def _hop(i: int, places: Sequence[Point], hop: Mapping[str, Any]) -> RingHop:
    start, end = places[i], places[(i + 1) % len(places)]
    path, (x, y), anchor = _arrow(start, end, len(places))
    events = None if hop["events"] is None else tuple(hop["events"])
    return RingHop(path=path, x=x, y=y, anchor=anchor, label=_label(events), events=events, barrier=hop["barrier"])


def _label(events: tuple[str, ...] | None) -> str:
    if not events:
        return "?"
    first = _cut(events[0], _MOST_EVENT_CHARACTERS)
    return first if len(events) == 1 else f"{first} +{len(events) - 1}"


def _arrow(start: Point, end: Point, count: int) -> tuple[str, Point, str]:
    """The path, where its label stands, and how that is anchored there."""
    (x, y), (u, v) = start, end
    if count == 1:
        right = x + BOX_W / 2
        return f"M{right} {y + 8} C{right + 60} {y + 60} {right + 60} {y - 70} {right} {y - 8}", (right + 54, y + 4), "start"
    if x == u:
        # Along a side: the label stands on the inside.
        step = BOX_H / 2 if v > y else -BOX_H / 2
        inward = -12 if v > y else 12
        return f"M{x} {y + step} L{u} {v - step}", (x + inward, (y + v) / 2 + 4), "end" if v > y else "start"
    across = BOX_W / 2 if u > x else -BOX_W / 2
    lift = -9 if u > x else 9
    middle = ((x + u) / 2, (y + v) / 2 + lift + (-9 if u > x else 19))
    return f"M{x + across} {y + lift} L{u - across} {v + lift}", middle, "middle"
