"""Words for what use cases answer: the same on every edge (P-9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentplat.domain.diff import LoopChange
from agentplat.domain.languages import Language
from agentplat.domain.outbox import EntryState
from agentplat.domain.registry import ReportState
from agentplat.domain.scopes import Ref
from agentplat.domain.shown import ShownReport
from agentplat.domain.texts import SENTENCES, instructions, set_off
from agentplat.loop_check import loop_texts, report_text, unanswered, warning
from agentplat.usecases.preview_version import Preview
from agentplat.usecases.suggest_instructions import Suggestion


def warning_lines(shown: ShownReport, language: Language) -> list[str]:
    """What the publisher is warned of; nothing where every loop was looked for and there is none (P-4 to P-6)."""
    if shown.body is not None:
        return warning(shown.body, language)
    words = SENTENCES[language]
    if shown.refused is not None:
        return [unanswered(language), words.refused.format(reason=set_off(shown.refused, language))]
    if shown.state is ReportState.NOT_ANSWERED and shown.delivery is EntryState.SKIPPED:
        return [words.skipped]
    return [unanswered(language)]


def body_warning(body: Mapping[str, Any], language: Language) -> list[str]:
    """What a report warns of, given as JSON values."""
    return warning(body, language)


def shown_text(shown: ShownReport, language: Language) -> str:
    """The warning with everything else that its reader must know: notices, paused agents, whom it was made for."""
    if shown.body is None:
        return "\n".join(warning_lines(shown, language))
    marks = [SENTENCES[language].fresh] if shown.fresh else []
    return "\n".join([*marks, report_text(shown.body, language), *_paused_lines(shown.paused, language)])


def preview_text(preview: Preview, language: Language) -> str:
    """The text that publishing would give, and the loops that come and go."""
    if preview.body is None:
        return unanswered(language)
    lines = [report_text(preview.body, language), *_paused_lines(preview.paused, language)]
    return "\n".join([*lines, *([] if preview.diff.loops is None else _change_lines(preview.agent, preview.diff.loops, language))])


def suggestion_text(suggestion: Suggestion, language: Language) -> str:
    """Instructions to start from, empty where no readable source exposes an artifact."""
    return instructions(suggestion.trigger, suggestion.artifacts, language)


def _paused_lines(paused: Iterable[Ref], language: Language) -> list[str]:
    return [SENTENCES[language].paused.format(agent=set_off(ref.text, language)) for ref in paused]


def _change_lines(agent: Ref, loops: LoopChange, language: Language) -> list[str]:
    words = SENTENCES[language]
    texts = loop_texts(agent, [*loops.closed, *loops.opened], language)
    closed, opened = texts[: len(loops.closed)], texts[len(loops.closed) :]
    lines = [words.closes.format(path=path) for path in closed] + [words.opens.format(path=path) for path in opened]
    return lines if loops.exact else [*lines, words.inexact]
