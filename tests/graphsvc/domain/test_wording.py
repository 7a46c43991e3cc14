"""Warnings and notices as text in three languages."""

from __future__ import annotations

import re
from dataclasses import replace
from string import Formatter

import pytest

from graphsvc.domain import wording
from graphsvc.domain.limits import Limits
from graphsvc.domain.names import AgentRef, parse_agent
from graphsvc.domain.report import BreakingSet, Hop, Loop, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.domain.wording import Language, notice_lines, report_text, unanswered_line, warning_lines

DEVELOPER, REVIEWER = parse_agent("acme:developer"), parse_agent("acme:reviewer")
MARKS = "\u2066\u2067\u2068\u2069"


def loop_of(*agents: AgentRef | None, barrier: bool = False, over: bool = False) -> Loop:
    return Loop(agents, tuple(Hop(("e",), barrier and i == 0) for i in range(len(agents))), over)


def report_of(*loops: Loop, verification: Verification = Verification.COMPLETE, notices: tuple[object, ...] = ()) -> Report:
    return Report(agent=DEVELOPER, verification=verification, loops=loops, notices=notices, limits=Limits())


BACK_AND_FORTH = loop_of(DEVELOPER, REVIEWER)


def bare(text: str) -> str:
    """The text without the marks that only set directions."""
    return text.translate(dict.fromkeys(map(ord, MARKS)))


@pytest.mark.promise("P-9")
def test_every_text_exists_in_every_language_with_the_same_gaps() -> None:
    english = wording._TEXTS[Language.ENGLISH]
    gaps = {key: sorted(name for _, name, _, _ in Formatter().parse(text) if name) for key, text in english.items()}
    for language in Language:
        texts = wording._TEXTS[language]
        assert texts.keys() == english.keys()
        assert {key: sorted(name for _, name, _, _ in Formatter().parse(text) if name) for key, text in texts.items()} == gaps
        assert all(text.strip() for text in texts.values())
    for key in english:
        assert len({wording._TEXTS[language][key] for language in Language}) == len(Language), key


MORE = {
    Language.ENGLISH: "There may be more loops.",
    Language.PORTUGUESE: "Pode haver mais laços.",
    Language.HEBREW: "ייתכן שיש עוד לולאות.",
}
UNVERIFIED = {
    Language.ENGLISH: "This version was not fully verified.",
    Language.PORTUGUESE: "Esta versão não foi verificada por inteiro.",
    Language.HEBREW: "הגרסה הזו לא אומתה במלואה.",
}
ONE_LOOP = {
    Language.ENGLISH: "This version closes a loop:",
    Language.PORTUGUESE: "Esta versão fecha um laço:",
    Language.HEBREW: "הגרסה הזו סוגרת לולאה:",
}


@pytest.mark.promise("P-4", "G-8")
@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize(
    ("verification", "loops", "more", "unverified"),
    [
        (Verification.COMPLETE, (), False, False),
        (Verification.COMPLETE, (BACK_AND_FORTH,), False, False),
        (Verification.MORE_LOOPS, (BACK_AND_FORTH,), True, False),
        (Verification.WALK_LIMITED, (BACK_AND_FORTH,), True, True),
        (Verification.NOT_VERIFIED, (), False, True),
    ],
)
def test_each_verification_has_its_sentences(
    language: Language, verification: Verification, loops: tuple[Loop, ...], more: bool, unverified: bool
) -> None:
    lines = warning_lines(report_of(*loops, verification=verification), language)
    about_loops = [ONE_LOOP[language], "  developer → reviewer → developer"] if loops else []
    expected = about_loops + [MORE[language]] * more + [UNVERIFIED[language]] * unverified
    assert [bare(line) for line in lines] == expected


@pytest.mark.promise("P-4")
def test_several_loops_are_counted_and_keep_the_reports_order() -> None:
    two = report_of(BACK_AND_FORTH, loop_of(DEVELOPER, parse_agent("acme:tester"), REVIEWER))
    assert warning_lines(two) == [
        "This version closes 2 loops:",
        "  developer → reviewer → developer",
        "  developer → tester → reviewer → developer",
    ]
    assert warning_lines(two, Language.PORTUGUESE)[0] == "Esta versão fecha 2 laços:"
    assert warning_lines(two, Language.HEBREW)[0] == "הגרסה הזו סוגרת 2 לולאות:"


@pytest.mark.promise("P-5")
def test_an_agent_that_hears_its_own_event_is_told_that_the_trigger_does_nothing() -> None:
    own = report_of(loop_of(DEVELOPER))
    sentence = "the platform never starts an agent by its own event, so this trigger does nothing"
    assert warning_lines(own)[1] == f"  developer → developer ({sentence})"
    portuguese = "a plataforma nunca inicia um agente pelo próprio evento, então esse gatilho não faz nada"
    assert warning_lines(own, Language.PORTUGUESE)[1] == f"  developer → developer ({portuguese})"
    assert "הפלטפורמה לעולם אינה מפעילה סוכן באירוע של עצמו" in warning_lines(own, Language.HEBREW)[1]
    assert sentence not in "\n".join(warning_lines(report_of(BACK_AND_FORTH)))


@pytest.mark.promise("G-6", "P-9")
@pytest.mark.parametrize("language", Language)
def test_the_marks_of_a_loop_are_told_beside_it(language: Language) -> None:
    nine = [parse_agent(f"acme:{name}") for name in "abcdefghi"]
    long, stopped = loop_of(DEVELOPER, *nine[1:], over=True), loop_of(DEVELOPER, REVIEWER, barrier=True)
    lines = warning_lines(report_of(stopped, long), language)
    over = {
        Language.ENGLISH: "has 9 agents, so a chain stops at 8 hops before it comes round",
        Language.PORTUGUESE: "tem 9 agentes, então uma cadeia para em 8 saltos antes de dar a volta",
        Language.HEBREW: "יש בה 9 סוכנים, ולכן שרשרת נעצרת אחרי 8 קפיצות לפני שהיא משלימה סיבוב",
    }
    barrier = {
        Language.ENGLISH: "may be stopped by the data barrier",
        Language.PORTUGUESE: "pode ser parado pela barreira de dados",
        Language.HEBREW: "ייתכן שמחסום הנתונים יעצור אותה",
    }
    assert lines[1].endswith(f" ({barrier[language]})")
    assert lines[2].endswith(f" ({over[language]})")
    both = warning_lines(report_of(loop_of(DEVELOPER, *nine[1:], barrier=True, over=True)), language)[1]
    assert both.endswith(f" ({over[language]}; {barrier[language]})")


@pytest.mark.promise("P-6")
def test_a_graph_service_that_did_not_answer_is_told_in_every_language() -> None:
    assert unanswered_line() == "This version was not verified, because the graph service did not answer."
    portuguese = "Esta versão não foi verificada, porque o serviço de grafo não respondeu."
    assert unanswered_line(Language.PORTUGUESE) == portuguese
    assert unanswered_line(Language.HEBREW) == "הגרסה הזו לא אומתה, כי שירות הגרף לא ענה."


HIDDEN = {
    Language.ENGLISH: "an agent outside your access",
    Language.PORTUGUESE: "um agente fora do seu acesso",
    Language.HEBREW: "סוכן שמחוץ לגישה שלכם",
}


@pytest.mark.promise("G-13", "P-9")
@pytest.mark.parametrize("language", Language)
def test_a_hidden_agent_keeps_its_place_under_words_that_tell_nothing(language: Language) -> None:
    lines = warning_lines(report_of(loop_of(DEVELOPER, None, REVIEWER, None)), language)
    hidden = HIDDEN[language]
    assert bare(lines[1]) == f"  developer → {hidden} → reviewer → {hidden} → developer"


@pytest.mark.promise("P-9")
@pytest.mark.parametrize("name", ["reviewer", "סוקר", "مراجع", "2 (סוקר)", "a → b"])
def test_a_hebrew_path_is_set_apart_from_left_to_right_and_so_is_each_name_in_it(name: str) -> None:
    other = parse_agent(f"acme:{name}")
    line = warning_lines(report_of(loop_of(DEVELOPER, other, None)), Language.HEBREW)[1]
    assert line.startswith("  \u2066")
    assert line.endswith("\u2069\u2069")
    inside = line.strip()[1:-1]
    assert re.findall("\u2068([^\u2068\u2069]*)\u2069", inside) == ["developer", name, HIDDEN[Language.HEBREW], "developer"]
    # Nothing but arrows stands between the names, in the order of reading from the left.
    assert re.sub("\u2068[^\u2068\u2069]*\u2069", "n", inside) == "n → n → n → n"


@pytest.mark.promise("P-9")
@pytest.mark.parametrize("language", [Language.ENGLISH, Language.PORTUGUESE])
def test_in_other_languages_a_path_with_hebrew_or_arabic_names_is_set_apart_too(language: Language) -> None:
    # Without the marks two such names in a row, or one at the beginning, are displayed the other way round, under the same arrow.
    first, second = parse_agent("acme:סוקר"), parse_agent("acme:مراجع")
    report = replace(report_of(loop_of(first, second, REVIEWER)), agent=first)
    assert warning_lines(report, language)[1] == "  \u2066\u2068סוקר\u2069 → \u2068مراجع\u2069 → reviewer → \u2068סוקר\u2069\u2069"


@pytest.mark.promise("P-9")
@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("event", ["orders", "אירוע"])
def test_every_isolate_is_closed_and_where_all_letters_run_from_the_left_there_is_none(language: Language, event: str) -> None:
    notices = (UnheardEvent(event), UnfedTrigger("orders", event), BreakingSet(("x",), ("y", event)))
    report = report_of(loop_of(DEVELOPER), loop_of(DEVELOPER, None), verification=Verification.WALK_LIMITED, notices=notices)
    text = report_text(report, language)
    for line in text.splitlines():
        depth = 0
        for character in line:
            depth += (character in "\u2066\u2067\u2068") - (character == "\u2069")
            assert depth >= 0
        assert depth == 0
    assert bool(set(text) & set(MARKS)) == (language is Language.HEBREW or event == "אירוע")


@pytest.mark.promise("P-10")
def test_agents_of_one_name_are_shown_with_their_scopes_and_others_without() -> None:
    twin, other = parse_agent("globex/lab:reviewer"), parse_agent("acme:tester")
    lines = warning_lines(report_of(loop_of(DEVELOPER, REVIEWER, other), loop_of(DEVELOPER, twin)))
    assert lines[1:] == [
        "  developer → acme:reviewer → tester → developer",
        "  developer → globex/lab:reviewer → developer",
    ]
    own_twin = parse_agent("*:developer")
    assert warning_lines(report_of(loop_of(DEVELOPER, own_twin)))[1] == "  acme:developer → *:developer → acme:developer"


@pytest.mark.promise("P-10", "G-14")
def test_a_name_that_reads_like_a_reference_or_like_a_hidden_agent_is_shown_with_its_scope() -> None:
    lookalike, poser = parse_agent("*:acme:developer"), parse_agent("globex:an agent outside your access")
    twin = parse_agent("globex:developer")
    lines = warning_lines(report_of(loop_of(DEVELOPER, lookalike), loop_of(DEVELOPER, twin), loop_of(DEVELOPER, poser)))
    assert lines[1:] == [
        "  acme:developer → *:acme:developer → acme:developer",
        "  acme:developer → globex:developer → acme:developer",
        "  acme:developer → globex:an agent outside your access → acme:developer",
    ]


@pytest.mark.promise("P-10", "G-14")
def test_a_hidden_agent_makes_no_name_ambiguous() -> None:
    assert warning_lines(report_of(loop_of(DEVELOPER, None, REVIEWER)))[1] == (
        "  developer → an agent outside your access → reviewer → developer"
    )


@pytest.mark.promise("G-17", "G-18", "G-19")
@pytest.mark.parametrize(
    ("language", "lines"),
    [
        (
            Language.ENGLISH,
            [
                "Nobody you can read hears the event ping.",
                "Nobody you can read emits the trigger tick; it may come from outside.",
                "Nobody you can read emits the trigger orders; it may come from outside. Did you mean order?",
                "Taking these out of the version breaks every loop named here: trigger x, event y, event z",
            ],
        ),
        (
            Language.PORTUGUESE,
            [
                "Ninguém que você possa ler escuta o evento ping.",
                "Ninguém que você possa ler emite o gatilho tick; ele pode vir de fora.",
                "Ninguém que você possa ler emite o gatilho orders; ele pode vir de fora. Você quis dizer order?",
                "Tirar isto da versão quebra todos os laços citados aqui: gatilho x, evento y, evento z",
            ],
        ),
        (
            Language.HEBREW,
            [
                "אף סוכן שאתם רשאים לקרוא אינו מאזין לאירוע ping.",
                "אף סוכן שאתם רשאים לקרוא אינו פולט את הטריגר tick; ייתכן שהוא מגיע מבחוץ.",
                "אף סוכן שאתם רשאים לקרוא אינו פולט את הטריגר orders; ייתכן שהוא מגיע מבחוץ. האם התכוונתם ל־order?",
                "הוצאת אלה מהגרסה שוברת את כל הלולאות שצוינו כאן: הטריגר x, האירוע y, האירוע z",
            ],
        ),
    ],
)
def test_notices_are_told_in_every_language(language: Language, lines: list[str]) -> None:
    notices = (UnheardEvent("ping"), UnfedTrigger("tick"), UnfedTrigger("orders", "order"), BreakingSet(("x",), ("y", "z")))
    assert [bare(line) for line in notice_lines(report_of(notices=notices), language)] == lines


@pytest.mark.promise("G-17", "P-4")
@pytest.mark.parametrize("language", Language)
def test_notices_are_no_warning_and_a_version_without_loops_is_told_so(language: Language) -> None:
    quiet = report_of(notices=(UnheardEvent("ping"),))
    assert warning_lines(quiet, language) == []
    none = {
        Language.ENGLISH: "This version closes no loop.",
        Language.PORTUGUESE: "Esta versão não fecha nenhum laço.",
        Language.HEBREW: "הגרסה הזו אינה סוגרת אף לולאה.",
    }
    assert report_text(quiet, language).splitlines()[0] == none[language]
    assert len(report_text(quiet, language).splitlines()) == 2
    unverified = report_of(verification=Verification.NOT_VERIFIED)
    assert report_text(unverified, language) == UNVERIFIED[language]


@pytest.mark.promise("P-4")
def test_braces_in_names_are_shown_as_they_are() -> None:
    odd = parse_agent("acme:{n}")
    assert warning_lines(report_of(loop_of(DEVELOPER, odd)))[1] == "  developer → {n} → developer"
    assert notice_lines(report_of(notices=(UnheardEvent("{event}"),))) == ["Nobody you can read hears the event {event}."]
