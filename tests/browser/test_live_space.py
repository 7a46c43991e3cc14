"""A space that stays open while an agent works in it, and while the server is killed and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.together.hall import Caller, Hall, Room, hall
from tests.browser.conftest import WAIT_MS

CALLS, BEFORE = 20, 9
"""Steps of the agent's, and how many of them before the server is killed."""


def _open(browser: Browser, room: Room) -> Page:
    """The space of the room in front of somebody who has signed in by the form."""
    page = browser.new_context(locale="en").new_page()
    page.set_default_timeout(WAIT_MS)
    place = room.space.removeprefix("/v1")
    page.goto(f"{room.hall.server.url}{place}")
    page.fill("#token", room.boss.secret)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{place}")
    page.evaluate("window.never_loaded_again = true")
    return page


def _step(here: Hall, program: str, number: int) -> None:
    """The agent's next step: it says which one it is."""
    call = {"call": number, "tool": "post_message", "arguments": {"text": f"step {number} of {CALLS}"}}
    given = Caller(here.root.client, program).post("/v1/external/run/calls", call)
    assert given["result"] == "done"


def _expect_steps(page: Page, here: Hall, run: int, number: int) -> int:
    """Wait until the page shows so many steps of the agent, each once and in order, and how far its trail is. How far it is."""
    expect(page.locator(".message.progress .message-body")).to_have_text(
        [f"step {one} of {CALLS}" for one in range(1, number + 1)], timeout=WAIT_MS
    )
    trail: int = here.root.get(f"/v1/runs/{run}")["steps"]
    expect(page.locator("#space-activity li", has_text=f"run {run}")).to_contain_text(f"· {trail} steps")
    return trail


@pytest.mark.promise("U-9")
def test_a_run_is_followed_step_by_step_in_its_space_also_after_the_server_was_killed(browser: Browser, tmp_path: Path) -> None:
    with hall(tmp_path) as first:
        room = first.room()
        room.publish("alice")
        page = _open(browser, room)
        expect(page.locator("#space-activity")).to_contain_text("Nobody works here just now.")
        room.say("@alice count to twenty")
        program = room.take()
        trails = []
        for number in range(1, BEFORE + 1):
            _step(first, program.secret, number)
            trails.append(_expect_steps(page, first, program.run, number))
        first.server.process.kill()
        first.server.process.wait(WAIT_MS / 1_000)
        expect(page.locator("#space-link")).to_be_visible()
    with hall(tmp_path, "--listen", str(first.server.ready["address"])) as second:
        assert second.server.url == first.server.url
        # Several at once, which the page may well miss while it is still away.
        for number in range(BEFORE + 1, BEFORE + 6):
            _step(second, program.secret, number)
        trails.append(_expect_steps(page, second, program.run, BEFORE + 5))
        expect(page.locator("#space-link")).to_be_hidden()
        for number in range(BEFORE + 6, CALLS + 1):
            _step(second, program.secret, number)
            trails.append(_expect_steps(page, second, program.run, number))
        assert trails == sorted(set(trails))
        Caller(second.root.client, program.secret).post("/v1/external/run/finish", {"summary": "all counted", "artifacts": {}})
        expect(page.locator(".message.result .message-body")).to_have_text(["all counted"])
        expect(page.locator("#space-activity")).to_contain_text("Nobody works here just now.")
        shown = page.locator("[data-message]").evaluate_all("all => all.map(one => Number(one.dataset.message))")
        assert shown == sorted(set(shown))
        assert len(shown) == CALLS + 2
        assert page.evaluate("window.never_loaded_again")
    page.context.close()
