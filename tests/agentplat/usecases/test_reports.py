"""Reports as they are kept, shown to others, previewed and put into words."""

from __future__ import annotations

import pytest
from agentplat.domain.access import Access
from agentplat.domain.errors import AccessDenied, InvalidInput, NotFound
from agentplat.domain.languages import Language
from agentplat.domain.registry import ReportState
from agentplat.usecases.preview_version import Preview
from agentplat.usecases.tell import preview_text, shown_text, suggestion_text, warning_lines

from tests.agentplat.world import World, manifest, ref

DEVELOPER, REVIEWER, WRITER = "acme/platform:developer", "acme/platform:reviewer", "globex:writer"


@pytest.fixture
def crossing(acme: World) -> World:
    """A loop of an agent of acme with a readable and a hidden one, published by somebody who reads both companies."""
    acme.publish(acme.person("globex:bob", "author=globex"), WRITER, ["rejected"], ["code"])
    ana = acme.person("acme:ana", "author=acme", "viewer=globex")
    acme.publish(ana, REVIEWER, ["rejected"], ["code"])
    acme.publish(ana, DEVELOPER, ["code"], ["rejected"])
    return acme


def _agents(body: object) -> list[list[str | None]]:
    assert isinstance(body, dict)
    return [loop["agents"] for loop in body["loops"]]


@pytest.mark.promise("P-7")
@pytest.mark.parametrize(
    "grants", [("viewer=acme", "viewer=globex"), ("auditor=*",), ("author=acme", "admin=globex", "viewer=initech")]
)
def test_a_report_is_shown_as_its_publisher_saw_it_to_who_may_read_all_of_that(crossing: World, grants: tuple[str, ...]) -> None:
    before = len(crossing.graph.authenticator.callers)
    shown = crossing.cases.read_report(crossing.person("acme:reader", *grants), ref(DEVELOPER), 1)
    assert (shown.fresh, shown.state) == (False, ReportState.VERIFIED)
    assert _agents(shown.body) == [[DEVELOPER, REVIEWER], [DEVELOPER, WRITER]]
    assert len(crossing.graph.authenticator.callers) == before


@pytest.mark.promise("P-7")
@pytest.mark.parametrize("grants", [("viewer=acme",), ("author=acme/platform",), ("viewer=acme", "viewer=globex/sales")])
def test_who_lacks_one_of_its_scopes_gets_a_fresh_report_of_their_own(crossing: World, grants: tuple[str, ...]) -> None:
    reader = crossing.person("acme:reader", *grants)
    shown = crossing.cases.read_report(reader, ref(DEVELOPER), 1)
    assert shown.fresh
    assert _agents(shown.body) == [[DEVELOPER, REVIEWER], [DEVELOPER, None]]
    assert "writer" not in shown_text(shown, Language.EN)
    lines = shown_text(shown, Language.EN).splitlines()
    assert lines[0] == "This report was made just now, for your own access."
    assert "  developer → an agent outside your access → developer" in lines


@pytest.mark.promise("P-7")
def test_a_publisher_who_lost_a_scope_gets_a_fresh_report_too(crossing: World) -> None:
    ana = crossing.person("acme:ana", "author=acme")
    shown = crossing.cases.read_report(ana, ref(DEVELOPER), 1)
    assert shown.fresh
    assert _agents(shown.body) == [[DEVELOPER, REVIEWER], [DEVELOPER, None]]


@pytest.mark.promise("P-7")
def test_without_the_graph_service_nobody_gets_a_report_that_is_not_theirs(crossing: World) -> None:
    crossing.graph.stop()
    shown = crossing.cases.read_report(crossing.person("acme:reader", "viewer=acme"), ref(DEVELOPER), 1)
    assert (shown.body, shown.fresh, shown.paused) == (None, True, ())
    assert shown_text(shown, Language.EN) == "This version was not verified, because the graph service did not answer."
    kept = crossing.cases.read_report(crossing.person("acme:boss", "viewer=*"), ref(DEVELOPER), 1)
    assert _agents(kept.body) == [[DEVELOPER, REVIEWER], [DEVELOPER, WRITER]]


@pytest.mark.promise("P-7")
def test_a_kept_report_does_not_change_with_the_graph_and_a_fresh_one_does(crossing: World) -> None:
    crossing.cases.retire_agent(crossing.person("acme:ana", "author=acme"), ref(REVIEWER))
    kept = crossing.cases.read_report(crossing.person("acme:boss", "viewer=*"), ref(DEVELOPER), 1)
    fresh = crossing.cases.read_report(crossing.person("acme:reader", "viewer=acme"), ref(DEVELOPER), 1)
    assert _agents(kept.body) == [[DEVELOPER, REVIEWER], [DEVELOPER, WRITER]]
    assert _agents(fresh.body) == [[DEVELOPER, None]]


@pytest.mark.promise("P-11")
def test_a_paused_agent_stays_in_the_graph_and_is_marked_in_reports_where_it_is_named(crossing: World) -> None:
    ana, bob = crossing.person("acme:ana", "author=acme", "viewer=globex"), crossing.person("globex:bob", "author=globex")
    assert crossing.cases.pause_agent(ana, ref(REVIEWER), True)
    assert not crossing.cases.pause_agent(ana, ref(REVIEWER), True)
    crossing.cases.pause_agent(bob, ref(WRITER), True)
    kept = crossing.cases.read_report(ana, ref(DEVELOPER), 1)
    assert kept.paused == (ref(REVIEWER), ref(WRITER))
    assert "acme/platform:reviewer is paused: its triggers start nothing until it is resumed." in shown_text(kept, Language.EN)
    fresh = crossing.cases.read_report(crossing.person("acme:reader", "viewer=acme"), ref(DEVELOPER), 1)
    assert fresh.paused == (ref(REVIEWER),)
    assert crossing.publish(ana, DEVELOPER, ["code", "more"], ["rejected"]).paused == (ref(REVIEWER), ref(WRITER))
    assert crossing.cases.pause_agent(ana, ref(REVIEWER), False)
    assert crossing.cases.read_report(ana, ref(DEVELOPER), 1).paused == (ref(WRITER),)


@pytest.mark.promise("P-11")
def test_a_retired_agent_is_out_of_the_graph_until_a_new_version_brings_it_back(crossing: World) -> None:
    ana = crossing.person("acme:ana", "author=acme", "viewer=globex")
    done = crossing.cases.retire_agent(ana, ref(REVIEWER))
    assert (done.created, done.delivered) == (True, True)
    assert _agents(crossing.publish(ana, DEVELOPER, ["code", "more"], ["rejected"]).body) == [[DEVELOPER, WRITER]]
    listed, current = crossing.cases.list_agents.one(ana, ref(REVIEWER))
    assert (listed.agent.current, current) == (None, None)
    assert crossing.publish(ana, REVIEWER, ["rejected"], ["code"]).number == 2
    assert _agents(crossing.publish(ana, DEVELOPER, ["code"], ["rejected"]).body) == [[DEVELOPER, REVIEWER], [DEVELOPER, WRITER]]


@pytest.mark.promise("P-10")
def test_agents_that_share_a_name_are_shown_with_their_scopes(acme: World) -> None:
    ana = acme.person("acme:ana", "author=acme", "author=globex")
    acme.publish(ana, "globex:developer", ["rejected"], ["code"])
    shown = acme.publish(ana, DEVELOPER, ["code"], ["rejected"])
    assert warning_lines(shown, Language.EN)[1] == "  acme/platform:developer → globex:developer → acme/platform:developer"


def _preview(world: World, access: Access, text: str) -> Preview:
    [preview] = world.cases.preview_version(access, text, "test.yaml")
    return preview


def _rows(world: World) -> list[int]:
    with world.store.reading() as work:
        agents = work.registry.page(["*"], None, 1_000)
        return [len(agents), *(work.registry.last_number(agent) for agent in agents), *work.outbox.sizes()]


@pytest.mark.promise("P-8")
def test_a_preview_gives_the_report_of_publishing_and_stores_nothing(crossing: World) -> None:
    ana = crossing.person("acme:ana", "author=acme", "viewer=globex")
    text = manifest("acme/platform:tester", ["rejected"], ["code"])
    before = (_rows(crossing), crossing.graph.told())
    preview = _preview(crossing, ana, text)
    assert (_rows(crossing), crossing.graph.told()) == before
    [publication] = crossing.cases.publish_version(ana, text, "test.yaml")
    assert preview.body is not None
    assert publication.report.body is not None
    assert preview.body["digest"] == publication.report.body["digest"]
    assert _preview(crossing, ana, text).unchanged


@pytest.mark.promise("P-8")
def test_a_diff_tells_events_triggers_and_loops_that_come_and_go(crossing: World) -> None:
    ana = crossing.person("acme:ana", "author=acme")
    preview = _preview(crossing, ana, manifest(REVIEWER, ["approved"], ["code", "approved", "asked"]))
    diff = preview.diff
    assert (diff.against, diff.events.added, diff.events.removed) == (1, ("approved",), ("rejected",))
    assert (diff.triggers.added, diff.triggers.removed) == (("approved", "asked"), ())
    assert diff.loops is not None
    assert (diff.loops.closed, diff.loops.opened, diff.loops.exact) == (((REVIEWER,),), ((REVIEWER, DEVELOPER),), True)
    text = preview_text(preview, Language.EN).splitlines()
    assert "This change closes: reviewer → reviewer" in text
    assert "This change opens up: reviewer → developer → reviewer" in text


@pytest.mark.promise("P-8")
def test_a_diff_of_a_first_version_names_all_that_it_brings(crossing: World) -> None:
    ana = crossing.person("acme:ana", "author=acme")
    preview = _preview(crossing, ana, manifest("acme:tester", ["rejected"], ["code"]))
    assert (preview.diff.against, preview.diff.events.added, preview.diff.triggers.added) == (None, ("rejected",), ("code",))
    assert preview.diff.loops is not None
    assert preview.diff.loops.closed == (("acme:tester", DEVELOPER),)


@pytest.mark.promise("P-8")
def test_a_preview_without_the_graph_service_says_so_and_still_tells_what_changes(crossing: World) -> None:
    crossing.graph.stop()
    preview = _preview(crossing, crossing.person("acme:ana", "author=acme"), manifest(REVIEWER, [], ["code"]))
    assert (preview.body, preview.diff.loops, preview.diff.events.removed) == (None, None, ("rejected",))
    assert preview_text(preview, Language.PT) == "Esta versão não foi verificada, porque o serviço de grafo não respondeu."


@pytest.mark.promise("P-8", "O-5")
def test_a_preview_of_a_scope_outside_ones_access_is_refused_whether_or_not_the_agent_is_there(crossing: World) -> None:
    reader = crossing.person("acme:reader", "viewer=acme")
    refusals = []
    for agent in (WRITER, "globex:nobody"):
        with pytest.raises(AccessDenied) as refusal:
            _preview(crossing, reader, manifest(agent, ["x"]))
        refusals.append(str(refusal.value))
    assert len(set(refusals)) == 1


@pytest.mark.promise("P-13")
def test_a_preview_names_for_each_trigger_the_artifacts_of_readable_sources(acme: World) -> None:
    triaged = {"event": "incident.triaged", "context": "incident", "artifacts": ["triage_summary", "suspected_cause"]}
    bob = acme.person("globex:bob", "author=globex")
    acme.publish(bob, "globex:spy", [{**triaged, "artifacts": ["secret_notes"]}])
    ana = acme.person("acme:ana", "author=acme")
    acme.publish(ana, "acme:triage", [triaged])
    acme.publish(ana, "acme:twin", [{**triaged, "artifacts": ["log_excerpt", "triage_summary"]}])
    own = [{**triaged, "artifacts": ["echo"]}]
    acme.publish(ana, "acme:fixer", own)
    preview = _preview(acme, ana, manifest("acme:fixer", own, ["incident.triaged", "asked"]))
    asked, found = preview.suggestions
    assert (asked.trigger, asked.artifacts, suggestion_text(asked, Language.EN)) == ("asked", (), "")
    assert found.artifacts == ("log_excerpt", "suspected_cause", "triage_summary")
    assert [source.agent.text for source in found.sources] == ["acme:triage", "acme:twin"]
    assert suggestion_text(found, Language.EN) == (
        "When this run starts from incident.triaged, read log_excerpt first.\n"
        "If that is not enough, read suspected_cause, triage_summary.\n"
        "Do not treat the event's input as the artifact's body; it only names the artifacts that are available."
    )
    assert suggestion_text(found, Language.PT).startswith(
        "Quando esta run começar por incident.triaged, leia log_excerpt primeiro."
    )
    assert "\u2068log_excerpt\u2069" in suggestion_text(found, Language.HE)


@pytest.mark.promise("P-9")
@pytest.mark.parametrize(
    ("language", "hidden", "said"),
    [
        (
            Language.EN,
            "  developer → an agent outside your access → developer",
            "This report was made just now, for your own access.",
        ),
        (
            Language.PT,
            "  developer → um agente fora do seu acesso → developer",
            "Este relatório foi feito agora, para o seu próprio acesso.",
        ),
        (
            Language.HE,
            "  \u2066\u2068developer\u2069 → \u2068סוכן שמחוץ לגישה שלכם\u2069 → \u2068developer\u2069\u2069",
            "דוח זה הופק זה עתה, עבור הגישה שלכם.",
        ),
    ],
)
def test_a_report_reads_the_same_path_in_three_languages(crossing: World, language: Language, hidden: str, said: str) -> None:
    shown = crossing.cases.read_report(crossing.person("acme:reader", "viewer=acme"), ref(DEVELOPER), 1)
    lines = shown_text(shown, language).splitlines()
    assert lines[0] == said
    assert hidden in lines


@pytest.mark.promise("O-5")
def test_reading_what_is_not_there_and_what_is_not_yours_is_one_refusal(crossing: World) -> None:
    reader = crossing.person("acme:reader", "viewer=acme")
    refusals = []
    for agent, number in ((WRITER, 1), ("globex:nobody", 1), ("acme:nobody", 1), (DEVELOPER, 2)):
        with pytest.raises(NotFound) as refusal:
            crossing.cases.read_report(reader, ref(agent), number)
        refusals.append(str(refusal.value))
    assert len(set(refusals)) == 1


@pytest.mark.promise("P-2")
def test_a_preview_of_a_faulty_manifest_is_refused(acme: World) -> None:
    with pytest.raises(InvalidInput):
        acme.cases.preview_version(acme.person("acme:ana", "author=acme"), "kind: Agent", "test.yaml")
