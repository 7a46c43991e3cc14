"""Agents, versions, reports, people and acts as the database keeps them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from agentplat.domain.access import Grant, Role
from agentplat.domain.registry import KeptReport, ReportState
from agentplat.domain.scopes import Ref, contains, outermost
from agentplat.store.sql import SqlStore

from tests.agentplat.records import content, found, person, published

DEVELOPER = Ref("acme/platform", "developer")


@pytest.mark.promise("P-3")
def test_publishing_makes_a_version_the_only_published_one_and_retiring_leaves_none(store: SqlStore) -> None:
    published(store, DEVELOPER, 1, ("code",))
    published(store, DEVELOPER, 2, ("patch",))
    agent = found(store, DEVELOPER)
    assert agent.current == 2
    with store.writing() as work:
        assert work.registry.last_number(agent) == 2
        first = work.registry.version(agent, 1)
        assert first is not None
        assert first.content == content(DEVELOPER, ("code",), note="1")
        assert [version.number for version in work.registry.versions(agent, None, 10)] == [2, 1]
        assert [version.number for version in work.registry.versions(agent, 2, 10)] == [1]
        assert work.registry.version(agent, 3) is None
        work.registry.retire(agent)
    assert found(store, DEVELOPER).current is None
    published(store, DEVELOPER, 3)
    assert found(store, DEVELOPER).current == 3


@pytest.mark.promise("P-3")
def test_publishers_at_the_same_moment_draw_numbers_one_after_the_other(store: SqlStore) -> None:
    with store.writing() as work:
        person(work)
    gate = threading.Barrier(6)

    def publish(index: int) -> int:
        gate.wait(30)
        with store.writing() as work:
            agent = work.registry.hold(DEVELOPER)
            number = work.registry.last_number(agent) + 1
            work.registry.add(agent, number, content(DEVELOPER, note=str(index)), person(work), 1)
            return number

    with ThreadPoolExecutor(6) as pool:
        numbers = sorted(pool.map(publish, range(6)))
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert found(store, DEVELOPER).current == 6


@pytest.mark.promise("P-3")
def test_a_block_that_fails_leaves_nothing_behind(store: SqlStore) -> None:
    def publish_half() -> None:
        with store.writing() as work:
            agent = work.registry.hold(DEVELOPER)
            work.registry.add(agent, 1, content(DEVELOPER, ("code",)), person(work), 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        publish_half()
    with store.reading() as work:
        assert work.registry.find(DEVELOPER) is None
        assert work.people.find(Ref("acme", "ana")) is None


def test_agents_are_listed_by_code_point_within_the_scopes_asked_for(store: SqlStore) -> None:
    names = ["Zoe", "a", "é", "z", "א", "a%b", "a_b"]
    scopes = ["*", "acme", "acme/platform", "acme/platform2", "acme2", "globex/x", "a%"]
    refs = [Ref(scope, name) for scope in scopes for name in names]
    for ref in refs:
        published(store, ref, 1)
    for asked in (["*"], ["acme"], ["acme/platform"], ["acme", "globex/x"], ["a%"], ["initech"], []):
        wanted = sorted((r for r in refs if any(contains(a, r.scope) for a in asked)), key=lambda r: (r.scope, r.name))
        listed: list[Ref] = []
        with store.reading() as work:
            while page := work.registry.page(asked, listed[-1] if listed else None, 5):
                listed += [agent.ref for agent in page]
        assert listed == wanted


def test_the_outermost_scopes_are_those_that_no_other_contains() -> None:
    assert outermost(["acme/platform", "acme", "acme2", "globex/x", "globex/x"]) == ("acme", "acme2", "globex/x")
    assert outermost(["acme", "*"]) == ("*",)
    assert not contains("acme", "acme2/platform")
    assert not contains("acme/platform", "acme")


@pytest.mark.promise("P-13")
def test_sources_of_an_event_are_the_published_versions_that_emit_it_in_readable_scopes(store: SqlStore) -> None:
    outside = Ref("globex", "writer")
    published(store, DEVELOPER, 1, ("code",))
    published(store, DEVELOPER, 2, ("patch",))
    published(store, outside, 1, ("patch",))
    with store.writing() as work:
        assert [s.agent for s in work.registry.sources(["code", "patch"], ["*"])] == [DEVELOPER, outside]
        [source] = work.registry.sources(["code", "patch"], ["acme"])
        assert (source.agent, source.event, source.artifacts) == (DEVELOPER, "patch", ("patch.text",))
        work.registry.retire(found(store, DEVELOPER))
        assert work.registry.sources(["patch"], ["acme"]) == []


@pytest.mark.promise("P-7")
def test_a_report_is_kept_with_the_scopes_it_was_made_for(store: SqlStore) -> None:
    published(store, DEVELOPER, 1)
    agent = found(store, DEVELOPER)
    with store.writing() as work:
        assert work.registry.report(agent, 1) == KeptReport(state=ReportState.NOT_ANSWERED, body=None, scopes=())
        kept = KeptReport(state=ReportState.LATE, body={"loops": [], "note": "א"}, scopes=("acme", "globex/x"))
        work.registry.keep_report(agent.id, 1, kept)
        assert work.registry.report(agent, 1) == kept


@pytest.mark.promise("P-11")
def test_paused_agents_are_found_among_others_by_their_whole_reference(store: SqlStore) -> None:
    twin = Ref("globex", "developer")
    for ref in (DEVELOPER, twin):
        published(store, ref, 1)
    with store.writing() as work:
        work.registry.pause(found(store, DEVELOPER), True)
    with store.writing() as work:
        assert work.registry.paused_among([DEVELOPER, twin, Ref("acme", "nobody")]) == {DEVELOPER}
        assert work.registry.paused_among([]) == set()
        work.registry.pause(found(store, DEVELOPER), False)
    assert not found(store, DEVELOPER).paused


@pytest.mark.promise("O-5")
def test_a_token_is_found_by_its_hash_while_it_is_valid(store: SqlStore) -> None:
    with store.writing() as work:
        ana = person(work)
        assert work.people.add(ana.ref, 1) is None
        assert work.people.add_token(ana, "laptop", "a" * 64, 10, 20) is not None
        assert work.people.add_token(ana, "laptop", "b" * 64, 10, 20) is None
        assert work.people.add_token(ana, "server", "c" * 64, 10, None) is not None
        assert work.people.holder("a" * 64, 19) == ana
        assert work.people.holder("a" * 64, 20) is None
        assert work.people.holder("c" * 64, 10**15) == ana
        work.people.end_session("e" * 64, 50, 10)
        work.people.end_session("e" * 64, 50, 10)
        assert work.people.holder("c" * 64, 10, "e" * 64) is None
        assert work.people.holder("c" * 64, 10, "f" * 64) == work.people.holder("c" * 64, 10) == ana
        # It is remembered for as long as its cookie would have been taken.
        work.people.end_session("f" * 64, 90, 51)
        assert work.people.holder("c" * 64, 51, "f" * 64) is None
        assert work._connection.exec_driver_sql("SELECT count(*) FROM ended_sessions").scalar() == 1
        assert work.people.revoke_token(ana, "server", 30)
        assert not work.people.revoke_token(ana, "server", 31)
        assert work.people.holder("c" * 64, 30) is None
        assert [(t.name, t.expires_at, t.revoked_at) for t in work.people.tokens(ana)] == [
            ("laptop", 20, None),
            ("server", None, 30),
        ]


@pytest.mark.promise("O-5")
def test_grants_are_added_once_and_taken_away(store: SqlStore) -> None:
    grant = Grant(Role.AUTHOR, "acme/platform")
    with store.writing() as work:
        ana = person(work)
        assert work.people.grant(ana, grant)
        assert not work.people.grant(ana, grant)
        assert work.people.grants(ana) == {grant}
        assert not work.people.revoke(ana, Grant(Role.ADMIN, "acme/platform"))
        assert work.people.revoke(ana, grant)
        assert work.people.grants(ana) == frozenset()


def test_acts_are_read_newest_first_by_scope(store: SqlStore) -> None:
    with store.writing() as work:
        ana = person(work)
        for at, ref in enumerate([DEVELOPER, Ref("globex", "writer"), DEVELOPER], start=1):
            work.acts.record(at, ana, "publish", ref, {"number": at})
        work.acts.record(4, None, "set aside", DEVELOPER, {})
        acts = work.acts.page(["acme"], None, 10)
        assert [(act.at, act.actor, act.subject) for act in acts] == [
            (4, None, DEVELOPER.text),
            (3, ana.ref, DEVELOPER.text),
            (1, ana.ref, DEVELOPER.text),
        ]
        assert [act.at for act in work.acts.page(["acme"], acts[0].id, 1)] == [3]
        assert work.acts.page([], None, 10) == []
