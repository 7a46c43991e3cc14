"""Catalogues, and texts that are shown harmless."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from agentplat.domain.budgets import Unit
from agentplat.domain.languages import Language
from agentplat.domain.texts import harmless, set_off
from agentplat.studio.rendering import Frame, part_of
from agentplat.studio.words import isolated, spoken, visible, words_of
from markupsafe import Markup

from tests.agentplat.studio.catalogues import catalogue, forms_of, source_texts, text_of

TRANSLATED = [Language.PT, Language.HE]


@pytest.mark.promise("U-11")
@pytest.mark.parametrize("language", TRANSLATED)
def test_no_catalogue_lacks_a_text_or_keeps_one_that_is_gone(language: Language) -> None:
    found = catalogue(language)
    translated = {text_of(message.id): message for message in found if message.id}
    assert set(translated) == set(source_texts())
    assert [text for text, message in translated.items() if not all(forms_of(message)[1]) or message.fuzzy] == []
    assert [text for text, message in translated.items() if len(forms_of(message)[0]) != len(forms_of(message)[1])] == []
    assert list(found.obsolete) == []


@pytest.mark.promise("U-11")
@pytest.mark.parametrize("language", TRANSLATED)
def test_every_translation_says_the_same_values(language: Language) -> None:
    def named(text: object) -> list[str]:
        return sorted(re.findall(r"%\((\w+)\)s", str(text)))

    messages = [forms_of(message) for message in catalogue(language) if message.id]
    assert [said for said, told in messages if {tuple(named(one)) for one in said} != {tuple(named(one)) for one in told}] == []


@pytest.mark.promise("U-11")
@pytest.mark.parametrize(
    ("language", "one", "many"),
    [
        (Language.EN, "1 tool call", "1,200 tool calls"),
        (Language.PT, "1 chamada de ferramenta", "1.200 chamadas de ferramenta"),
        (Language.HE, "1 קריאה לכלי", "1,200 קריאות לכלים"),
    ],
)
def test_one_of_something_is_not_said_like_many(language: Language, one: str, many: str) -> None:
    frame = Frame(words=words_of(language), person=None, seal="", here="/")
    said = [part_of(frame, "parts.html", "cost", spent={Unit.TOOL_CALLS: amount}) for amount in (1, 1_200)]
    assert said == [one, many]


@pytest.mark.promise("U-11")
def test_amounts_are_written_as_each_language_does() -> None:
    assert [words_of(language).number(1_234_567) for language in Language] == ["1,234,567", "1.234.567", "1,234,567"]
    assert words_of(Language.EN).duration(83_000) == "1 min 23 s"
    assert words_of(Language.PT).duration(1_500) == "1,5 s"
    assert words_of(Language.EN).money(1_250_000) == "US$1.25"
    assert words_of(Language.EN).money(1_234) == "US$0.001234"


@pytest.mark.promise("U-11")
def test_a_moment_is_written_as_each_language_does_whichever_was_written_before() -> None:
    late = 1_764_633_599_999
    for _ in range(2):
        written = [words_of(language).moment(late) for language in Language]
        assert written == ["1 Dec 2025, 23:59:59 UTC", "1 de dez. de 2025 23:59:59 UTC", "1 בדצמ׳ 2025, 23:59:59 UTC"]
    assert words_of(Language.EN).moment(late + 1) == "2 Dec 2025, 00:00:00 UTC"


@pytest.mark.promise("U-10")
def test_markup_and_what_moves_text_are_harmless() -> None:
    assert str(isolated("<b>")) == "<bdi>&lt;b&gt;</bdi>"
    assert str(visible("a\u202eb\x00")) == 'a<span class="control">U+202E</span>b<span class="control">U+0000</span>'
    assert str(spoken("\u2068<i>\u2069")) == "\u2068&lt;i&gt;\u2069"


@pytest.mark.promise("U-10")
def test_nothing_that_is_written_out_passes_among_what_is_not() -> None:
    kinds = ("Cc", "Cs", "Zl", "Zp")
    # Every hidden character, and some of the many that no letter was given to.
    hidden = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in kinds]
    hidden += [chr(code) for code in range(0, sys.maxunicode + 1, 37) if unicodedata.category(chr(code)) == "Cn"]
    hidden += "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    written = [one for one in hidden if one not in "\n\t"]
    assert len(written) > 10_000
    for show in (visible, isolated):
        assert [one for one in written if f'<span class="control">U+{ord(one):04X}</span>' not in show(f"a{one}b")] == []
    assert str(visible("a\n\tb & שלום 😀")) == "a\n\tb &amp; שלום 😀"
    # What somebody wrote is no markup, whatever type it came in.
    assert str(visible(Markup("<i>"))) == str(spoken(Markup("<i>"))) == "&lt;i&gt;"


@pytest.mark.promise("U-10")
def test_a_text_in_a_sentence_cannot_leave_its_place() -> None:
    assert harmless("a\u202eb\x1b[31m") == "a\\u202eb\\u001b[31m"
    assert harmless("\u2068closed\u2069") == "\u2068closed\u2069"
    assert harmless("\u2069out\u2068") == "\\u2069out\\u2068"
    assert set_off("שלום", Language.HE) == "\u2068שלום\u2069"
    assert set_off("name", Language.EN) == "name"
