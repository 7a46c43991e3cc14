"""The warning and the notices as text, in three languages; the same words in every command line, API and page (P-9).

Where text runs in two directions, names are set apart by Unicode isolates, so that a path reads in the order of its arrows
whatever letters its names have, and a name's letters never move its neighbours.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from graphsvc.domain.names import AgentRef
from graphsvc.domain.report import BreakingSet, Loop, Notice, Report, UnfedTrigger, UnheardEvent, Verification


class Language(StrEnum):
    """The languages that every text exists in."""

    ENGLISH = "en"
    PORTUGUESE = "pt"
    HEBREW = "he"


_ARROW = " → "
_LEFT_TO_RIGHT, _FIRST_STRONG, _POP = "\u2066", "\u2068", "\u2069"

_TEXTS: dict[Language, dict[str, str]] = {
    Language.ENGLISH: {
        "hidden": "an agent outside your access",
        "loop": "This version closes a loop:",
        "loops": "This version closes {n} loops:",
        "self": "the platform never starts an agent by its own event, so this trigger does nothing",
        "over": "has {n} agents, so a chain stops at {limit} hops before it comes round",
        "barrier": "may be stopped by the data barrier",
        "more": "There may be more loops.",
        "unverified": "This version was not fully verified.",
        "unanswered": "This version was not verified, because the graph service did not answer.",
        "none": "This version closes no loop.",
        "unheard": "Nobody you can read hears the event {event}.",
        "unfed": "Nobody you can read emits the trigger {event}; it may come from outside.",
        "hint": "Did you mean {hint}?",
        "breaking": "Taking these out of the version breaks every loop named here:",
        "trigger": "trigger {event}",
        "event": "event {event}",
    },
    Language.PORTUGUESE: {
        "hidden": "um agente fora do seu acesso",
        "loop": "Esta versão fecha um laço:",
        "loops": "Esta versão fecha {n} laços:",
        "self": "a plataforma nunca inicia um agente pelo próprio evento, então esse gatilho não faz nada",
        "over": "tem {n} agentes, então uma cadeia para em {limit} saltos antes de dar a volta",
        "barrier": "pode ser parado pela barreira de dados",
        "more": "Pode haver mais laços.",
        "unverified": "Esta versão não foi verificada por inteiro.",
        "unanswered": "Esta versão não foi verificada, porque o serviço de grafo não respondeu.",
        "none": "Esta versão não fecha nenhum laço.",
        "unheard": "Ninguém que você possa ler escuta o evento {event}.",
        "unfed": "Ninguém que você possa ler emite o gatilho {event}; ele pode vir de fora.",
        "hint": "Você quis dizer {hint}?",
        "breaking": "Tirar isto da versão quebra todos os laços citados aqui:",
        "trigger": "gatilho {event}",
        "event": "evento {event}",
    },
    Language.HEBREW: {
        "hidden": "סוכן שמחוץ לגישה שלכם",
        "loop": "הגרסה הזו סוגרת לולאה:",
        "loops": "הגרסה הזו סוגרת {n} לולאות:",
        "self": "הפלטפורמה לעולם אינה מפעילה סוכן באירוע של עצמו, ולכן הטריגר הזה אינו עושה דבר",
        "over": "יש בה {n} סוכנים, ולכן שרשרת נעצרת אחרי {limit} קפיצות לפני שהיא משלימה סיבוב",
        "barrier": "ייתכן שמחסום הנתונים יעצור אותה",
        "more": "ייתכן שיש עוד לולאות.",
        "unverified": "הגרסה הזו לא אומתה במלואה.",
        "unanswered": "הגרסה הזו לא אומתה, כי שירות הגרף לא ענה.",
        "none": "הגרסה הזו אינה סוגרת אף לולאה.",
        "unheard": "אף סוכן שאתם רשאים לקרוא אינו מאזין לאירוע {event}.",
        "unfed": "אף סוכן שאתם רשאים לקרוא אינו פולט את הטריגר {event}; ייתכן שהוא מגיע מבחוץ.",
        "hint": "האם התכוונתם ל־{hint}?",
        "breaking": "הוצאת אלה מהגרסה שוברת את כל הלולאות שצוינו כאן:",
        "trigger": "הטריגר {event}",
        "event": "האירוע {event}",
    },
}


def _mixes_directions(text: str, language: Language) -> bool:
    """Whether a name could move its neighbours, or they it."""
    return language is Language.HEBREW or any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def _isolated(text: str, language: Language) -> str:
    return f"{_FIRST_STRONG}{text}{_POP}" if _mixes_directions(text, language) else text


def set_apart(text: str) -> str:
    """A name as it stands in an English sentence: between isolates where its letters could move their neighbours."""
    return _isolated(text, Language.ENGLISH)


def hidden_agent(language: Language = Language.ENGLISH) -> str:
    """What a hidden agent is called."""
    return _TEXTS[language]["hidden"]


def _say(language: Language, key: str, **names: str | int) -> str:
    shown = {name: value if isinstance(value, int) else _isolated(value, language) for name, value in names.items()}
    return _TEXTS[language][key].format(**shown)


def display_names(report: Report) -> dict[AgentRef, str]:
    """How the agents of a report are called in its texts: by name, with the scope where the name alone could be taken for another
    of them, with or without its scope, or for a hidden one (P-10)."""
    agents = {agent for loop in report.loops for agent in loop.agents if agent is not None} | {report.agent}
    count = Counter(agent.name for agent in agents)
    taken = {agent.text for agent in agents} | {texts["hidden"] for texts in _TEXTS.values()}
    return {agent: agent.name if count[agent.name] == 1 and agent.name not in taken else agent.text for agent in agents}


def path_text(loop: Loop, names: dict[AgentRef, str], language: Language) -> str:
    """A loop as a line of names that comes back to the first, in the order of the arrows in every language."""
    around = [*loop.agents, loop.agents[0]]
    words = [_TEXTS[language]["hidden"] if agent is None else names[agent] for agent in around]
    path = _ARROW.join(_isolated(word, language) for word in words)
    return f"{_LEFT_TO_RIGHT}{path}{_POP}" if any(_mixes_directions(word, language) for word in words) else path


def _loop_lines(report: Report, language: Language) -> Iterator[str]:
    names = display_names(report)
    for loop in report.loops:
        remarks = []
        if loop.is_self:
            remarks.append(_say(language, "self"))
        if loop.over_chain_limit:
            remarks.append(_say(language, "over", n=loop.length, limit=report.limits.chain_limit))
        if any(hop.barrier for hop in loop.hops):
            remarks.append(_say(language, "barrier"))
        line = path_text(loop, names, language)
        yield "  " + (f"{line} ({'; '.join(remarks)})" if remarks else line)


def warning_lines(report: Report, language: Language = Language.ENGLISH) -> list[str]:
    """The warning of a publication, line by line; empty where there is nothing to warn of (P-4, P-5)."""
    lines = []
    if report.loops:
        many = len(report.loops)
        lines.append(_say(language, "loop") if many == 1 else _say(language, "loops", n=many))
        lines += _loop_lines(report, language)
    if report.verification.may_be_more:
        lines.append(_say(language, "more"))
    if not report.verification.fully_verified:
        lines.append(_say(language, "unverified"))
    return lines


def unanswered_line(language: Language = Language.ENGLISH) -> str:
    """The warning of a version that was published while the graph service did not answer (P-6)."""
    return _say(language, "unanswered")


def notice_lines(report: Report, language: Language = Language.ENGLISH) -> list[str]:
    """The notices, line by line."""
    return [line for notice in report.notices for line in _notice(notice, language)]


def _notice(notice: Notice, language: Language) -> Iterator[str]:
    match notice:
        case UnheardEvent(event):
            yield _say(language, "unheard", event=event)
        case UnfedTrigger(event, hint):
            line = _say(language, "unfed", event=event)
            yield line if hint is None else f"{line} {_say(language, 'hint', hint=hint)}"
        case BreakingSet(triggers, events):
            parts = [_say(language, "trigger", event=t) for t in triggers] + [_say(language, "event", event=e) for e in events]
            yield f"{_say(language, 'breaking')} {', '.join(parts)}"


def report_text(report: Report, language: Language = Language.ENGLISH) -> str:
    """Warning and notices as one text for a terminal."""
    lines = warning_lines(report, language)
    if not lines and report.verification is Verification.COMPLETE:
        lines = [_say(language, "none")]
    return "\n".join([*lines, *notice_lines(report, language)])
