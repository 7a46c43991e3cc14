"""Who may do what: roles on scopes, as they stand in tokens and in grants files (O-5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from graphsvc.domain.errors import AccessDenied, InvalidInput, Violation
from graphsvc.domain.names import Scope, parse_scope
from graphsvc.domain.redaction import Reader, reader_of

MAX_GRANTS = 1_000
"""Most grants of one caller."""


class Role(StrEnum):
    """What somebody is on a scope. Every role may read its scope."""

    VIEWER = "viewer"
    AUTHOR = "author"
    APPROVER = "approver"
    AUDITOR = "auditor"
    ADMIN = "admin"


_PUBLISHING = frozenset({Role.AUTHOR, Role.ADMIN})


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on a scope and everything below it."""

    role: Role
    scope: Scope

    def __str__(self) -> str:
        return f"{self.role.value}={self.scope.text}"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request. name: the subject of its token or certificate. reader: all that the caller may read."""

    name: str
    grants: tuple[Grant, ...]
    reader: Reader = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reader", reader_of(grant.scope for grant in self.grants))

    def reader_for(self, scopes: Collection[Scope]) -> Reader:
        """The reader of a request: the scopes it names, or all of the caller's where it names none.

        Raises AccessDenied when a scope is wider than the caller's grants; it says nothing about what exists there.
        """
        if not scopes:
            return self.reader
        asked = reader_of(scopes)
        if not asked.within(self.reader):
            raise AccessDenied("the scopes asked for are wider than the caller's grants")
        return asked

    def must_read(self, scope: Scope) -> None:
        """Raises AccessDenied unless some grant lets the caller read the scope."""
        if not self.reader.may_read(scope):
            raise AccessDenied("the agent's scope is outside the caller's grants")

    def must_publish(self, scopes: Iterable[Scope]) -> None:
        """Raises AccessDenied unless the caller is author or admin on every one of the scopes."""
        writable = reader_of(grant.scope for grant in self.grants if grant.role in _PUBLISHING)
        if not all(writable.may_read(scope) for scope in set(scopes)):
            raise AccessDenied("the caller is neither author nor admin on the scope of every agent that would change")


def _fault(field: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=field, reason=reason, remedy=remedy)])


def _role(text: object, field: str) -> Role:
    try:
        return Role(str(text))
    except ValueError:
        raise _fault(field, "is not a role", f"use one of {', '.join(Role)}") from None


def parse_grant(text: str, field: str = "grant") -> Grant:
    """``author=acme/platform`` as a grant. Raises InvalidInput."""
    role, mark, scope = text.partition("=")
    if not mark:
        raise _fault(field, "has no '='", "write ROLE=SCOPE, such as author=acme/platform or viewer='*'")
    return Grant(_role(role, field), parse_scope(scope, field))


def read_grants(value: object, field: str = "grants") -> tuple[Grant, ...]:
    """Grants from a list of {role, scope} mappings, as tokens and grants files carry them. Raises InvalidInput."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise _fault(field, "is not a list", "write a list of {role, scope}")
    if len(value) > MAX_GRANTS:
        raise _fault(field, f"has {len(value)} grants", f"use at most {MAX_GRANTS}")
    grants = []
    for i, entry in enumerate(value):
        if not isinstance(entry, Mapping) or set(entry) != {"role", "scope"}:
            raise _fault(f"{field}[{i}]", "is not a mapping of role and scope", "write {role: author, scope: acme/platform}")
        grants.append(Grant(_role(entry["role"], f"{field}[{i}].role"), parse_scope(entry["scope"], f"{field}[{i}].scope")))
    return tuple(grants)


EVERYBODY = Caller("anyone on this machine", (Grant(Role.ADMIN, Scope()),))
"""The caller of a server without tokens and certificates, which serves its own machine only."""
