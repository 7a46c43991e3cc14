"""Who may do what: roles granted on scopes (O-5, P-12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.errors import AccessDenied
from agentplat.domain.scopes import INSTALLATION, Ref, contains, outermost, within_any


class Role(StrEnum):
    """What a grant allows on its scope and everything below. Every role reads."""

    VIEWER = "viewer"
    AUTHOR = "author"
    APPROVER = "approver"
    AUDITOR = "auditor"
    ADMIN = "admin"


PUBLISHING = (Role.AUTHOR, Role.ADMIN)
"""The roles that publish; the graph service lets the same two."""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A role on a scope."""

    role: Role
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person or service that holds tokens. ref: their name in their home scope, whose admins look after them."""

    id: int
    ref: Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token; the token itself is shown once and never kept. Times in milliseconds since 1970, UTC."""

    id: int
    name: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class Access:
    """Whoever acts, with their present grants. person: None for the operator at the host, who acts through the command line."""

    person: Person | None
    grants: frozenset[Grant]

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that may be read, without those that another one contains, sorted."""
        return outermost(grant.scope for grant in self.grants)

    def may_read(self, scope: str) -> bool:
        """Whether some grant contains the scope."""
        return within_any(scope, (grant.scope for grant in self.grants))

    def scopes_in(self, scope: str) -> tuple[str, ...]:
        """What of a scope may be read: all of it, the parts below it that are granted, or nothing."""
        return (scope,) if self.may_read(scope) else tuple(granted for granted in self.scopes if contains(scope, granted))

    def visible(self, ref: Ref | None) -> Ref | None:
        """The reference, or None where its scope may not be read."""
        return ref if ref is not None and self.may_read(ref.scope) else None

    def covers(self, scopes: Iterable[str]) -> bool:
        """Whether every one of the scopes may be read."""
        return all(self.may_read(scope) for scope in scopes)

    def may(self, role: Role, scope: str) -> bool:
        """Whether a grant of the role contains the scope."""
        return within_any(scope, self.scopes_with(role))

    def scopes_with(self, role: Role) -> tuple[str, ...]:
        """The scopes that the role is granted on."""
        return outermost(grant.scope for grant in self.grants if grant.role is role)

    def may_publish(self, scope: str) -> bool:
        """Whether versions of agents of the scope may be published, retired and paused (P-12)."""
        return any(self.may(role, scope) for role in PUBLISHING)

    def demand_publishing(self, scope: str) -> None:
        """Raises AccessDenied unless agents of the scope may be published."""
        if not self.may_publish(scope):
            raise AccessDenied(Role.AUTHOR.value, scope)

    def demand_reading(self, scope: str) -> None:
        """Raises AccessDenied unless the scope may be read."""
        if not self.may_read(scope):
            raise AccessDenied(Role.VIEWER.value, scope)

    def demand(self, role: Role, scope: str) -> None:
        """Raises AccessDenied unless a grant of the role contains the scope."""
        if not self.may(role, scope):
            raise AccessDenied(role.value, scope)


OPERATOR = Access(None, frozenset({Grant(Role.ADMIN, INSTALLATION)}))
"""Whoever holds the host holds the database too, so the command line there needs no token."""
