"""What people do on the pages by keyboard alone: at a desk, without scripts, and without scripts on a phone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from agentplat.domain.scopes import Ref
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, Visit
from tests.browser.hall import Hall, wanted
from tests.browser.stage import Stage

pytestmark = pytest.mark.promise("U-11")


@dataclass(frozen=True, kw_only=True)
class Way:
    """How somebody sits in front of the pages."""

    name: str
    scripts: bool = False
    phone: bool = False


WAYS = (Way(name="desk", scripts=True), Way(name="no-scripts"), Way(name="phone", phone=True))
ways = pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])


def _onto(page: Page, which: str) -> None:
    """Press the Tab key until the focus is on an element that this selector means, and see that it can be seen to be there."""
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("which => document.activeElement.matches(which)", which):
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"no Tab leads to {which}")


def _choose(page: Page, name: str, value: str) -> None:
    """Come to a list and go down in it to a value."""
    _onto(page, f"#{name}")
    page.keyboard.press("Home")
    for _ in range(page.locator(f"#{name} option").count()):
        if page.input_value(f"#{name}") == value:
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"#{name} has no {value}")


def _fits(here: Visit) -> None:
    """Nothing of the page lies beside the screen."""
    assert here.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _press(page: Page, button: str) -> None:
    """Come to a button and press it."""
    for _ in range(300):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.localName === 'button' && document.activeElement.innerText.trim()") == button:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"no Tab leads to the button {button}")


@ways
def test_a_pipeline_is_cancelled_with_a_reason(stage: Stage, hall: Hall, visit: Open, way: Way) -> None:
    pipeline = hall.office.approve(hall.office.propose(wanted(goal=f"Cancel me, {way.name}.")))
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go(f"{hall.path}/pipelines/{pipeline.id}")
    _onto(page, "#pipeline-cancel summary")
    page.keyboard.press("Enter")
    _onto(page, "#reason")
    page.keyboard.type("Not needed any more")
    _press(page, "Cancel the pipeline")
    expect(page.locator(".heading .state-cancelled")).to_be_visible()
    expect(page.locator("dl.facts").first).to_contain_text("Not needed any more")
    expect(page.locator("#pipeline-cancel")).to_have_count(0)
    _fits(here)


@ways
def test_a_run_is_opened_and_cancelled(stage: Stage, visit: Open, way: Way) -> None:
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go("/agents/acme%2Fplatform%3Areleaser")
    _onto(page, "#input")
    page.keyboard.type(f"Release it, {way.name}.")
    _press(page, "Open a run")
    page.wait_for_url("**/runs/*")
    expect(page.locator("#run-head")).to_contain_text("queued")
    _fits(here)
    _onto(page, "#run-cancel summary")
    page.keyboard.press("Enter")
    _press(page, "Cancel the run")
    expect(page.locator("#run-head")).to_contain_text("cancelled")
    expect(page.locator("#run-cancel")).to_have_count(0)


@ways
def test_an_agent_is_paused_and_resumed(stage: Stage, visit: Open, way: Way) -> None:
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go("/agents/acme%2Fplatform%3Aecho")
    _press(page, "Pause")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    _fits(here)
    _press(page, "Resume")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


@ways
def test_the_roster_leads_to_an_agent(stage: Stage, hall: Hall, visit: Open, way: Way) -> None:
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go(f"{hall.path}/observability")
    _onto(page, '#roster a[href$="releaser"]')
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/acme%2Fplatform%3Areleaser")
    _fits(here)


@ways
@pytest.mark.parametrize("within", [True, False], ids=["workspace", "everywhere"])
def test_insights_are_narrowed(stage: Stage, hall: Hall, visit: Open, within: bool, way: Way) -> None:
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go(f"{hall.path}/observability/insights" if within else "/monitoring/insights")
    _choose(page, "period", "30d")
    _onto(page, "#agent")
    page.keyboard.type("acme/platform:developer")
    _choose(page, "state", "finished")
    _press(page, "Show")
    page.wait_for_url("**period=30d*state=finished*")
    rows = page.locator("table").nth(1).locator("tbody tr")
    assert rows.count() > 1
    assert all("developer" in text and "finished" in text for text in rows.all_inner_texts())
    _fits(here)


@ways
def test_a_workspace_a_space_and_a_ticket_are_made(stage: Stage, visit: Open, way: Way) -> None:
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go("/workspaces")
    _onto(page, "#name")
    page.keyboard.type(f"Typed {way.name}")
    _press(page, "Create")
    page.wait_for_url("**/inbox")
    place = page.url.removesuffix("/inbox").removeprefix(stage.url)
    here.go(f"{place}/spaces")
    _onto(page, "#name")
    page.keyboard.type("hall")
    _choose(page, "mode", "plan")
    _press(page, "Create")
    page.wait_for_url("**/spaces/*")
    expect(page.locator(".heading .tag").first).to_have_text("plan")
    _fits(here)
    here.go(f"{place}/tickets")
    _onto(page, "#title")
    page.keyboard.type("Mend the build")
    _onto(page, "#description")
    page.keyboard.type("It is red.")
    _press(page, "Create")
    page.wait_for_url("**/tickets/1")
    expect(page.locator("h1")).to_contain_text("Mend the build")
    _fits(here)
    here.go(f"{place}/tickets")
    _choose(page, "status", "done")
    _press(page, "Show")
    expect(page.locator("main")).not_to_contain_text("Mend the build")


@ways
def test_a_ticket_is_moved_and_given_to_an_agent(stage: Stage, visit: Open, way: Way) -> None:
    together = stage.world.cases.together
    workspace = together.workspaces.create(stage.author, "acme/platform", f"Moved {way.name}")
    together.tickets.create(stage.author, workspace.id, "Mend it", "")
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go(f"/workspaces/{workspace.id}/tickets/1")
    _choose(page, "status", "blocked")
    _press(page, "Set")
    expect(page.locator(".heading .status-blocked")).to_be_visible()
    _choose(page, "role", "assignee")
    _choose(page, "party", "agent acme/platform:releaser")
    _press(page, "Add")
    expect(page.locator("main")).to_contain_text("Assignee: acme/platform:releaser")
    _fits(here)
    assert together.tickets.one(stage.author, workspace.id, 1).involved[0].party.ref == Ref("acme/platform", "releaser")


@ways
def test_the_runs_and_the_raw_trail_are_come_to(stage: Stage, visit: Open, way: Way) -> None:
    here = visit(stage.author, scripts=way.scripts, phone=way.phone)
    page = here.go("/runs")
    _onto(page, 'main a[href^="/runs/"]')
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    _fits(here)
    _onto(page, 'a[href$="/trail.json"]')
    page.keyboard.press("Enter")
    page.wait_for_url("**/trail.json")
