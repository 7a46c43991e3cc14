"""Limits of a search, as named data."""

from __future__ import annotations

from dataclasses import dataclass

from graphsvc.domain.errors import InvalidInput, Violation

DEFAULT_MAX_LOOPS = 10
DEFAULT_MAX_VISITS = 1_000_000
DEFAULT_CHAIN_LIMIT = 8
"""Most hops in an event chain. Not the delegation depth and not the nesting of sub-agents, which are other limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """max_loops: most loops listed, at least 1. max_visits: most agent-event incidences looked at, at least 0.

    chain_limit: a loop with more agents than this is marked, as a chain stops before it comes round once.
    """

    max_loops: int = DEFAULT_MAX_LOOPS
    max_visits: int = DEFAULT_MAX_VISITS
    chain_limit: int = DEFAULT_CHAIN_LIMIT

    def __post_init__(self) -> None:
        for field, least in (("max_loops", 1), ("max_visits", 0), ("chain_limit", 1)):
            value = getattr(self, field)
            if value < least:
                remedy = f"use a whole number of at least {least}"
                raise InvalidInput([Violation(field=f"limits.{field}", reason=f"is {value}", remedy=remedy)])

    def as_json(self) -> dict[str, int]:
        """The limits as JSON values."""
        return {"max_loops": self.max_loops, "max_visits": self.max_visits, "chain_limit": self.chain_limit}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPolicy:
    """What a server applies: `default` where a request names no limit, `ceiling` as the most it may ask for (G-7)."""

    default: Limits
    ceiling: Limits

    def apply(self, max_loops: int | None, max_visits: int | None) -> Limits:
        """The limits for one request. Raises InvalidInput for a value below its least."""
        asked = Limits(
            max_loops=self.default.max_loops if max_loops is None else max_loops,
            max_visits=self.default.max_visits if max_visits is None else max_visits,
            chain_limit=self.default.chain_limit,
        )
        return Limits(
            max_loops=min(asked.max_loops, self.ceiling.max_loops),
            max_visits=min(asked.max_visits, self.ceiling.max_visits),
            chain_limit=asked.chain_limit,
        )
