"""What holds on every page: accessibility, languages, phones, and no script where a page promises to do without."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Open
from tests.browser.hall import Hall
from tests.browser.stage import Stage

DEVELOPER = "/agents/acme%2Fplatform%3Adeveloper"
PAGES = (
    "/agents",
    DEVELOPER,
    f"{DEVELOPER}/versions/1",
    "/publish?agent=acme/platform:developer",
    "/graph?scope=acme",
    "/runs",
    "/runs/1",
    "/inbox",
    "/inbox?decided=true",
    "/workspaces",
    "/approvals/1",
    "/monitoring/live",
    "/monitoring/insights",
)
MEASURE = """() => ({
    lang: document.documentElement.lang,
    dir: getComputedStyle(document.body).direction,
    over: document.documentElement.scrollWidth - innerWidth,
})"""


@pytest.mark.promise("U-11")
@pytest.mark.parametrize("part", range(4))
def test_no_page_has_a_serious_fault_for_people_who_use_it_otherwise(stage: Stage, hall: Hall, visit: Open, part: int) -> None:
    # Every page light and left to right; every third one dark and right to left too.
    pages = (*PAGES, *hall.pages)
    looks = [*(("en", "light", path) for path in pages[part::4]), *(("he", "dark", path) for path in pages[part::12])]
    for language in ("en", "he"):
        here = visit(stage.admin, language)
        for spoken, scheme, path in looks:
            if spoken == language:
                here.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                here.go(path)
                assert (path, here.serious()) == (path, [])
    nobody = visit(None)
    nobody.go("/sign-in")
    assert nobody.serious() == []


@pytest.mark.promise("U-11")
@pytest.mark.parametrize(("language", "direction"), [("en", "ltr"), ("pt", "ltr"), ("he", "rtl")])
def test_every_page_fits_a_phone_in_every_language(stage: Stage, hall: Hall, visit: Open, language: str, direction: str) -> None:
    here = visit(stage.admin, language, phone=True)
    for path in (*PAGES, *hall.pages):
        found = here.go(path).evaluate(MEASURE)
        assert (path, found["lang"], found["dir"], max(0, found["over"])) == (path, language, direction, 0)


@pytest.mark.promise("U-11")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_language_is_chosen_on_any_page_and_kept(stage: Stage, visit: Open, scripts: bool) -> None:
    page = visit(stage.reader, scripts=scripts).go("/runs")
    page.get_by_role("button", name="עברית").click()
    page.wait_for_url("**/runs")
    assert page.locator("html").get_attribute("dir") == "rtl"
    assert page.locator("h1").inner_text() == "הרצות"
    page.goto(stage.url + "/agents")
    assert page.locator("h1").inner_text() == "סוכנים"
    page.get_by_role("button", name="Português").click()
    assert page.locator("h1").inner_text() == "Agentes"


@pytest.mark.promise("U-11")
def test_somebody_signs_in_and_out_without_scripts_and_comes_back_to_their_page(stage: Stage, visit: Open) -> None:
    here = visit(None, scripts=False)
    page = here.go("/graph?scope=acme/platform")
    page.wait_for_url("**/sign-in?next=*")
    page.fill("#token", "apt_wrong")
    page.keyboard.press("Enter")
    assert page.locator("[role=alert]").inner_text() == "This token is not valid here."
    page.fill("#token", stage.world.token(stage.reader))
    page.keyboard.press("Enter")
    page.wait_for_url("**/graph?scope=acme/platform")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.goto(stage.url + "/agents")
    page.wait_for_url("**/sign-in?next=*")
