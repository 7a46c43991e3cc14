"""Delegation: what stands between an agent and handing work on, from facts alone (D-2 to D-9). Nothing here reads or writes.

The guards are asked in the order of `Guard`, and the first that fails answers. Each gets its facts from a resolver; one without a
resolver refuses, for a guard that is passed over protects nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from agentplat.domain.autonomy import Autonomy, reaches
from agentplat.domain.tickets import MOST_DEPTH

REFUSED = "Delegation refused: "
EXHAUSTED = f"{REFUSED}the delegator's budget envelope is exhausted (delegation cannot mint budget)."
OTHER_AGENT = f"{REFUSED}from_agent_id is not the agent of this run."
OTHER_TICKET = f"{REFUSED}parent_ticket_id is not the ticket that this run works on."
HIDDEN = "an agent outside your access"
"""Stands for an agent whose name the reader may not know."""


def too_deep(depth: int) -> str:
    """The refusal of a chain of this depth."""
    return f"{REFUSED}chain depth {depth} exceeds the cap of {MOST_DEPTH}."


def came_back(way: Sequence[str]) -> str:
    """The refusal of a way that ends where it has been."""
    return f"{REFUSED}cycle detected ({' → '.join(way)})."


def above_delegator(delegate: Autonomy, delegator: Autonomy) -> str:
    """The refusal of a delegate that acts more freely than whoever delegates."""
    return f'{REFUSED}a delegate cannot run "{delegate.value}" above the delegator ceiling "{delegator.value}".'


def no_parent(named: str) -> str:
    """The refusal of a parent that is not there, or not in this workspace: the two are one answer."""
    return f"{REFUSED}parent ticket {named} does not exist."


class Guard(StrEnum):
    """What can refuse a delegation, in the order that it is asked."""

    DEPTH = "depth"
    CYCLE = "cycle"
    AUTONOMY = "autonomy"
    BUDGET = "budget"


STRUCTURE = (Guard.DEPTH, Guard.CYCLE)
"""The guards of a delegation by a person, who has neither a level of autonomy nor a budget to delegate from."""


class Unresolved(Exception):
    """A resolver cannot tell what its guard goes by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """How far the two act by themselves in the space."""

    delegator: Autonomy
    delegate: Autonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolvers:
    """How the guards come to their facts: asked when its guard is and not before; None where there is no way to them.

    depth: how often the work was delegated in a row so far. cycle: the way from where the delegate had the work before up to the
    delegate, in names that the reader may know; None where it never had it. autonomy: the levels of both. budget: whether the
    delegator has anything left of all that it is charged to. Each may raise Unresolved.
    """

    depth: Callable[[], int] | None = None
    cycle: Callable[[], Sequence[str] | None] | None = None
    autonomy: Callable[[], Levels] | None = None
    budget: Callable[[], bool] | None = None


def _depth(resolve: Callable[[], int]) -> str | None:
    depth = resolve() + 1
    return too_deep(depth) if depth > MOST_DEPTH else None


def _cycle(resolve: Callable[[], Sequence[str] | None]) -> str | None:
    way = resolve()
    return None if way is None else came_back(way)


def _autonomy(resolve: Callable[[], Levels]) -> str | None:
    levels = resolve()
    return None if reaches(levels.delegator, levels.delegate) else above_delegator(levels.delegate, levels.delegator)


def _budget(resolve: Callable[[], bool]) -> str | None:
    return None if resolve() else EXHAUSTED


def _asked(guard: Guard, given: Resolvers) -> str | None:
    """What a guard says. Raises Unresolved."""
    match guard:
        case Guard.DEPTH if given.depth is not None:
            return _depth(given.depth)
        case Guard.CYCLE if given.cycle is not None:
            return _cycle(given.cycle)
        case Guard.AUTONOMY if given.autonomy is not None:
            return _autonomy(given.autonomy)
        case Guard.BUDGET if given.budget is not None:
            return _budget(given.budget)
    raise Unresolved


def refusal(guards: Sequence[Guard], given: Resolvers) -> str | None:
    """What the first guard that fails says, word for word; None where all pass."""
    for guard in Guard:
        if guard not in guards:
            continue
        try:
            said = _asked(guard, given)
        except Unresolved:
            return f"{REFUSED}the {guard.value} guard cannot be evaluated."
        if said is not None:
            return said
    return None


Key = tuple[str, int]
"""Names a link: ``run`` or ``ticket``, and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A run or a ticket that work went through.

    agents: who had the work there, the last first. depth: how often it was delegated until then, as a ticket recorded it. before:
    what the work came from, and whether a delegation led from there to here.
    """

    agents: tuple[int, ...]
    depth: int = 0
    before: Mapping[Key, bool] = field(default_factory=dict)


Lineage = Mapping[Key, Link]
"""All that some work came from: whatever a link comes from is a link too, unless nothing is known of it."""


def depth_of(lineage: Lineage) -> int:
    """How often work was delegated in a row on the way to its end, on the way with most delegations (D-5).

    Raises Unresolved where the lineage goes round, which no order of making things can lead to.
    """
    found: dict[Key, int] = {}
    try:
        for key in TopologicalSorter({key: link.before.keys() for key, link in lineage.items()}).static_order():
            link = lineage.get(key)
            if link is not None:
                found[key] = max([link.depth, *(found[one] + hop for one, hop in link.before.items() if one in found)])
    except CycleError as error:
        raise Unresolved from error
    return max(found.values(), default=0)


def way_from(lineage: Lineage, end: Key, agent_id: int) -> tuple[int, ...] | None:
    """The shortest way from where an agent had the work to the end of the lineage; None where it never had it."""
    waiting: list[tuple[Key, tuple[int, ...]]] = [(end, ())]
    known = {end}
    for key, later in waiting:
        link = lineage.get(key)
        if link is None:
            continue
        way = later
        for agent in link.agents:
            way = way if way[:1] == (agent,) else (agent, *way)
            if agent == agent_id:
                return way
        # The list grows while it is gone through: breadth first, so that the first way found is a shortest one.
        new = [one for one in link.before if one not in known]
        known.update(new)
        waiting.extend((one, way) for one in new)
    return None
