"""Every way to make work has a row with its guards on the page that is read from the code (D-7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec import ways
from tests.spec.ways import GUARDS, PAGE, read_sources, render

pytestmark = pytest.mark.promise("D-7")

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_guards_has_every_way_to_make_work() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render(ways.ways()), "run: make guarantees"


def test_the_ways_that_are_known_by_heart_are_among_them() -> None:
    found = {(way.kind, way.begins) for way in ways.ways()}
    assert found >= {
        ("tool", "`delegate_task`"),
        ("tool", "`create_ticket`"),
        ("tool", "`post_message`"),
        ("HTTP", "`POST /v1/agents/{ref}/runs`"),
        ("HTTP", "`POST /v1/workspaces/{workspace}/tickets`"),
        ("HTTP", "`POST /v1/workspaces/{workspace}/tickets:delegate`"),
        ("HTTP", "`POST /v1/workspaces/{workspace}/spaces/{space}/messages`"),
        ("process", "the dispatcher"),
    }
    assert not any("GET" in begins for _, begins in found)


def test_a_new_place_that_makes_work_needs_its_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    known = "usecases.open_run:OpenRun.__call__"
    monkeypatch.setattr(ways, "GUARDS", {maker: said for maker, said in GUARDS.items() if maker != known})
    with pytest.raises(LookupError, match="OpenRun"):
        ways.ways()


def test_a_new_way_to_a_known_place_has_no_row_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = read_sources()
    sources.routes["api.runs:list_runs POST /again"] = "POST /again"
    sources.names["api.runs:list_runs"].add("api.runs:open_run")
    monkeypatch.setattr(ways, "read_sources", lambda: sources)
    assert render(ways.ways()) != (ROOT / PAGE).read_text(encoding="utf-8")


def test_whatever_makes_a_ticket_or_a_run_is_known() -> None:
    assert read_sources().makers <= GUARDS.keys()
