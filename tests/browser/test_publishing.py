"""The publish flow in a browser: editor, preview, publication, and the warning as the command line prints it."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentplat.domain.access import Access

from graphsvc.domain.limits import Limits
from tests.agentplat.http import path
from tests.agentplat.processes import process
from tests.agentplat.world import manifest, manifests
from tests.browser.conftest import Open
from tests.browser.stage import Stage, staged

FAULTY = """\
apiVersion: agentplat/v1
kind: Agent
metadata:
  name: faulty
  company: acme
spec:
  emit: [a]
  listens: 7
"""


def _printed(stage: Stage, who: Access, text: str, language: str) -> str:
    """What `agentplat publish` prints below its first line."""
    (stage.folder / "who.token").write_text(stage.world.token(who), encoding="utf-8")
    (stage.folder / "some.yaml").write_text(text, encoding="utf-8")
    flags = ("--server", stage.url, "--token-file", "who.token", "--language", language)
    done = process("publish", "some.yaml", *flags, cwd=stage.folder)
    assert done.status == 0, done.err
    return done.out.split("\n", 1)[1].rstrip("\n")


def _told(stage: Stage, who: Access, agent: str, version: int, language: str) -> str:
    """The report of a version as the HTTP API gives it."""
    with stage.api.client(who) as client:
        answer = client.get(path("v1", "agents", agent, "versions", version, "report"), params={"language": language})
    return str(answer.json()["text"])


def _pair(name: str) -> tuple[str, str]:
    """Two agents that start each other, one of them in an area that the reader may not read."""
    near = manifest(f"acme/platform:{name}", [f"{name}.there"], [f"{name}.back"], instructions=name)
    return near, manifest(f"acme/finance:{name}-far", [f"{name}.back"], [f"{name}.there"])


@pytest.mark.promise("U-1", "U-11")
@pytest.mark.parametrize(
    ("language", "scripts"),
    [("en", True), ("en", False), ("pt", False), ("he", True)],
    ids=["en", "en-no-scripts", "pt-no-scripts", "he"],
)
def test_a_loop_published_from_the_editor_gives_the_very_warning_of_the_command_line(
    stage: Stage, visit: Open, language: str, scripts: bool
) -> None:
    name = f"pair-{language}-{scripts}".lower()
    agent = f"acme/platform:{name}"
    near, far = _pair(name)
    stage.world.cases.publish_version(stage.author, far, "far.yaml")
    author = visit(stage.author, language, scripts=scripts)
    page = author.go("/publish")
    page.fill("#manifest", near)
    page.click("button[value=preview]")
    assert page.locator(".preview .added").count() == 2
    page.click("button[value=publish]")
    page.wait_for_url("**/versions/1?done=published")
    # The same content again changes nothing, so that the command line tells of the same version.
    assert author.report() == _printed(stage, stage.author, near, language)
    assert f"{name} → {name}-far → {name}" in author.report().translate({0x2066: None, 0x2068: None, 0x2069: None})
    assert page.locator("svg .agent").count() == 2
    reader = visit(stage.reader, language, scripts=scripts)
    reader.go(f"{path('agents', agent)}/versions/1")
    assert reader.report() == _told(stage, stage.reader, agent, 1, language) != author.report()
    assert f"{name}-far" not in reader.page.content()
    assert reader.page.locator("svg .agent.hidden").count() == 1


@pytest.mark.promise("U-1")
def test_faults_stand_at_their_lines_and_nothing_is_stored(stage: Stage, visit: Open) -> None:
    page = visit(stage.author).go("/publish?scope=acme/platform")
    page.fill(
        "#manifest",
        FAULTY,
    )
    page.click("button[value=publish]")
    faults = page.locator(".faults li")
    assert faults.locator("a").all_text_contents() == ["Line 7, column 3", "Line 8, column 12"]
    assert "emit: [a]" in faults.first.locator("pre").inner_text()
    assert page.locator(".gutter .faulty").count() == 2
    faults.nth(1).locator("a").click()
    assert page.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == ["manifest", 107]
    page.goto(stage.url + "/agents/acme%3Afaulty")
    assert page.locator("h1").inner_text() == "Not found"


@pytest.mark.promise("U-1")
def test_an_own_event_is_a_ring_of_its_own_and_says_that_it_starts_nothing(stage: Stage, visit: Open) -> None:
    here = visit(stage.author)
    page = here.go("/agents/acme%2Fplatform%3Aecho")
    assert "echo → echo (the platform never starts an agent by its own event, so this trigger does nothing)" in here.report()
    assert page.locator("svg .agent").count() == page.locator("svg .hop").count() == 1
    assert page.locator("svg > title").inner_html() == "acme/platform:echo hears its own event"


@pytest.mark.promise("U-1")
@pytest.mark.parametrize(
    ("limits", "more", "unverified"),
    [(Limits(max_loops=1), True, False), (Limits(max_visits=12), False, True), (Limits(max_visits=22), True, True)],
    ids=["more-loops", "not-verified", "walk-limited"],
)
def test_a_search_that_stopped_says_so_on_the_page(
    tmp_path: Path, visit: Open, limits: Limits, more: bool, unverified: bool
) -> None:
    with staged(tmp_path, limits) as small:
        here = visit(small.author, at=small)
        page = here.go("/publish")
        two = [manifest(f"acme:other-{i}", ["back"], ["there"]) for i in range(6)]
        page.fill("#manifest", manifests(*two, manifest("acme:one", ["there"], ["back"])))
        page.click("button[value=publish]")
        page.wait_for_url("**/published?*")
        text = page.locator("[data-report]").last.inner_text()
        assert ("There may be more loops." in text, "This version was not fully verified." in text) == (more, unverified)


@pytest.mark.promise("U-1", "U-11")
def test_an_agent_is_published_by_keyboard_alone(stage: Stage, visit: Open) -> None:
    page = visit(stage.author).go("/agents")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "New agent"
    page.keyboard.press("Enter")
    page.wait_for_url("**/publish")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "manifest":
            break
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(manifest("acme/platform:typed", ["typed"]))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/acme%2Fplatform%3Atyped/versions/1?done=published")


@pytest.mark.promise("U-1")
def test_somebody_who_published_meanwhile_is_not_overwritten_without_a_word(stage: Stage, visit: Open) -> None:
    stage.world.publish(stage.author, "acme/platform:shared", ["one"])
    page = visit(stage.author).go("/publish?agent=acme/platform:shared")
    stage.world.publish(stage.author, "acme/platform:shared", ["two"])
    page.fill("#manifest", page.input_value("#manifest").replace("one", "three"))
    page.click("button[value=publish]")
    assert "has number 3, not 2" in page.locator("p.fault").inner_text()
    assert "three" in page.input_value("#manifest")


@pytest.mark.promise("U-1")
def test_an_agent_is_paused_resumed_and_retired_from_its_page(stage: Stage, visit: Open) -> None:
    stage.world.publish(stage.author, "acme/platform:passing", ["passed"])
    page = visit(stage.author).go("/agents/acme%2Fplatform%3Apassing")
    page.get_by_role("button", name="Pause").click()
    assert "paused" in page.locator(".heading").inner_text()
    page.get_by_role("button", name="Resume").click()
    assert "paused" not in page.locator(".heading").inner_text()
    page.locator("summary", has_text="Retire").click()
    page.get_by_role("button", name="Retire").click()
    assert "retired" in page.locator(".heading").inner_text()
    assert visit(stage.reader).go("/agents/acme%2Fplatform%3Apassing").locator(".acts").count() == 0
