"""Scopes and references as the platform keeps them: texts that were checked where they came in.

The graph service owns the grammar of names; `loop_check` applies it at the edge. Behind the edge a scope is ``*``, ``acme`` or
``acme/platform``, and neither part holds a ``/`` or ``:``, which is all that the functions here rely on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

INSTALLATION = "*"


def contains(outer: str, inner: str) -> bool:
    """Whether the inner scope is the outer one or lies below it."""
    return outer in (INSTALLATION, inner) or inner.startswith(f"{outer}/")


def within_any(scope: str, outers: Iterable[str]) -> bool:
    """Whether one of the outer scopes contains the scope."""
    return any(contains(outer, scope) for outer in outers)


def outermost(scopes: Iterable[str]) -> tuple[str, ...]:
    """The scopes without those that another one contains, sorted."""
    unique = set(scopes)
    return tuple(sorted(scope for scope in unique if not within_any(scope, unique - {scope})))


def within(scopes: Iterable[str], outer: str) -> tuple[str, ...]:
    """What of the scopes lies in another one: all of that, or the ones below it."""
    found = outermost(scopes)
    return (outer,) if within_any(outer, found) else tuple(scope for scope in found if contains(outer, scope))


@dataclass(frozen=True, slots=True)
class Ref:
    """A name within a scope: an agent or a person."""

    scope: str
    name: str

    @property
    def text(self) -> str:
        """``acme/platform:developer``."""
        return f"{self.scope}:{self.name}"

    def __str__(self) -> str:
        return self.text
