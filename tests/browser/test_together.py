"""Workspaces, spaces and tickets in a browser."""

from __future__ import annotations

import pytest
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Status

from tests.agentplat.world import manifest
from tests.browser.conftest import Open, tab_to
from tests.browser.stage import HOSTILE, Stage


def _office(stage: Stage, name: str) -> tuple[int, int, int]:
    """A workspace of acme/platform with a space and a ticket: their ids, and the ticket's number."""
    together = stage.world.cases.together
    stage.world.cases.publish_version(stage.author, manifest("acme/platform:helper", driver={"kind": "external"}), "helper.yaml")
    workspace = together.workspaces.create(stage.author, "acme/platform", name)
    space = together.spaces.create(stage.author, workspace.id, "hall")
    ticket = together.tickets.create(stage.author, workspace.id, "Mend the <b>build</b>", "It is red.")
    return workspace.id, space.id, ticket.number


@pytest.mark.promise("U-2")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_workspace_begins_with_its_inbox_and_has_no_page_of_its_own(stage: Stage, visit: Open, scripts: bool) -> None:
    workspace, _, number = _office(stage, f"begin-{scripts}")
    page = visit(stage.reader, scripts=scripts).go(f"/workspaces/{workspace}")
    assert page.url == f"{stage.url}/workspaces/{workspace}/inbox"
    assert f"#{number}" in page.locator("tbody").inner_text()
    assert page.locator("b", has_text="build").count() == 0
    outsider = stage.world.person("globex:eve", "author=globex")
    answer = visit(outsider, scripts=scripts).page.goto(f"{stage.url}/workspaces/{workspace}")
    assert answer is not None
    assert answer.status == 404


@pytest.mark.promise("U-3")
def test_monitoring_of_a_workspace_is_at_its_address_and_of_its_agents_alone(stage: Stage, visit: Open) -> None:
    workspace, _, _ = _office(stage, "watched")
    page = visit(stage.author).go(f"/workspaces/{workspace}/observability")
    row = page.locator("#roster tr", has_text="acme/platform:helper")
    assert "idle" in row.inner_text()
    assert "acme/quality" not in page.locator("#roster").inner_text()
    run = stage.world.cases.open_run(stage.author, Ref("acme/platform", "helper"), None)
    row.locator("text=queued").wait_for()
    assert f"run {run.id}" in row.inner_text()
    page.click("main >> text=Insights")
    assert "acme/quality" not in page.locator("main").inner_text()
    assert "the period before" in page.locator("main").inner_text()
    stage.world.cases.cancel_run(stage.author, run.id)


@pytest.mark.promise("U-4")
def test_work_is_handed_over_with_completed_names_and_what_comes_back_appears_by_itself(stage: Stage, visit: Open) -> None:
    workspace, space, number = _office(stage, "handed-over")
    here = visit(stage.author)
    page = here.go(f"/workspaces/{workspace}/spaces/{space}")
    page.focus("#body")
    page.keyboard.type("Please @hel")
    page.locator("#completions li", has_text="acme/platform:helper").wait_for()
    page.keyboard.press("Enter")
    page.keyboard.type("look at #Mend")
    page.locator("#completions li", has_text="build").wait_for()
    page.keyboard.press("Enter")
    assert page.input_value("#body") == f"Please @helper look at #{number} "
    page.get_by_role("button", name="Send").click()
    said = page.locator(".message.said")
    said.wait_for()
    assert f"#{number}" in said.inner_text()
    assert "run " in said.locator(".hint").inner_text()
    assert "acme/platform:helper" in page.locator("#space-activity").inner_text()
    page.evaluate("window.never_loaded_again = true")
    stage.world.cases.together.converse.post(stage.author, workspace, space, "Somebody else says <i>this</i>")
    page.locator(".message", has_text="Somebody else says <i>this</i>").wait_for()
    numbers = page.locator("[data-message]").evaluate_all("all => all.map(one => one.dataset.message)")
    assert len(numbers) == len(set(numbers))
    assert page.evaluate("window.never_loaded_again")


@pytest.mark.promise("U-4")
def test_mode_and_participants_are_chosen_without_scripts_and_what_is_ambiguous_comes_back(stage: Stage, visit: Open) -> None:
    workspace, space, _ = _office(stage, "plain")
    page = visit(stage.author, scripts=False).go(f"/workspaces/{workspace}/spaces/{space}")
    assert [text.strip() for text in page.locator("#mode option").all_text_contents()] == ["agent", "plan", "orchestrate"]
    page.locator("summary", has_text="participant").click()
    page.select_option("#agent", "acme/platform:helper")
    page.get_by_role("button", name="Add").click()
    assert "1 participant" in page.locator("summary", has_text="participant").inner_text()
    page.select_option("#mode", "plan")
    page.fill("#body", "We plan now, @nobody-of-this-name")
    page.get_by_role("button", name="Send").click()
    assert "nobody-of-this-name" in page.locator("p.fault").inner_text()
    assert "We plan now" in page.input_value("#body")
    page.fill("#body", "We plan now")
    page.get_by_role("button", name="Send").click()
    page.locator(".message.said").wait_for()
    assert page.locator(".heading .tag").first.inner_text() == "plan"
    assert visit(stage.reader).go(f"/workspaces/{workspace}/spaces/{space}").locator("#composer").count() == 0


@pytest.mark.promise("U-5")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_ticket_has_status_roles_comments_and_no_mode(stage: Stage, visit: Open, scripts: bool) -> None:
    workspace, space, number = _office(stage, f"ticketed-{scripts}")
    stage.world.cases.together.converse.post(stage.author, workspace, space, f"See #{number}")
    here = visit(stage.author, scripts=scripts)
    page = here.go(f"/workspaces/{workspace}/tickets/{number}")
    page.select_option("#status", "in_progress")
    page.get_by_role("button", name="Set").click()
    assert page.locator(".heading .tag").inner_text() == "in progress"
    page.select_option("#role", "assignee")
    page.select_option("#party", "agent acme/platform:helper")
    page.get_by_role("button", name="Add").click()
    assert "Assignee: acme/platform:helper" in page.locator("main").inner_text()
    page.fill("#body", "Nearly done")
    page.get_by_role("button", name="Send").click()
    assert "Nearly done" in page.locator(".messages").inner_text()
    assert "See #" in page.locator("main").inner_text()
    assert page.locator("#mode").count() == 0
    # Being the assignee started nothing.
    assert page.locator("h2", has_text="Runs").count() == 0


@pytest.mark.promise("U-5")
def test_a_status_that_somebody_else_changed_meanwhile_is_not_overwritten(stage: Stage, visit: Open) -> None:
    workspace, _, number = _office(stage, "raced")
    page = visit(stage.author).go(f"/workspaces/{workspace}/tickets/{number}")
    stage.world.cases.together.tickets.change(stage.author, workspace, number, 1, {"status": Status.BLOCKED.value})
    page.select_option("#status", "done")
    page.get_by_role("button", name="Set").click()
    assert "has version 2 by now, not 1" in page.locator("p.fault").inner_text()
    assert page.locator(".heading .tag").inner_text() == "blocked"


@pytest.mark.promise("U-10")
def test_what_moves_text_does_nothing_in_a_conversation_on_a_phone(stage: Stage, visit: Open) -> None:
    workspace, space, _ = _office(stage, "hostile")
    for name in HOSTILE:
        stage.world.cases.together.converse.post(stage.author, workspace, space, f"{name} \u202eab")
    page = visit(stage.author, "he", phone=True).go(f"/workspaces/{workspace}/spaces/{space}")
    assert page.locator(".message .control").all_text_contents() == ["U+202E"] * len(HOSTILE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.promise("U-4", "U-11")
def test_a_message_is_written_completed_and_sent_by_keyboard_alone(stage: Stage, visit: Open) -> None:
    workspace, space, _ = _office(stage, "typed")
    page = visit(stage.author).go(f"/workspaces/{workspace}/spaces/{space}")
    tab_to(page, "body")
    page.keyboard.type("Hello @hel")
    page.locator("#completions li", has_text="acme/platform:helper").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.type("p")
    page.locator("#completions li", has_text="acme/platform:helper").wait_for()
    page.keyboard.press("Tab")
    assert page.input_value("#body") == "Hello @helper "
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".message.said", has_text="Hello @helper").wait_for()


@pytest.mark.promise("U-5", "U-11")
def test_a_ticket_is_moved_and_commented_on_by_keyboard_alone(stage: Stage, visit: Open) -> None:
    workspace, _, number = _office(stage, "typed-ticket")
    page = visit(stage.author).go(f"/workspaces/{workspace}/tickets/{number}")
    tab_to(page, "status")
    page.keyboard.type("bl")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".heading .status-blocked").wait_for()
    tab_to(page, "body")
    page.keyboard.type("Blocked by the weather")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".messages", has_text="Blocked by the weather").wait_for()
