"""What stands on the main pages, without a browser."""

from __future__ import annotations

import html
import re

import pytest
from agentplat.domain.languages import Language
from agentplat.domain.scopes import Ref
from agentplat.usecases.tell import shown_text

from tests.agentplat.world import ref
from tests.browser.hall import Hall
from tests.browser.stage import DEVELOPER, Stage
from tests.browser.visits import seal_on, signed_in, words_on

NAME = "acme/platform:developer"


def _report(page: str) -> str:
    """The lines of the first report of a page."""
    lines = page.partition("data-report>")[2].partition("</div>")[0]
    return "\n".join(map(html.unescape, re.findall(r"<p[^>]*>(.*?)</p>", lines, re.DOTALL)))


@pytest.mark.promise("U-1")
@pytest.mark.parametrize("language", list(Language))
def test_the_page_of_a_version_says_what_the_command_line_says_and_nothing_less(stage: Stage, language: Language) -> None:
    stage.world.cases.publish_version(stage.author, DEVELOPER, "developer.yaml")
    for who in (stage.author, stage.reader):
        wanted = shown_text(stage.world.cases.read_report(who, ref(NAME), 1), language)
        assert "change.proposed" in wanted.splitlines()[-1]
        with signed_in(stage, who, language.value) as client:
            assert _report(client.get("/agents/acme%2Fplatform%3Adeveloper/versions/1").text) == wanted


@pytest.mark.promise("U-2")
def test_a_workspace_leads_to_its_inbox(stage: Stage, hall: Hall) -> None:
    with signed_in(stage, stage.reader) as client:
        assert client.get(hall.path).headers["location"] == f"{hall.path}/inbox"


@pytest.mark.promise("U-3")
def test_monitoring_of_a_workspace_shows_its_agents_and_no_others(stage: Stage, hall: Hall) -> None:
    run = stage.world.cases.open_run(stage.author, Ref("acme/platform", "worker"), None)
    with signed_in(stage, stage.author) as client:
        live = client.get(f"{hall.path}/observability").text
        log = client.get(f"{hall.path}/observability/insights").text
    stage.world.cases.cancel_run(stage.author, run.id)
    assert f'href="/runs/{run.id}"' in live
    assert "acme%2Fplatform%3Aworker" in live
    assert f'href="/runs/{run.id}"' in log
    for page in (live, log):
        assert "acme%2Fquality" not in page
        assert "acme%2Fsupport" not in page


@pytest.mark.promise("U-5")
def test_a_status_is_set_only_over_the_version_that_was_seen(stage: Stage, hall: Hall) -> None:
    tickets, number = stage.world.cases.together.tickets, hall.ticket
    path = f"{hall.path}/tickets/{number}"
    with signed_in(stage, stage.author) as client:
        page = client.get(path).text
        seen = tickets.one(stage.author, hall.office.workspace, number).ticket.version
        tickets.change(stage.author, hall.office.workspace, number, seen, {"status": "blocked"})
        form = {"seal": seal_on(page), "version": str(seen), "status": "done", "act": "status"}
        assert f"has version {seen + 1} by now, not {seen}" in words_on(client.post(path, data=form).text)
        assert tickets.one(stage.author, hall.office.workspace, number).ticket.status.value == "blocked"
        assert client.post(path, data={**form, "version": str(seen + 1)}).headers["location"] == path
    assert tickets.one(stage.author, hall.office.workspace, number).ticket.status.value == "done"
