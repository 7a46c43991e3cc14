"""Pages that stay open: they follow what happens, also across a restart of the server."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from agentplat.domain.scopes import Ref
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import Page

from tests.agentplat.http import api
from tests.agentplat.run_records import stored
from tests.browser.conftest import Open, Visit
from tests.browser.stage import Stage


def _shown(page: Page) -> list[int]:
    """The numbers of the steps on the page."""
    return [int(number) for number in page.locator("[data-step]").evaluate_all("all => all.map(one => one.dataset.step)")]


def _wait(page: Page, steps: int) -> None:
    page.locator(f"[data-step='{steps}']").wait_for()
    assert _shown(page) == list(range(1, steps + 1))


def _mark(here: Visit) -> None:
    here.page.evaluate("window.never_loaded_again = true")


@pytest.mark.promise("U-9")
def test_a_run_appears_step_by_step_also_after_the_server_was_away(stage: Stage, visit: Open) -> None:
    agent, key = Ref("acme/support", "walker"), Ed25519PrivateKey.generate()
    stage.bench.settle()
    stage.shop.publish(agent)
    run = stage.shop.open(agent)

    def call(number: int) -> int:
        stage.shop.call(stored(stage.world.store, run.id), number, "look", {"text": str(number)})
        return stored(stage.world.store, run.id).steps

    with api(stage.world, key=key) as first:
        here = visit(stage.author, at=replace(stage, api=first))
        page = here.go(f"/runs/{run.id}")
        _mark(here)
        for number in range(1, 5):
            _wait(page, call(number))
    steps = call(5)
    with api(stage.world, key=key, address=first.address):
        _wait(page, steps)
        _wait(page, call(6))
        assert steps > 20
        stage.shop.finish(stored(stage.world.store, run.id), {"letter": "done"})
        page.wait_for_selector("#run-head .state-finished")
        _wait(page, stored(stage.world.store, run.id).steps)
        assert "letter" in page.locator("#run-after").inner_text()
        assert page.evaluate("window.never_loaded_again")
    here.faults = [fault for fault in here.faults if "ERR_" not in fault]


@pytest.mark.promise("U-9")
def test_the_roster_follows_an_agent_from_idle_to_work_and_back(stage: Stage, visit: Open) -> None:
    agent = Ref("acme/support", "walker-too")
    stage.bench.settle()
    stage.shop.publish(agent)
    here = visit(stage.author)
    page = here.go("/monitoring/live?scope=acme/support")
    _mark(here)
    row = page.locator("#roster tr", has_text="walker-too")
    assert "idle" in row.inner_text()
    run = stage.shop.open(agent)
    row.locator(".state-running").first.wait_for()
    assert f"run {run.id}" in row.inner_text()
    stage.shop.finish(run)
    row.locator("text=idle").wait_for()
    assert page.evaluate("window.never_loaded_again")


@pytest.mark.promise("U-9")
def test_one_thread_feeds_all_open_pages(stage: Stage, visit: Open) -> None:
    agent = Ref("acme/support", "walker-three")
    stage.bench.settle()
    stage.shop.publish(agent)
    run = stage.shop.open(agent)
    visits = [visit(stage.admin) for _ in range(3)]
    for here in visits:
        here.go(f"/runs/{run.id}")
    stage.shop.call(stored(stage.world.store, run.id), 1, "look", {"text": "1"})
    for here in visits:
        _wait(here.page, stored(stage.world.store, run.id).steps)
    assert [thread.name for thread in threading.enumerate()].count("watcher") == 1
    stage.shop.finish(stored(stage.world.store, run.id))
