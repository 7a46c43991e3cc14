"""The inbox, proposals and pipelines as pages, without a browser."""

from __future__ import annotations

import pytest
from agentplat.domain.access import Access

from tests.browser.hall import BELATED, Hall, wanted
from tests.browser.stage import Stage
from tests.browser.visits import seal_on, signed_in, words_on

NOT_NEWEST = "revision 1 of proposal {} is not the newest, which is 2; look at that, then decide"
ANOTHER_DIGEST = "revision 1 of proposal {} has another digest than what was seen; look at it again, then decide"


def _sections(page: str) -> set[str]:
    known = ("approvals", "proposals", "budgets", "late", "mentions", "tickets")
    return {name for name in known if f'<section id="{name}">' in page}


def _inbox(stage: Stage, who: Access, path: str = "/inbox", language: str = "en") -> str:
    with signed_in(stage, who, language) as client:
        answer = client.get(path)
    assert answer.status_code == 200
    return answer.text


@pytest.mark.promise("U-7")
@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["Proposals", "Budgets at their stop", "Warnings that came late", "Mentions"]),
        ("pt", ["Propostas", "Orçamentos no limite", "Avisos que chegaram tarde", "Menções"]),
        ("he", ["הצעות", "תקציבים שנעצרו", "אזהרות שהגיעו באיחור", "אזכורים"]),
    ],
)
def test_the_inbox_shows_what_waits_for_each_and_says_it_in_their_language(
    stage: Stage, hall: Hall, language: str, words: list[str]
) -> None:
    stage.question()
    author = _inbox(stage, stage.author, language=language)
    assert _sections(author) == {"proposals", "late", "mentions"}
    assert f'href="{hall.path}/proposals/{hall.proposal}"' in author
    assert f'href="/agents/acme%2Fplatform%3A{BELATED.name}/versions/1"' in author
    admin = _inbox(stage, stage.admin, language=language)
    assert _sections(admin) == {"approvals", "proposals", "budgets", "mentions"}
    assert f'href="/runs/{hall.stopped}"' in admin
    reader = _inbox(stage, stage.reader, language=language)
    assert _sections(reader) == {"mentions"}
    assert all(f"<h2>{one}</h2>" in author + admin for one in words)


@pytest.mark.promise("U-7")
def test_the_inbox_of_a_workspace_is_narrowed_to_it(stage: Stage, hall: Hall) -> None:
    stage.question()
    elsewhere = stage.world.cases.together.workspaces.create(stage.admin, "acme/support", f"support-{stage.folder.name}")
    assert _sections(_inbox(stage, stage.admin, f"{hall.path}/inbox")) == {"proposals", "budgets", "mentions", "tickets"}
    assert _sections(_inbox(stage, stage.admin, f"/workspaces/{elsewhere.id}/inbox")) == {"approvals", "tickets"}


@pytest.mark.promise("U-7", "P-6")
def test_a_late_warning_stands_in_the_inbox_word_for_word(stage: Stage, hall: Hall) -> None:
    assert hall.stopped
    page = _inbox(stage, stage.author).partition('<section id="late">')[2].partition("</section>")[0]
    assert "belated → punctual → belated" in page


@pytest.mark.promise("U-7")
def test_what_was_revised_meanwhile_is_not_approved_and_the_page_says_why(stage: Stage, hall: Hall) -> None:
    proposed = hall.propose(goal="Revised <i>soon</i>.")
    path = f"{hall.path}/proposals/{proposed}"
    with signed_in(stage, stage.author) as client:
        seen = client.get(path).text
        [old] = [line.partition('"')[0] for line in seen.split('name="digest" value="')[1:2]]
        form = {"seal": seal_on(seen), "revision": "1", "digest": old, "answer": "approve"}
        forged = client.post(path, data={**form, "digest": "0" * 64})
        assert (forged.status_code, ANOTHER_DIGEST.format(proposed) in words_on(forged.text)) == (409, True)
        stage.world.cases.orchestrating.propose.revise(stage.author, proposed, wanted(goal="Revised now."))
        stale = client.post(path, data=form)
        assert (stale.status_code, NOT_NEWEST.format(proposed) in words_on(stale.text)) == (409, True)
        assert "Revised now." in stale.text
        older = client.get(f"{path}?revision=1").text
        assert "Revised &lt;i&gt;soon&lt;/i&gt;." in older
        assert 'name="answer"' not in older
        nothing = client.post(path, data={**form, "reason": "late", "answer": "decline"})
        assert nothing.status_code == 409
    assert stage.world.cases.orchestrating.read.proposal(stage.author, proposed).kept.state.value == "proposed"


@pytest.mark.promise("U-7")
def test_declining_takes_a_reason_which_stays_on_the_page(stage: Stage, hall: Hall) -> None:
    proposed = hall.propose(goal="To be declined.")
    path = f"{hall.path}/proposals/{proposed}"
    with signed_in(stage, stage.author) as client:
        seen = client.get(path).text
        digest = stage.world.cases.orchestrating.read.proposal(stage.author, proposed).revision.digest
        form = {"seal": seal_on(seen), "revision": "1", "digest": digest, "answer": "decline"}
        assert client.post(path, data={**form, "reason": " "}).status_code == 422
        assert client.post(path, data={**form, "reason": "too dear <b>"}).headers["location"] == path
        done = client.get(path).text
        assert "too dear &lt;b&gt;" in done
        assert 'name="answer"' not in done
        assert f"Proposal {proposed}" not in client.get("/inbox").text


@pytest.mark.promise("U-7", "W-12")
def test_whoever_may_not_decide_gets_no_form_and_whoever_may_not_read_gets_nothing(stage: Stage, hall: Hall) -> None:
    path = f"{hall.path}/proposals/{hall.proposal}"
    other = stage.world.cases.together.workspaces.create(stage.author, "acme/platform", f"other-{stage.folder.name}")
    with signed_in(stage, stage.reader) as client:
        page = client.get(path).text
        assert 'name="answer"' not in page
        sent = client.post(path, data={"seal": seal_on(page), "revision": "1", "digest": "0" * 64, "answer": "approve"})
        assert sent.status_code == 403
        for part in (f"proposals/{hall.proposal}", f"pipelines/{hall.pipeline}"):
            assert client.get(f"/workspaces/{other.id}/{part}").status_code == 404
    with signed_in(stage, stage.world.person("globex:eve", "admin=globex")) as client:
        for page_path in hall.pages:
            assert client.get(page_path).status_code == 404
