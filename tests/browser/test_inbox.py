"""The inbox, proposals and pipelines in a browser."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Open, tab_to
from tests.browser.hall import Hall, wanted
from tests.browser.stage import Stage


@pytest.mark.promise("U-7", "U-11")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_proposal_is_found_in_the_inbox_and_approved_by_keyboard_alone(
    stage: Stage, hall: Hall, visit: Open, scripts: bool
) -> None:
    proposed = hall.propose(goal=f"Approve me, {scripts}.", budget={"tool_calls": 70, "money_microusd": 2_500_000})
    page = visit(stage.author, scripts=scripts).go(f"{hall.path}/inbox")
    assert f"Approve me, {scripts}." in page.locator("#proposals").inner_text()
    page.focus(f"#proposals a >> text=Proposal {proposed}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/proposals/{proposed}")
    shown = page.locator("main").inner_text()
    assert "US$2.50 · 70 tool calls" in shown
    assert "acme/platform:writer" in shown
    assert (
        page.locator(".digest").inner_text()
        == stage.world.cases.orchestrating.read.proposal(stage.author, proposed).revision.digest
    )
    tab_to(page, "approve")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pipelines/*")
    assert page.locator("tr[data-key] th").all_inner_texts() == ["a", "b", "c", "d", "synthesis"]
    page.goto(f"{stage.url}{hall.path}/proposals/{proposed}")
    assert "approved" in page.locator(".heading").inner_text()
    assert page.locator("#approve").count() == 0


@pytest.mark.promise("U-7", "U-11")
def test_a_proposal_is_declined_by_keyboard_with_a_reason(stage: Stage, hall: Hall, visit: Open) -> None:
    proposed = hall.propose(goal="Decline me.")
    page = visit(stage.author).go(f"{hall.path}/proposals/{proposed}")
    tab_to(page, "reason")
    page.keyboard.type("Not this week")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".heading .tag.bad").wait_for()
    assert "Not this week" in page.locator("dl").inner_text()


@pytest.mark.promise("U-7", "U-9")
def test_a_pipeline_is_come_to_from_its_space_and_followed_while_it_runs(stage: Stage, hall: Hall, visit: Open) -> None:
    office = hall.office
    stage.bench.settle()
    proposed = office.propose(wanted(goal="Follow me."))
    pipeline = office.approve(proposed)
    page = visit(stage.author).go(f"{hall.path}/spaces/{hall.space.id}")
    page.click(f"#space-activity >> text=Pipeline {pipeline.id}")
    page.wait_for_url(f"**/pipelines/{pipeline.id}")
    page.evaluate("window.never_loaded_again = true")
    assert page.locator("tr[data-key=a] .state-waiting").count() == 1
    office.rounds(pipeline)
    page.locator(".heading .state-finished").wait_for()
    assert page.locator("tr[data-key] .state-finished").count() == 10
    assert page.evaluate("window.never_loaded_again")
    page.click("tr[data-key=synthesis] a >> text=run")
    page.wait_for_url("**/runs/*")


@pytest.mark.promise("U-7")
def test_the_inbox_leads_to_the_run_at_its_ceiling_and_to_the_message_that_mentions_one(
    stage: Stage, hall: Hall, visit: Open
) -> None:
    page = visit(stage.admin).go("/inbox")
    row = page.locator("#budgets tr", has_text=f"Run {hall.stopped}")
    assert "tool calls · acme/platform:spender" in row.inner_text()
    row.locator("th a").click()
    page.wait_for_url(f"**/runs/{hall.stopped}")
    page.go_back()
    page.locator("#mentions li", has_text="the figures are there").locator(".message-head > a").last.click()
    page.wait_for_url(f"**/spaces/{hall.space.id}?after=*")
    assert "the figures are there" in page.locator(".message").first.inner_text()
