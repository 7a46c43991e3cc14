"""Grants as tokens, files and flags carry them."""

from __future__ import annotations

import pytest

from graphsvc.domain.errors import AccessDenied, InvalidInput
from graphsvc.domain.grants import MAX_GRANTS, Caller, Grant, Role, parse_grant, read_grants
from graphsvc.domain.names import Scope


def caller(*grants: str) -> Caller:
    return Caller("ada", tuple(map(parse_grant, grants)))


@pytest.mark.promise("O-5")
def test_a_grant_is_a_role_on_a_scope():
    assert parse_grant("author=acme/platform") == Grant(Role.AUTHOR, Scope("acme", "platform"))
    assert str(parse_grant("viewer=*")) == "viewer=*"
    assert read_grants([{"role": "admin", "scope": "*"}]) == (Grant(Role.ADMIN, Scope()),)


@pytest.mark.parametrize("text", ["owner=acme", "viewer", "=acme", "viewer=", "viewer=a/b/c", "viewer=a:b"])
def test_a_text_that_is_no_grant_is_refused(text: str):
    with pytest.raises(InvalidInput) as caught:
        parse_grant(text, "grant[0]")
    assert caught.value.violations[0].field.startswith("grant[0]")


@pytest.mark.parametrize(
    "value",
    [None, "viewer=*", {"role": "viewer"}, [None], [{}], [{"role": "viewer", "scope": "a", "x": 1}], [{"role": 1, "scope": "a"}]],
)
def test_a_value_that_holds_no_grants_is_refused(value: object):
    with pytest.raises(InvalidInput):
        read_grants(value)


def test_more_grants_than_anybody_needs_are_refused():
    grants = [{"role": "viewer", "scope": "acme"}] * MAX_GRANTS
    assert len(read_grants(grants)) == MAX_GRANTS
    with pytest.raises(InvalidInput):
        read_grants([*grants, grants[0]])


@pytest.mark.promise("O-5")
@pytest.mark.parametrize("role", Role)
def test_every_role_reads_its_scope_and_what_lies_below(role: Role):
    ada = caller(f"{role.value}=acme")
    ada.must_read(Scope("acme"))
    ada.must_read(Scope("acme", "platform"))
    for outside in (Scope(), Scope("globex"), Scope("globex", "platform")):
        with pytest.raises(AccessDenied):
            ada.must_read(outside)


@pytest.mark.promise("O-5", "P-12")
def test_only_authors_and_admins_publish():
    for role in Role:
        if role in (Role.AUTHOR, Role.ADMIN):
            caller(f"{role.value}=acme").must_publish([Scope("acme", "platform"), Scope("acme")])
        else:
            with pytest.raises(AccessDenied):
                caller(f"{role.value}=acme", "author=globex").must_publish([Scope("acme")])


@pytest.mark.promise("O-5")
def test_a_reader_of_a_request_is_within_the_callers_grants():
    ada = caller("viewer=acme", "author=globex/sales")
    assert ada.reader_for([]).scopes == {Scope("acme"), Scope("globex", "sales")}
    assert ada.reader_for([Scope("acme", "platform")]).scopes == {Scope("acme", "platform")}
    for wider in (Scope(), Scope("globex"), Scope("initech")):
        with pytest.raises(AccessDenied):
            ada.reader_for([Scope("acme"), wider])


@pytest.mark.promise("O-5")
def test_a_caller_without_grants_reads_nothing():
    nobody = caller()
    assert nobody.reader.scopes == frozenset()
    with pytest.raises(AccessDenied):
        nobody.must_read(Scope("acme"))
    with pytest.raises(AccessDenied):
        nobody.must_publish([Scope("acme")])
