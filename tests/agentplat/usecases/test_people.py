"""People, grants and tokens: nobody sees or makes more than they were granted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from agentplat.domain.access import OPERATOR, Grant, Role
from agentplat.domain.errors import AccessDenied, Conflict, NotFound, Unauthenticated
from agentplat.usecases.list_acts import ListActs
from agentplat.usecases.manage_people import MAX_GRANTS

from tests.agentplat.world import World, ref

pytestmark = pytest.mark.promise("O-5")
READ_PLATFORM = Grant(Role.VIEWER, "acme/platform")


def test_a_token_is_shown_once_and_only_its_hash_is_kept(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    secret, token = acme.cases.manage_tokens.make(ana, ref("acme:ana"), "laptop", None)
    assert acme.cases.identify_caller(secret) == ana
    assert token.name == "laptop"
    with acme.store.reading() as work:
        dump = repr(list(work._connection.exec_driver_sql("SELECT * FROM tokens")))
    assert secret not in dump
    assert hashlib.sha256(secret.encode()).hexdigest() in dump


@pytest.mark.parametrize("token", ["", "apt_", "apt_" + "x" * 43, "x" * 47, "apt_é", "apt_\x00"])
def test_a_text_that_is_no_token_identifies_nobody(acme: World, token: str) -> None:
    with pytest.raises(Unauthenticated):
        acme.cases.identify_caller(token)


def test_a_revoked_token_and_a_revoked_grant_count_from_the_next_request_on(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme", "viewer=globex")
    secret, _ = acme.cases.manage_tokens.make(ana, ref("acme:ana"), "laptop", None)
    acme.cases.manage_people.revoke(OPERATOR, ref("acme:ana"), Grant(Role.VIEWER, "globex"))
    assert acme.cases.identify_caller(secret).scopes == ("acme",)
    acme.cases.manage_tokens.revoke(ana, ref("acme:ana"), "laptop")
    with pytest.raises(Unauthenticated):
        acme.cases.identify_caller(secret)
    with pytest.raises(NotFound):
        acme.cases.manage_tokens.revoke(ana, ref("acme:ana"), "laptop")


def test_a_token_expires(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    secret, _ = acme.cases.manage_tokens.make(ana, ref("acme:ana"), "gone", -1)
    with pytest.raises(Unauthenticated):
        acme.cases.identify_caller(secret)


def test_admins_add_people_and_grant_roles_within_their_scope_only(acme: World) -> None:
    admin = acme.person("acme:root", "admin=acme")
    people = acme.cases.manage_people
    people.add(admin, ref("acme/platform:ana"))
    with pytest.raises(Conflict):
        people.add(admin, ref("acme/platform:ana"))
    assert people.grant(admin, ref("acme/platform:ana"), READ_PLATFORM)
    assert not people.grant(admin, ref("acme/platform:ana"), READ_PLATFORM)
    for scope in ("*", "globex", "globex/x"):
        with pytest.raises(AccessDenied):
            people.grant(admin, ref("acme/platform:ana"), Grant(Role.VIEWER, scope))
    with pytest.raises(AccessDenied):
        people.add(admin, ref("globex:eve"))
    assert [known.person.ref.text for known in people.page(admin, None, 10)] == ["acme:root", "acme/platform:ana"]
    assert people.revoke(admin, ref("acme/platform:ana"), READ_PLATFORM)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_other_roles_manage_nobody(acme: World, role: Role) -> None:
    caller = acme.person("acme:ana", f"{role.value}=*")
    acme.person("acme:bob", "viewer=acme")
    with pytest.raises(AccessDenied):
        acme.cases.manage_people.add(caller, ref("acme:eve"))
    with pytest.raises(NotFound):
        acme.cases.manage_people.grant(caller, ref("acme:bob"), READ_PLATFORM)
    with pytest.raises(NotFound):
        acme.cases.manage_tokens.make(caller, ref("acme:bob"), "mine", None)
    assert acme.cases.manage_people.page(caller, None, 10) == []


def test_an_admin_makes_no_token_of_a_person_whose_grants_reach_further(acme: World) -> None:
    admin = acme.person("acme:root", "admin=acme")
    acme.person("acme:ana", "author=acme")
    acme.person("acme:boss", "viewer=acme", "viewer=globex")
    assert acme.cases.manage_tokens.make(admin, ref("acme:ana"), "laptop", None)
    for act in (
        lambda: acme.cases.manage_tokens.make(admin, ref("acme:boss"), "laptop", None),
        lambda: acme.cases.manage_tokens.all_of(admin, ref("acme:boss")),
        lambda: acme.cases.manage_tokens.revoke(admin, ref("acme:boss"), "laptop"),
    ):
        with pytest.raises(NotFound):
            act()


def test_an_admin_sees_those_grants_of_a_person_that_lie_in_their_scope(acme: World) -> None:
    acme.person("acme:boss", "viewer=acme", "viewer=globex")
    admin = acme.person("acme:root", "admin=acme")
    assert acme.cases.manage_people.one(admin, ref("acme:boss")).grants == (Grant(Role.VIEWER, "acme"),)


def test_a_person_who_is_not_there_and_one_who_is_not_yours_are_one_refusal(acme: World) -> None:
    admin = acme.person("acme:root", "admin=acme")
    acme.person("globex:eve", "viewer=globex")
    people, tokens = acme.cases.manage_people, acme.cases.manage_tokens
    acts: list[Callable[[str], object]] = [
        lambda who: people.one(admin, ref(who)),
        lambda who: people.grant(admin, ref(who), READ_PLATFORM),
        lambda who: people.revoke(admin, ref(who), READ_PLATFORM),
        lambda who: tokens.make(admin, ref(who), "laptop", None),
        lambda who: tokens.all_of(admin, ref(who)),
        lambda who: tokens.revoke(admin, ref(who), "laptop"),
    ]
    for act in acts:
        refusals = set()
        for who in ("globex:eve", "globex:nobody", "acme:nobody"):
            with pytest.raises(NotFound) as refusal:
                act(who)
            refusals.add(str(refusal.value))
        assert len(refusals) == 1


def test_grants_of_one_person_have_a_limit_so_that_their_token_stays_small(acme: World) -> None:
    acme.person("acme:ana", *(f"viewer=acme/a{i}" for i in range(MAX_GRANTS)))
    with pytest.raises(Conflict, match="500 grants already"):
        acme.cases.manage_people.grant(OPERATOR, ref("acme:ana"), READ_PLATFORM)


def test_a_token_that_nobody_got_is_not_valid(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    secrets: list[str] = []

    def lose(secret: str) -> None:
        secrets.append(secret)
        raise FileExistsError

    with pytest.raises(FileExistsError):
        acme.cases.manage_tokens.make(ana, ref("acme:ana"), "laptop", None, lose)
    with pytest.raises(Unauthenticated):
        acme.cases.identify_caller(secrets[0])
    assert acme.cases.manage_tokens.all_of(ana, ref("acme:ana")) == []


def test_acts_are_for_auditors_and_name_nothing_outside_their_access(acme: World) -> None:
    root = acme.person("*:root", "admin=*")
    acme.cases.manage_people.add(root, ref("acme:ana"))
    acme.cases.manage_people.grant(root, ref("acme:ana"), Grant(Role.VIEWER, "globex"))
    read: ListActs = acme.cases.list_acts
    acme_auditor, everywhere = acme.person("acme:a", "auditor=acme"), acme.person("*:a", "auditor=*")
    granted, added = read(acme_auditor, None, 10)
    assert (granted.act, granted.subject, granted.actor) == ("grant", "acme:ana", None)
    assert granted.details == {"role": "viewer", "scope": None}
    assert (added.act, added.actor) == ("add person", None)
    assert read(everywhere, None, 10)[0].details == {"role": "viewer", "scope": "globex"}
    assert read(everywhere, None, 10)[0].actor == ref("*:root")
    assert read(acme.person("acme:b", "admin=acme", "viewer=acme"), None, 10) == []
