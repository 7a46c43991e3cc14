"""Publishing: stored in any case, and warned of what it closes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agentplat.domain.errors import AccessDenied, InvalidInput, UnexpectedNumber
from agentplat.domain.languages import Language
from agentplat.domain.outbox import EntryState
from agentplat.domain.registry import ReportState
from agentplat.usecases.tell import shown_text, warning_lines

from graphsvc.domain.limits import Limits
from graphsvc.domain.redaction import EVERYTHING
from tests.agentplat.graph_host import silent_address
from tests.agentplat.world import World, manifest, manifests, ref, use_cases, world

DEVELOPER, REVIEWER, TESTER = "acme/platform:developer", "acme/platform:reviewer", "acme/platform:tester"
UNANSWERED = "This version was not verified, because the graph service did not answer."


def _stored(world: World) -> int:
    with world.store.reading() as work:
        agents = work.registry.page(["*"], None, 1_000)
        return sum(work.registry.last_number(agent) for agent in agents)


@pytest.mark.promise("P-4")
def test_a_version_that_closes_a_loop_is_published_with_every_agent_of_the_loop(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    acme.publish(ana, DEVELOPER, ["code"], ["rejected", "failed"])
    acme.publish(ana, TESTER, ["failed"], ["approved"])
    shown = acme.publish(ana, REVIEWER, ["rejected", "approved"], ["code"])
    assert (shown.number, shown.state, shown.delivery) == (1, ReportState.VERIFIED, EntryState.DELIVERED)
    assert warning_lines(shown, Language.EN) == [
        "This version closes 2 loops:",
        "  reviewer → developer → reviewer",
        "  reviewer → tester → developer → reviewer",
    ]
    again = acme.cases.read_report(ana, ref(REVIEWER), 1)
    assert (again.body, again.fresh) == (shown.body, False)


@pytest.mark.promise("P-4")
def test_a_version_without_loops_gives_no_warning(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    shown = acme.publish(ana, DEVELOPER, ["code"], ["rejected"])
    assert shown.state is ReportState.VERIFIED
    assert warning_lines(shown, Language.EN) == []


@pytest.mark.promise("P-4")
@pytest.mark.parametrize(
    ("limits", "lines"),
    [
        (Limits(max_loops=1), ["This version closes a loop:", "  reviewer → developer → reviewer", "There may be more loops."]),
        (Limits(max_visits=0), ["This version was not fully verified."]),
    ],
)
def test_a_search_that_a_limit_stopped_says_what_it_leaves_open(
    sqlite_url: str, tmp_path: Path, limits: Limits, lines: list[str]
) -> None:
    with world(sqlite_url, tmp_path, limits) as opened:
        ana = opened.person("acme:ana", "author=acme")
        opened.publish(ana, DEVELOPER, ["code"], ["rejected"])
        opened.publish(ana, TESTER, ["code"], ["rejected"])
        shown = opened.publish(ana, REVIEWER, ["rejected"], ["code"])
    assert shown.state is ReportState.VERIFIED
    assert warning_lines(shown, Language.EN) == lines


@pytest.mark.promise("P-5")
def test_an_agent_that_hears_its_own_event_is_published_and_told_that_this_does_nothing(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    shown = acme.publish(ana, DEVELOPER, ["code"], ["code"])
    assert warning_lines(shown, Language.EN) == [
        "This version closes a loop:",
        "  developer → developer (the platform never starts an agent by its own event, so this trigger does nothing)",
    ]
    [listed] = acme.cases.list_agents(ana, None, 10)
    assert listed.agent.current == 1


@pytest.mark.promise("P-3")
def test_numbers_rise_and_the_newest_version_is_the_published_one(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    acme.publish(ana, DEVELOPER, ["code"], ["rejected"])
    acme.publish(ana, REVIEWER, ["rejected"], ["code"])
    shown = acme.publish(ana, DEVELOPER, ["code"], [])
    assert (shown.number, warning_lines(shown, Language.EN)) == (2, [])
    first, second = (acme.cases.list_agents.version(ana, ref(DEVELOPER), number) for number in (1, 2))
    assert (first.content.listens, second.content.listens) == (("rejected",), ())
    [described] = [v for v in acme.graph.service.export(EVERYTHING)[1] if v.agent.name == "developer"]
    assert (described.number, described.declaration.listens) == (2, ())


@pytest.mark.promise("P-3")
def test_content_that_is_current_is_not_published_twice_and_older_content_is_published_anew(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    first = manifest(DEVELOPER, ["code"], [], instructions="write")
    second = manifest(DEVELOPER, ["code"], [], instructions="write well")
    numbers = []
    for text in (first, first, second, second, first):
        [publication] = acme.cases.publish_version(ana, text, "test.yaml")
        numbers.append((publication.report.number, publication.created))
    assert numbers == [(1, True), (1, False), (2, True), (2, False), (3, True)]


@pytest.mark.promise("P-3")
def test_an_expected_number_that_is_taken_stores_nothing(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    text = manifest(DEVELOPER, ["code"])
    [made] = acme.cases.publish_version(ana, text, "test.yaml", 1)
    [again] = acme.cases.publish_version(ana, text, "test.yaml", 1)
    assert (made.created, again.created, again.report.number) == (True, False, 1)
    with pytest.raises(UnexpectedNumber) as refusal:
        acme.cases.publish_version(ana, manifest(DEVELOPER, ["other"]), "test.yaml", 1)
    assert (refusal.value.expected, refusal.value.actual) == (1, 2)
    assert _stored(acme) == 1


@pytest.mark.promise("P-3", "P-6")
def test_publishers_at_the_same_moment_get_different_numbers_and_the_graph_hears_them_in_order(everywhere: World) -> None:
    everywhere.graph.start()
    people = [everywhere.person(f"acme:p{i}", "author=acme") for i in range(5)]
    gate = threading.Barrier(5)

    def publish(index: int) -> int:
        gate.wait(30)
        return everywhere.publish(people[index], DEVELOPER, [f"code{index}"]).number

    with ThreadPoolExecutor(5) as pool:
        numbers = list(pool.map(publish, range(5)))
    assert sorted(numbers) == [1, 2, 3, 4, 5]
    everywhere.deliver_all()
    assert [number for _, _, number in everywhere.graph.told()] == [1, 2, 3, 4, 5]


@pytest.mark.promise("P-12")
def test_publishing_takes_a_grant_on_the_scope_and_one_refusal_keeps_all_manifests_back(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme/platform", "viewer=acme")
    text = manifests(manifest(DEVELOPER, ["code"]), manifest("acme/finance:payer", ["paid"]))
    with pytest.raises(AccessDenied) as refusal:
        acme.cases.publish_version(ana, text, "test.yaml")
    assert (refusal.value.role, refusal.value.scope) == ("author", "acme/finance")
    assert _stored(acme) == 0
    assert acme.graph.told() == []


@pytest.mark.promise("P-12")
@pytest.mark.parametrize("grant", ["author=acme/platform", "author=acme", "author=*", "admin=acme"])
def test_publishers_may_read_what_they_publish(acme: World, grant: str) -> None:
    ana = acme.person("acme:ana", grant)
    shown = acme.publish(ana, DEVELOPER, ["code"], ["code"])
    assert shown.body is not None
    assert shown.body["loops"][0]["agents"] == [DEVELOPER]
    assert acme.cases.read_report(ana, ref(DEVELOPER), 1).fresh is False


@pytest.mark.promise("P-2")
def test_a_faulty_manifest_keeps_the_others_of_its_text_back_and_every_fault_is_told(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    text = manifests(manifest(DEVELOPER, ["code"]), manifest(REVIEWER, ["code", "code"]), manifest("acme:", ["x"]))
    with pytest.raises(InvalidInput) as refusal:
        acme.cases.publish_version(ana, text, "team.yaml")
    places = [violation.place for violation in refusal.value.violations]
    assert len(places) == 2
    assert all(place.startswith("team.yaml:") for place in places)
    assert _stored(acme) == 0


@pytest.mark.promise("P-2")
def test_two_manifests_of_one_agent_in_one_text_are_refused(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    text = manifests(manifest(DEVELOPER, ["code"]), manifest(DEVELOPER, ["patch"]))
    with pytest.raises(InvalidInput, match=r"team\.yaml:3: metadata: acme/platform:developer has a manifest at line 1 already"):
        acme.cases.publish_version(ana, text, "team.yaml")


@pytest.mark.promise("P-6")
def test_a_version_published_while_the_graph_service_is_down_says_so_and_is_verified_later(everywhere: World) -> None:
    ana = everywhere.person("acme:ana", "author=acme")
    everywhere.publish(ana, DEVELOPER, ["code"], ["rejected"])
    shown = everywhere.publish(ana, REVIEWER, ["rejected"], ["code"])
    assert (shown.state, shown.delivery, shown.body) == (ReportState.NOT_ANSWERED, EntryState.WAITING, None)
    assert warning_lines(shown, Language.EN) == [UNANSWERED]
    [_, listed] = everywhere.cases.list_agents(ana, None, 10)
    assert (listed.agent.current, listed.unsettled is not None) == (1, True)
    everywhere.graph.start()
    everywhere.deliver_all()
    reports = [everywhere.cases.read_report(ana, ref(agent), 1) for agent in (DEVELOPER, REVIEWER)]
    assert [(report.state, report.delivery, report.fresh) for report in reports] == [
        (ReportState.LATE, EntryState.DELIVERED, False)
    ] * 2
    # Entries of different agents come in any order, as each waits a random while: whichever came last closed the loop.
    loops = {shown_text(report, Language.EN).splitlines()[1] for report in reports if report.body and report.body["loops"]}
    assert loops in ({"  developer → reviewer → developer"}, {"  reviewer → developer → reviewer"})


@pytest.mark.promise("P-6")
def test_a_graph_service_that_takes_too_long_does_not_keep_a_version_from_being_published(sqlite_url: str, tmp_path: Path) -> None:
    with (
        world(sqlite_url, tmp_path, up=False) as opened,
        silent_address() as address,
        use_cases(opened.store, tmp_path, address, verify_s=0.3) as cases,
    ):
        ana = opened.person("acme:ana", "author=acme")
        [publication] = cases.publish_version(ana, manifest(DEVELOPER, ["code"]), "test.yaml")
        assert publication.created
        assert warning_lines(publication.report, Language.EN) == [UNANSWERED]
        opened.graph.start()
        opened.deliver_all()
        assert opened.cases.read_report(ana, ref(DEVELOPER), 1).state is ReportState.LATE


@pytest.mark.promise("P-6")
def test_what_waits_is_delivered_before_a_new_version_of_the_same_agent(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    acme.graph.stop()
    for event in ("a", "b"):
        assert acme.publish(ana, DEVELOPER, [event]).body is None
    acme.graph_up()
    shown = acme.publish(ana, DEVELOPER, ["c"])
    assert (shown.number, shown.state) == (3, ReportState.VERIFIED)
    assert [number for _, _, number in acme.graph.told()] == [1, 2, 3]
    states = [acme.cases.read_report(ana, ref(DEVELOPER), number).state for number in (1, 2, 3)]
    assert states == [ReportState.LATE, ReportState.LATE, ReportState.VERIFIED]


@pytest.mark.promise("P-6")
def test_publishing_unverified_content_again_verifies_it(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme")
    acme.graph.stop()
    assert acme.publish(ana, DEVELOPER, ["code"]).body is None
    acme.graph_up()
    shown = acme.publish(ana, DEVELOPER, ["code"])
    assert (shown.number, shown.state) == (1, ReportState.VERIFIED)
