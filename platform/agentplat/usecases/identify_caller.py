"""Telling who calls from a bearer token."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.errors import Unauthenticated
from agentplat.domain.times import now_ms
from agentplat.domain.tokens import PREFIX, fingerprint
from agentplat.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyCaller:
    """Looks tokens up on every request, so that a revoked token or grant counts from the next one on."""

    store: Store

    def __call__(self, token: str) -> Access:
        """The caller with their present grants. Raises Unauthenticated, StoreUnavailable."""
        if not token.startswith(PREFIX) or not token.isascii():
            raise Unauthenticated
        return self.holder(fingerprint(token))

    def holder(self, sha256: str, session: str | None = None) -> Access:
        """Whoever holds the token with this hash. session: the hash of one that was opened with it, which must not have been ended.

        Raises Unauthenticated, StoreUnavailable.
        """
        with self.store.reading() as work:
            person = work.people.holder(sha256, now_ms(), session)
            if person is None:
                raise Unauthenticated
            return Access(person, work.people.grants(person))
