"""Ending a session at the pages, so that whoever copied its cookie has nothing."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.times import now_ms
from agentplat.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession:
    """Remembers sessions that were ended, on the server and for all of its processes."""

    store: Store

    def __call__(self, session: str, until: int) -> None:
        """End the session with this hash from the next request on. until: when it would have ended by itself, in milliseconds.

        Raises StoreUnavailable; the session then goes on.
        """
        with self.store.writing() as work:
            work.people.end_session(session, until, now_ms())
