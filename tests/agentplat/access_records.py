"""People with grants, straight in the store."""

from __future__ import annotations

from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.scopes import Ref
from agentplat.store.port import Store

from tests.agentplat.records import person


def access(store: Store, name: str, *grants: tuple[Role, str]) -> Access:
    """Somebody of this name, acting with these grants."""
    scope, _, called = name.partition(":")
    with store.writing() as work:
        who = person(work, Ref(scope, called).name, scope)
    return Access(who, frozenset(Grant(role, where) for role, where in grants))
