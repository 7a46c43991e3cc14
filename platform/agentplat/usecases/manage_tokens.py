"""Tokens of people: made once, shown once, revoked for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentplat.domain.access import Access, Person, Role, Token
from agentplat.domain.errors import Conflict, NotFound
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.domain.tokens import fingerprint, new_token
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import managed_person


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageTokens:
    """Everybody manages their own tokens. An admin manages those of a person of their scope whose grants all lie within it:
    otherwise a token would give its maker what they were never granted.
    """

    store: Store

    def make(
        self, access: Access, ref: Ref, name: str, lasts_ms: int | None, hand_over: Callable[[str], None] | None = None
    ) -> tuple[str, Token]:
        """A new token, which cannot be shown again. lasts_ms: how long it is valid, None for until it is revoked.

        hand_over: gets the token before it becomes valid; where that fails there is no token.
        Raises NotFound, Conflict where the person has a token of that name, StoreUnavailable.
        """
        secret, now = new_token(), now_ms()
        with self.store.writing() as work:
            person = _own_or_managed(work, access, ref)
            expires_at = None if lasts_ms is None else now + lasts_ms
            token = work.people.add_token(person, name, fingerprint(secret), now, expires_at)
            if token is None:
                raise Conflict(f"{ref} has, or had, a token named {name!r}; choose another name")
            work.acts.record(now, access.person, "make token", ref, {"token": name, "expires_at": expires_at})
            if hand_over is not None:
                hand_over(secret)
        return secret, token

    def revoke(self, access: Access, ref: Ref, name: str) -> None:
        """Make a token invalid for good. Raises NotFound, StoreUnavailable."""
        with self.store.writing() as work:
            person = _own_or_managed(work, access, ref)
            if not work.people.revoke_token(person, name, now_ms()):
                raise NotFound
            work.acts.record(now_ms(), access.person, "revoke token", ref, {"token": name})

    def all_of(self, access: Access, ref: Ref) -> list[Token]:
        """What is known of the person's tokens, oldest first. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            return work.people.tokens(_own_or_managed(work, access, ref))


def _own_or_managed(work: Work, access: Access, ref: Ref) -> Person:
    if access.person is not None and access.person.ref == ref:
        return access.person
    person = managed_person(work, access, ref)
    if not all(access.may(Role.ADMIN, grant.scope) for grant in work.people.grants(person)):
        raise NotFound
    return person
