"""Runs, approvals and monitoring in a browser."""

from __future__ import annotations

import json

import pytest
from agentplat.domain.scopes import Ref

from tests.agentplat.run_records import stored
from tests.browser.conftest import Open
from tests.browser.stage import Stage


def _last_of_chain(stage: Stage) -> int:
    """The developer's first run at the last hop."""
    with stage.world.store.reading() as work:
        chain = work.runs.of_chain(1, 1_000)
    return next(run.id for run in chain if run.hop == 8 and run.agent.name == "developer")


@pytest.mark.promise("U-6")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_run_tells_its_place_in_the_chain_and_what_was_withheld(stage: Stage, visit: Open, scripts: bool) -> None:
    page = visit(stage.author, scripts=scripts).go(f"/runs/{_last_of_chain(stage)}")
    facts = page.locator("#run-facts").inner_text()
    assert "hop 8 of 8 · opened by" in facts
    assert "its chain begins with run 1" in facts
    withheld = page.locator(".report.warns").inner_text()
    assert "This is hop 8, the last of the chain, so its events were not published: change.proposed" in withheld
    assert "acme/platform:developer → acme/platform:reviewer → acme/platform:developer" in withheld
    assert page.locator("text=the chain has come to its last hop").count() == 2
    assert "area:acme/platform" in facts


@pytest.mark.promise("U-6")
def test_a_run_tells_what_it_opened_and_names_its_artifacts_by_reference(stage: Stage, visit: Open) -> None:
    here = visit(stage.author)
    page = here.go("/runs/1")
    opened = page.locator("section", has=page.locator("h2", has_text="What it opened")).inner_text()
    assert "acme/platform:reviewer" in opened
    assert "run 2" in opened
    artifacts = page.locator("section", has=page.locator("h2", has_text="Artifacts")).inner_text()
    assert "patch" in artifacts
    assert "sha256:" in artifacts
    page.click("text=Raw JSON")
    raw = json.loads(page.locator("body").inner_text())
    assert [step["kind"] for step in raw["steps"]][-1] == "closing"
    assert [step["number"] for step in raw["steps"]] == list(range(1, len(raw["steps"]) + 1))


@pytest.mark.promise("U-6")
def test_a_reader_of_one_area_sees_nothing_of_the_other_agents_of_a_chain(stage: Stage, visit: Open) -> None:
    here = visit(stage.reader)
    for run_id in (1, _last_of_chain(stage)):
        page = here.go(f"/runs/{run_id}")
        assert "tester" not in page.content()
        assert "acme/quality" not in page.content()


@pytest.mark.promise("U-6")
def test_the_gates_rulings_the_cost_and_the_labels_are_on_the_page(stage: Stage, visit: Open) -> None:
    agent = Ref("acme/support", "surfer")
    stage.bench.settle()
    stage.shop.publish(agent)
    run = stage.shop.open(agent)
    stage.shop.call(run, 1, "web", {"text": "hello"})
    stage.shop.call(stored(stage.world.store, run.id), 2, "delete", {"text": "all"})
    page = visit(stage.author).go(f"/runs/{run.id}")
    trail = page.locator("#run-steps").inner_text()
    assert "The Gate lets call 1 through" in trail
    assert "The Gate stops call 2 (rule taint)" in trail
    assert "untrusted" in page.locator("#run-facts").inner_text()
    assert "1 tool call" in page.locator("#run-facts").inner_text()


@pytest.mark.promise("U-6", "U-11")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_an_approver_sees_exactly_what_would_run_and_grants_it_by_keyboard(stage: Stage, visit: Open, scripts: bool) -> None:
    asked = stage.question("\u202e<b>100")
    page = visit(stage.admin, scripts=scripts).go("/inbox")
    page.click(f"text=Approval {asked.id}")
    shown = page.locator("section.card").inner_text()
    assert "financial" in shown
    assert '"text": "U+202E<b>100"' in shown
    page.focus("#reason")
    page.keyboard.type("agreed")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{asked.run_id}")
    assert "approved call 1" in page.locator("#run-steps").inner_text()


@pytest.mark.promise("U-6")
def test_what_was_not_shown_is_not_approved(stage: Stage, visit: Open) -> None:
    asked = stage.question("7")
    page = visit(stage.admin).go(f"/approvals/{asked.id}")
    page.locator("[name=digest]").evaluate("one => { one.value = '0'.repeat(64); }")
    page.click("text=Grant")
    assert "what you saw is not what would run" in page.locator("p.fault").inner_text()
    page.click("text=Refuse")
    page.wait_for_url(f"**/runs/{asked.run_id}")
    assert "did not approve call 1" in page.locator("#run-steps").inner_text()
    assert visit(stage.reader).go("/inbox").locator("tbody tr").count() == 0


@pytest.mark.promise("U-11")
def test_a_run_is_opened_and_cancelled_from_the_pages(stage: Stage, visit: Open) -> None:
    page = visit(stage.author).go("/agents/acme%2Fplatform%3Areleaser")
    page.fill("#input", "Release it.")
    page.get_by_role("button", name="Open a run").click()
    page.wait_for_url("**/runs/*")
    assert "queued" in page.locator("#run-head").inner_text()
    page.locator("summary", has_text="Cancel").click()
    page.get_by_role("button", name="Cancel the run").click()
    page.wait_for_selector("#run-head >> text=cancelled")


@pytest.mark.promise("U-11")
def test_insights_are_narrowed_by_agent_outcome_and_period(stage: Stage, visit: Open) -> None:
    page = visit(stage.author).go("/monitoring/insights")
    page.fill("#agent", "acme/platform:developer")
    page.select_option("#state", "finished")
    page.select_option("#period", "30d")
    page.get_by_role("button", name="Show").click()
    rows = page.locator("table").nth(1).locator("tbody tr")
    assert rows.count() > 1
    assert all("developer" in text and "finished" in text for text in rows.all_inner_texts())
    assert page.locator("table").first.locator("tbody tr").first.inner_text().split("\t")[1] == str(rows.count())
