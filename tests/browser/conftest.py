"""A stage for the pages and a real browser in front of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from agentplat.domain.access import Access
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, expect, sync_playwright

from tests.browser.hall import Hall, furnish
from tests.browser.stage import Stage, hostile, staged
from tests.browser.visits import signed_in

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
PHONE, DESK = {"width": 390, "height": 800}, {"width": 1200, "height": 800}
WAIT_MS = 60_000
"""Far above what a busy machine needs."""
expect.set_options(timeout=WAIT_MS)
AXE_OPTIONS = {"resultTypes": ["violations"]}
"""Nothing is gathered about what is in order, which takes most of the time."""


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A platform with agents, one chain of runs, one question, and hostile names; tests add to it and take nothing away."""
    with staged(tmp_path_factory.mktemp("stage")) as opened:
        hostile(opened.world, opened.admin)
        opened.chain()
        opened.question()
        yield opened


@pytest.fixture(scope="package")
def hall(stage: Stage) -> Hall:
    """A workspace in use."""
    return furnish(stage)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        reason = f"there is no Chromium; install one of {', '.join(CHROMIUMS)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@dataclass(kw_only=True)
class Visit:
    """Somebody with a browser of their own. requests: every address asked for. faults: what went wrong in it."""

    stage: Stage
    context: BrowserContext
    page: Page
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Load a page, which must be there."""
        answer = self.page.goto(self.stage.url + path)
        assert answer is not None
        assert answer.ok, f"{path} gives {answer.status}"
        return self.page

    def serious(self) -> list[tuple[str, object]]:
        """What keeps people from using the page that are served by screen readers, keyboards or high contrast."""
        found = Axe().run(self.page, options=AXE_OPTIONS).response["violations"]
        return [(fault["id"], fault["nodes"][0]["target"]) for fault in found if fault["impact"] in ("serious", "critical")]

    def report(self) -> str:
        """The lines of the first report on the page, as they stand there."""
        return "\n".join(self.page.locator("[data-report]").first.locator("p").evaluate_all("all => all.map(p => p.textContent)"))


Open = Callable[..., Visit]


def tab_to(page: Page, name: str) -> None:
    """Press the Tab key until the focus is on the element of this id."""
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == name:
            return
    raise AssertionError(f"no Tab leads to #{name}")


@pytest.fixture
def visit(stage: Stage, browser: Browser) -> Iterator[Open]:
    """Opens a browser for somebody who is signed in, or for nobody."""
    opened: list[Visit] = []

    def go_in(who: Access | None, language: str = "en", *, scripts: bool = True, phone: bool = False, at: Stage = stage) -> Visit:
        context = browser.new_context(locale=language, java_script_enabled=scripts, viewport=PHONE if phone else DESK)
        context.set_default_timeout(WAIT_MS)
        context.set_default_navigation_timeout(WAIT_MS)
        found = Visit(stage=at, context=context, page=context.new_page())
        opened.append(found)

        def asked(request: Request) -> None:
            found.requests.append(request.url)

        context.on("request", asked)
        found.page.on("pageerror", lambda error: found.faults.append(str(error)))
        found.page.on("console", lambda told: found.faults.append(told.text) if _is_fault(told) else None)
        found.page.on("response", lambda got: found.faults.append(f"{got.status} {got.url}") if _is_missing(got) else None)
        if who is not None:
            # By the form that a browser sends: typing a token into it is a test of its own.
            with signed_in(at, who, language) as client:
                context.add_cookies([{"name": name, "value": value, "url": at.url} for name, value in client.cookies.items()])
        return found

    def _is_fault(told: ConsoleMessage) -> bool:
        # That a page is a refusal is written there too.
        return told.type == "error" and "Failed to load resource" not in told.text

    def _is_missing(got: Response) -> bool:
        return got.status >= 400 and got.request.resource_type != "document"

    yield go_in
    for one in opened:
        one.context.close()
        assert one.faults == []
        assert [url for url in one.requests if not url.startswith(one.stage.url)] == []
