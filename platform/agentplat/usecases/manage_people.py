"""People and their grants, looked after by the admins of their home scope."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Grant, Person, Role
from agentplat.domain.errors import Conflict
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.finding import managed_person

MAX_GRANTS = 500
"""Most grants of one person: they travel in the token of every call to the graph service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPerson:
    """A person with their grants, sorted."""

    person: Person
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagePeople:
    """Adds people, grants and revokes roles, lists. A person who is not the caller's to manage is not there for them."""

    store: Store

    def add(self, access: Access, ref: Ref) -> None:
        """Add a person without grants. Raises AccessDenied, Conflict where the name is taken, StoreUnavailable."""
        access.demand(Role.ADMIN, ref.scope)
        with self.store.writing() as work:
            if work.people.add(ref, now_ms()) is None:
                raise Conflict(f"there is a person {ref} already; choose another name")
            work.acts.record(now_ms(), access.person, "add person", ref, {})

    def grant(self, access: Access, ref: Ref, grant: Grant) -> bool:
        """Whether the grant is new. The caller must be admin of the person's home scope and of the granted one.

        Raises NotFound, AccessDenied, Conflict where the person has too many grants, StoreUnavailable.
        """
        with self.store.writing() as work:
            person = managed_person(work, access, ref)
            access.demand(Role.ADMIN, grant.scope)
            if len(work.people.grants(person)) >= MAX_GRANTS:
                raise Conflict(f"{ref} has {MAX_GRANTS} grants already; grant a wider scope, or revoke some")
            added = work.people.grant(person, grant)
            if added:
                work.acts.record(now_ms(), access.person, "grant", ref, {"role": grant.role.value, "scope": grant.scope})
            return added

    def revoke(self, access: Access, ref: Ref, grant: Grant) -> bool:
        """Whether there was such a grant. Raises NotFound, AccessDenied, StoreUnavailable."""
        with self.store.writing() as work:
            person = managed_person(work, access, ref)
            access.demand(Role.ADMIN, grant.scope)
            taken = work.people.revoke(person, grant)
            if taken:
                work.acts.record(now_ms(), access.person, "revoke", ref, {"role": grant.role.value, "scope": grant.scope})
            return taken

    def page(self, access: Access, after: Ref | None, size: int) -> list[KnownPerson]:
        """The people of the scopes that the caller is admin of, by scope, then name, from behind `after`. Raises StoreUnavailable.

        Their grants on other scopes are left out.
        """
        with self.store.reading() as work:
            found = work.people.page(access.scopes_with(Role.ADMIN), after, size)
            return [_known(access, person, work.people.grants(person)) for person in found]

    def one(self, access: Access, ref: Ref) -> KnownPerson:
        """One person. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            person = managed_person(work, access, ref)
            return _known(access, person, work.people.grants(person))


def _known(access: Access, person: Person, grants: frozenset[Grant]) -> KnownPerson:
    return KnownPerson(person=person, grants=tuple(sorted(grant for grant in grants if access.may(Role.ADMIN, grant.scope))))
