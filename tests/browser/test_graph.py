"""The graph page in a browser."""

from __future__ import annotations

import pytest
from agentplat.domain.scopes import Ref

from tests.agentplat.run_records import agent_of
from tests.browser.conftest import Open
from tests.browser.stage import Stage


@pytest.mark.promise("U-8")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_the_graph_shows_who_starts_whom_as_a_picture_and_as_a_table(stage: Stage, visit: Open, scripts: bool) -> None:
    page = visit(stage.author, scripts=scripts).go("/graph?scope=acme/platform")
    row = page.locator("tbody tr", has=page.locator("th a[href='/agents/acme%2Fplatform%3Adeveloper']"))
    assert "change.rejected: acme/platform:reviewer" in row.inner_text()
    assert "change.proposed: acme/platform:reviewer, acme/quality:tester" in row.inner_text()
    assert "loop group" in row.inner_text()
    assert "own event echo.heard" in page.locator("tbody tr", has_text="acme/platform:echo").inner_text()
    titles = page.locator("svg .looping title").evaluate_all("all => all.map(one => one.textContent)")
    assert {"acme/platform:developer", "acme/quality:tester", "change.proposed", "test.failed"} <= set(titles)
    assert not {"acme/platform:echo", "echo.heard", "release.made", "acme/platform:releaser"} & set(titles)
    assert page.locator("svg .around title", has_text="acme/quality:tester").count() == 1
    assert "release.made" in page.locator("section", has_text="Events nobody hears").first.inner_text()


@pytest.mark.promise("U-8")
def test_a_reader_sees_their_part_of_the_graph_and_no_more(stage: Stage, visit: Open) -> None:
    page = visit(stage.reader).go("/graph?scope=acme")
    text = page.content()
    assert "acme/quality" not in text
    assert "acme/support" not in text
    unfed = page.locator("section", has_text="Triggers nobody emits").first.inner_text()
    assert "ticket.triaged" in unfed
    assert "test.failed" in unfed
    assert page.goto(stage.url + "/graph?scope=acme/quality") is not None
    assert "There is no published agent that you may read here." in page.content()


@pytest.mark.promise("U-8", "U-11")
def test_an_agent_is_found_in_the_picture_by_keyboard_and_lights_up_its_neighbours(stage: Stage, visit: Open) -> None:
    page = visit(stage.author).go("/graph?scope=acme/platform")
    page.locator("svg a[href$='%3Adeveloper']").focus()
    page.wait_for_selector("svg.dimmed")
    lit = page.locator("svg [data-node].lit title").evaluate_all("all => all.map(one => one.textContent)")
    assert set(lit) == {"acme/platform:developer", "change.rejected", "change.proposed", "test.failed", "ticket.triaged"}
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/acme%2Fplatform%3Adeveloper")


@pytest.mark.promise("U-8")
def test_three_hundred_agents_are_drawn_without_overlap(stage: Stage, visit: Open) -> None:
    for i in range(300):
        agent_of(stage.world.store, Ref("crowd", f"agent-{i}"), (f"crowd.{i}",), (f"crowd.{(i * 7 + 1) % 300}",))
    page = visit(stage.admin).go("/graph?scope=crowd")
    assert page.locator("tbody tr").count() == 300
    boxes = page.locator("svg [data-node] rect").evaluate_all(
        "all => all.map(one => { const b = one.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
    )
    assert len(boxes) == 600
    boxes.sort()
    for i, (_, top, right, bottom) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            if other[0] >= right:
                break
            assert other[1] >= bottom or other[3] <= top
