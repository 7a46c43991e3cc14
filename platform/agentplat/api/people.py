"""Routes of people, grants, tokens and recorded acts."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query, Response

from agentplat.api.agents import PageSize
from agentplat.api.callers import Caller, NamedRef, Served
from agentplat.api.models import (
    ActOut,
    ActsOut,
    GrantWire,
    NewTokenOut,
    PeopleOut,
    PersonIn,
    PersonOut,
    TokenIn,
    TokenOut,
    TokensOut,
)
from agentplat.domain.access import Access, Grant, Role
from agentplat.usecases.names import check_name, check_ref, check_scope

router = APIRouter(prefix="/v1", tags=["people"])

_DAY_MS = 24 * 60 * 60 * 1000


def _me(access: Access) -> PersonOut:
    grants = [GrantWire(role=grant.role, scope=grant.scope) for grant in sorted(access.grants)]
    return PersonOut(person="operator" if access.person is None else access.person.ref.text, grants=grants)


@router.get("/me")
def who_am_i(access: Caller) -> PersonOut:
    """The caller and all of their grants."""
    return _me(access)


@router.get("/people")
def list_people(served: Served, access: Caller, after: str | None = None, page_size: PageSize = 100) -> PeopleOut:
    """The people of the scopes that the caller is admin of, by home scope, then name."""
    begin = None if after is None else check_ref(after, "after")
    page = served.use_cases.manage_people.page(access, begin, page_size)
    following = page[-1].person.ref.text if len(page) == page_size else None
    return PeopleOut(people=[PersonOut.of(known) for known in page], next=following)


@router.post("/people", status_code=HTTPStatus.CREATED)
def add_person(served: Served, access: Caller, given: PersonIn) -> PersonOut:
    """Add a person, who has no grants yet."""
    ref = check_ref(given.person, "person")
    served.use_cases.manage_people.add(access, ref)
    return PersonOut.of(served.use_cases.manage_people.one(access, ref))


@router.get("/people/{ref}")
def read_person(served: Served, access: Caller, ref: NamedRef) -> PersonOut:
    """One person."""
    return PersonOut.of(served.use_cases.manage_people.one(access, ref))


@router.put("/people/{ref}/grants/{role}/{scope}")
def grant(served: Served, access: Caller, ref: NamedRef, role: Role, scope: Annotated[str, Path()]) -> PersonOut:
    """Grant a role on a scope."""
    served.use_cases.manage_people.grant(access, ref, Grant(role, check_scope(unquote(scope), "scope")))
    return PersonOut.of(served.use_cases.manage_people.one(access, ref))


@router.delete("/people/{ref}/grants/{role}/{scope}")
def revoke(served: Served, access: Caller, ref: NamedRef, role: Role, scope: Annotated[str, Path()]) -> PersonOut:
    """Take a grant away; it counts from the next request on."""
    served.use_cases.manage_people.revoke(access, ref, Grant(role, check_scope(unquote(scope), "scope")))
    return PersonOut.of(served.use_cases.manage_people.one(access, ref))


@router.get("/people/{ref}/tokens")
def list_tokens(served: Served, access: Caller, ref: NamedRef) -> TokensOut:
    """What is known of a person's tokens."""
    return TokensOut(tokens=[TokenOut.of(token) for token in served.use_cases.manage_tokens.all_of(access, ref)])


@router.post("/people/{ref}/tokens", status_code=HTTPStatus.CREATED)
def make_token(served: Served, access: Caller, ref: NamedRef, given: TokenIn) -> NewTokenOut:
    """Make a token; this answer is the only place where it is shown."""
    lasts_ms = None if given.lasts_days is None else given.lasts_days * _DAY_MS
    secret, token = served.use_cases.manage_tokens.make(access, ref, check_name(given.name, "name"), lasts_ms)
    return NewTokenOut(token=secret, **TokenOut.of(token).model_dump())


@router.delete("/people/{ref}/tokens/{name}", status_code=HTTPStatus.NO_CONTENT)
def revoke_token(served: Served, access: Caller, ref: NamedRef, name: Annotated[str, Path()]) -> Response:
    """Make a token invalid for good."""
    served.use_cases.manage_tokens.revoke(access, ref, check_name(unquote(name), "name"))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/acts")
def list_acts(
    served: Served, access: Caller, before: Annotated[int | None, Query(ge=1)] = None, page_size: PageSize = 100
) -> ActsOut:
    """Who did what in the scopes that the caller audits, newest first."""
    page = served.use_cases.list_acts(access, before, page_size)
    following = page[-1].id if len(page) == page_size else None
    return ActsOut(acts=[ActOut.of(act) for act in page], next=following)
