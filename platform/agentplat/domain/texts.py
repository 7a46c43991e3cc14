"""Sentences of the platform in its languages, beside those of the graph service's report (P-9, P-11, P-13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentplat.domain.languages import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """One language. Names go in where the braces are."""

    fresh: str
    paused: str
    refused: str
    skipped: str
    closes: str
    opens: str
    inexact: str
    read_first: str
    read_then: str
    not_the_body: str


SENTENCES: Mapping[Language, Sentences] = {
    Language.EN: Sentences(
        fresh="This report was made just now, for your own access.",
        paused="{agent} is paused: its triggers start nothing until it is resumed.",
        refused="The graph service refused a publication of this agent, and later ones wait until an admin acts: {reason}",
        skipped="An admin left this version out of the graph, so it was not verified.",
        closes="This change closes: {path}",
        opens="This change opens up: {path}",
        inexact="There may be more changes: not every loop could be compared.",
        read_first="When this run starts from {event}, read {artifact} first.",
        read_then="If that is not enough, read {artifacts}.",
        not_the_body="Do not treat the event's input as the artifact's body; it only names the artifacts that are available.",
    ),
    Language.PT: Sentences(
        fresh="Este relatório foi feito agora, para o seu próprio acesso.",
        paused="{agent} está pausado: os gatilhos dele não iniciam nada até ser retomado.",
        refused="O serviço de grafo recusou uma publicação deste agente, e as seguintes esperam que um administrador aja: {reason}",
        skipped="Um administrador deixou esta versão fora do grafo, por isso ela não foi verificada.",
        closes="Esta mudança fecha: {path}",
        opens="Esta mudança abre: {path}",
        inexact="Pode haver mais mudanças: nem todos os laços puderam ser comparados.",
        read_first="Quando esta run começar por {event}, leia {artifact} primeiro.",
        read_then="Se não for suficiente, leia {artifacts}.",
        not_the_body="Não trate o input do evento como corpo do artefato; ele só nomeia os artefatos disponíveis.",
    ),
    Language.HE: Sentences(
        fresh="דוח זה הופק זה עתה, עבור הגישה שלכם.",
        paused="{agent} מושהה: הטריגרים שלו אינם מפעילים דבר עד שיופעל מחדש.",
        refused="שירות הגרף סירב לפרסום של סוכן זה, והפרסומים הבאים ממתינים עד שמנהל יטפל בכך: {reason}",
        skipped="מנהל השאיר גרסה זו מחוץ לגרף, ולכן היא לא אומתה.",
        closes="השינוי הזה סוגר: {path}",
        opens="השינוי הזה פותח: {path}",
        inexact="ייתכן שיש שינויים נוספים: לא ניתן היה להשוות את כל הלולאות.",
        read_first="כאשר הרצה זו נפתחת על ידי {event}, קראו קודם את {artifact}.",
        read_then="אם זה לא מספיק, קראו את {artifacts}.",
        not_the_body="אל תתייחסו לקלט של האירוע כאל גוף הארטיפקט; הוא רק מציין אילו ארטיפקטים זמינים.",
    ),
}

_ISOLATES = "\u2066\u2067\u2068"
_MOVING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029"
_WRITTEN_OUT = {code: f"\\u{code:04x}" for code in (*range(10), *range(11, 32), *range(127, 160), *map(ord, _MOVING))}
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def set_off(name: str, language: Language) -> str:
    """A name as it stands in a sentence: in right-to-left text its own direction must not spread to what follows."""
    shown = harmless(name)
    return f"{_FIRST_STRONG_ISOLATE}{shown}{_POP_ISOLATE}" if language is Language.HE else shown


def harmless(text: str) -> str:
    """A text in which whatever would move or hide its neighbours, or do something to a terminal, is written out.

    Names of agents and events have nothing of it; what tools and models say may. Isolates that are closed again do no harm.
    """
    depth, balanced = 0, True
    for character in text:
        depth += (character in _ISOLATES) - (character == _POP_ISOLATE)
        balanced = balanced and depth >= 0
    shown = text.translate(_WRITTEN_OUT)
    if balanced and depth == 0:
        return shown
    return shown.translate({ord(character): f"\\u{ord(character):04x}" for character in _ISOLATES + _POP_ISOLATE})


def instructions(trigger: str, artifacts: Sequence[str], language: Language) -> str:
    """What a listener's author can start from, empty where the trigger brings no artifact (P-13)."""
    if not artifacts:
        return ""
    words = SENTENCES[language]
    first, *rest = (set_off(name, language) for name in artifacts)
    lines = [words.read_first.format(event=set_off(trigger, language), artifact=first)]
    lines += [words.read_then.format(artifacts=", ".join(rest))] if rest else []
    return "\n".join([*lines, words.not_the_body])
