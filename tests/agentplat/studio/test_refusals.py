"""What refusals say, in the language of the page: every text is there, and values stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from agentplat.domain.errors import AccessDenied, InvalidInput, UnexpectedNumber, Violation, phrase
from agentplat.domain.languages import Language
from agentplat.loop_check import read_manifests
from agentplat.studio.refusals import told
from agentplat.studio.words import words_of

from tests.agentplat.studio.catalogues import catalogue
from tests.agentplat.studio.refusal_texts import put_together, refusal_texts
from tests.agentplat.world import manifest
from tests.browser.hall import Hall
from tests.browser.stage import Stage
from tests.browser.visits import seal_on, signed_in, words_on

TRANSLATED = [Language.PT, Language.HE]
FAULTY = """\
apiVersion: agentplat/v2
kind: [Agent]
metadata:
  name: yes
  company: " acme"
  area: 7
spec:
  emits: [{event: a, artifact: [b]}, c, c, 1.5]
  listens: d
  driver: {kind: robot}
  tools: 12:30
  budget: {tokens: "many", tool_calls: 0.5}
  stage: done
  instructions: "a\\u0007b"
"""


def _plain(markup: str) -> str:
    return re.sub(r"<[^>]*>", "", markup)


@pytest.mark.promise("U-11")
@pytest.mark.parametrize("language", TRANSLATED)
def test_no_catalogue_lacks_what_a_refusal_says_or_keeps_what_none_says(language: Language) -> None:
    found = {str(message.id): message for message in catalogue(language, "refusals") if message.id}
    assert set(found) == refusal_texts()
    assert len(found) > 150
    assert [text for text, message in found.items() if not message.string or message.fuzzy] == []
    assert put_together() == []


@pytest.mark.promise("U-11")
@pytest.mark.parametrize("language", TRANSLATED)
def test_every_translation_of_a_refusal_says_the_same_values(language: Language) -> None:
    def named(text: object) -> list[str]:
        return sorted(re.findall(r"%\((\w+)\)s", str(text)))

    messages = [message for message in catalogue(language, "refusals") if message.id]
    assert [m.id for m in messages if named(m.id) != named(m.string)] == []
    # What stands beside the values is no value of its own.
    assert [m.id for m in messages if named(m.id) and re.sub(r"%\(\w+\)s", "", str(m.string)).count("%")] == []


@pytest.mark.promise("U-11")
def test_every_fault_of_a_manifest_is_worded_in_hebrew_and_keeps_what_was_written() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_manifests(FAULTY, "manifest")
    lines = told(refused.value)
    assert len(lines) >= 12
    words = words_of(Language.HE)
    for line in lines:
        for text in (line.reason, line.remedy):
            shown = str(words.worded(text))
            assert 'lang="en"' not in shown, text
            assert re.search("[א-ת]", shown), text
    reasons = {line.field: _plain(str(words.worded(line.reason))) for line in lines}
    assert reasons["spec.emits[0].artifact"] == "אינו שדה של spec.emits[0]"
    assert reasons["spec.emits[3]"] == "הוא המספר 1.5"
    assert "robot" in reasons["spec.driver.kind"]


@pytest.mark.promise("U-11")
def test_english_is_word_for_word_that_of_the_command_line() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_manifests(FAULTY, "manifest")
    words = words_of(Language.EN)
    for violation, line in zip(refused.value.violations, told(refused.value), strict=True):
        shown = f"{line.field}: {_plain(words.worded(line.reason).unescape())}; {_plain(words.worded(line.remedy).unescape())}"
        assert str(violation).endswith(shown)
    error = UnexpectedNumber("acme:a", 2, 3)
    assert _plain(str(words.worded(told(error)[0].reason))) == str(error)


@pytest.mark.promise("U-10", "U-11")
def test_values_in_a_refusal_are_harmless_and_set_off() -> None:
    shown = str(words_of(Language.HE).worded(AccessDenied("author", "<b>%(role)s\u202e").args[0]))
    assert "<bdi>author</bdi>" in shown
    assert '<bdi>&lt;b&gt;%(role)s<span class="control">U+202E</span></bdi>' in shown


@pytest.mark.promise("U-11")
def test_a_refusal_that_nobody_translated_is_shown_as_english() -> None:
    [line] = told(InvalidInput([Violation(field="x", reason="is of a kind of its own", remedy="")]))
    assert str(words_of(Language.HE).worded(line.reason)) == '<span lang="en" dir="ltr">is of a kind of its own</span>'
    assert str(words_of(Language.EN).worded(line.reason)) == "is of a kind of its own"


@pytest.mark.promise("U-11")
def test_a_phrase_is_its_english_text_and_knows_how_it_was_made() -> None:
    inner = phrase("the number %(written)s", written=7)
    made = phrase("is %(given)s, 100 %%", given=inner)
    assert made == "is the number 7, 100 %"
    assert (made.template, made.values) == ("is %(given)s, 100 %%", {"given": inner})
    assert phrase("100 %") == "100 %"
    assert _plain(str(words_of(Language.PT).worded(phrase("is %(given)s", given=inner)))) == "é o número 7"


def _refused(page: str) -> str:
    """The parts of a page that say why something was refused."""
    found = re.findall(r'<p class="fault"[^>]*>.*?</p>|<section class="(?:faults|card narrow)".*?</section>', page, re.DOTALL)
    assert found, words_on(page)
    return "".join(found)


def _forms(hall: Hall) -> list[tuple[str, Mapping[str, str], int]]:
    """Forms that are refused: where they go, what is in them, the status of the answer."""
    own, forged = hall.path, {"revision": "1", "digest": "0" * 64}
    space = f"{own}/spaces/{hall.space.id}"
    ticket, proposal = f"{own}/tickets/{hall.ticket}", f"{own}/proposals/{hall.proposal}"
    return [
        ("/publish", {"act": "publish", "manifest": FAULTY}, 422),
        ("/publish", {"act": "publish", "manifest": "a: [b"}, 422),
        ("/publish", {"act": "preview", "manifest": manifest("globex:any", ["a"])}, 403),
        ("/publish", {"act": "publish", "manifest": manifest("acme:new", ["a"]), "base": "7 acme:new"}, 409),
        ("/workspaces", {"scope": "acme", "name": " "}, 422),
        ("/workspaces", {"scope": "acme//b", "name": "any"}, 422),
        ("/workspaces", {"scope": "globex", "name": "any"}, 403),
        ("/workspaces", {"scope": "acme/platform", "name": "Delivery"}, 409),
        (f"{own}/spaces", {"name": "a\u202eb"}, 422),
        (f"{own}/spaces", {"name": "planning"}, 422),
        (space, {"body": " "}, 422),
        (space, {"body": "@nobody-of-this-name, look"}, 422),
        (space, {"body": "see #99"}, 422),
        (f"{space}/participants", {"agent": "nobody"}, 422),
        (f"{own}/tickets", {"title": "n" * 301}, 422),
        (ticket, {"act": "status", "status": "done", "version": "999"}, 409),
        (ticket, {"act": "comment", "body": ""}, 422),
        (ticket, {"act": "involve", "role": "reviewer", "party": "person acme:nobody"}, 404),
        (proposal, {**forged, "answer": "approve"}, 409),
        (proposal, {**forged, "answer": "decline", "reason": ""}, 422),
        (f"{own}/pipelines/{hall.pipeline}", {"reason": "late"}, 409),
        ("/approvals/999", {"answer": "grant"}, 404),
        ("/agents/acme:nobody/runs", {"input": "x"}, 404),
        ("/sign-out", {"seal": "forged"}, 403),
    ]


@pytest.mark.promise("U-11")
@pytest.mark.parametrize(("language", "letters"), [("he", "[א-ת]"), ("pt", "[a-zçãáéêíóõú]")])
def test_whatever_form_is_refused_the_page_says_why_in_its_language(stage: Stage, hall: Hall, language: str, letters: str) -> None:
    with signed_in(stage, stage.author, language) as client, signed_in(stage, stage.author) as english:
        seals = {one: seal_on(one.get("/agents").text) for one in (client, english)}
        for path, form, status in _forms(hall):
            here, there = (one.post(path, data={"seal": seals[one], **form}) for one in (client, english))
            assert (path, form, here.status_code, there.status_code) == (path, form, status, status)
            said = _refused(here.text)
            assert 'lang="en"' not in said, words_on(said)
            assert re.search(letters, words_on(said))
            assert words_on(said) != words_on(_refused(there.text))


@pytest.mark.promise("U-11")
def test_addresses_that_lead_nowhere_are_told_in_the_language_of_the_page(stage: Stage) -> None:
    with signed_in(stage, stage.author, "he") as client:
        for path, status in (
            ("/runs/999999", 404),
            ("/runs/nothing", 404),
            ("/nowhere", 404),
            ("/graph?scope=a//b", 422),
            ("/monitoring/insights?period=soon", 422),
            ("/published?version=x", 422),
            ("/sign-out", 405),
        ):
            answer = client.get(path)
            assert (path, answer.status_code) == (path, status)
            assert 'lang="en"' not in _refused(answer.text)
            assert re.search("[א-ת]", words_on(_refused(answer.text).partition("</h1>")[2]))
