"""Words for what use cases answer: the same on every edge (P-9)."""

from __future__ import annotations

from collections.abc import Iterable

from agentplat.domain.diff import LoopChange
from agentplat.domain.languages import Language
from agentplat.domain.outbox import EntryState
from agentplat.domain.registry import ReportState
from agentplat.domain.scopes import Ref
from agentplat.domain.shown import ShownReport
from agentplat.domain.texts import SENTENCES, instructions, set_off
from agentplat.loop_check import loop_line, unanswered, warning
from agentplat.usecases.preview_version import Preview
from agentplat.usecases.suggest_instructions import Suggestion


def report_lines(shown: ShownReport, language: Language) -> list[str]:
    """The warning of a report, and what else its reader must know; nothing where there is nothing to say."""
    words = SENTENCES[language]
    if shown.body is not None:
        marks = [words.fresh] if shown.fresh else []
        return [*marks, *warning(shown.body, language), *_paused_lines(shown.paused, language)]
    if shown.refused is not None:
        return [unanswered(language), words.refused.format(reason=set_off(shown.refused, language))]
    if shown.state is ReportState.NOT_ANSWERED and shown.delivery is EntryState.SKIPPED:
        return [words.skipped]
    return [unanswered(language)]


def preview_lines(preview: Preview, language: Language) -> list[str]:
    """The warning that publishing would give, and the loops that come and go."""
    if preview.body is None:
        return [unanswered(language)]
    lines = [*warning(preview.body, language), *_paused_lines(preview.paused, language)]
    return [*lines, *([] if preview.diff.loops is None else _change_lines(preview.diff.loops, language))]


def suggestion_text(suggestion: Suggestion, language: Language) -> str:
    """Instructions to start from, empty where no readable source exposes an artifact."""
    return instructions(suggestion.trigger, suggestion.artifacts, language)


def _paused_lines(paused: Iterable[Ref], language: Language) -> list[str]:
    return [SENTENCES[language].paused.format(agent=set_off(ref.text, language)) for ref in paused]


def _change_lines(loops: LoopChange, language: Language) -> list[str]:
    words = SENTENCES[language]
    lines = [words.closes.format(path=loop_line(path, language)) for path in loops.closed]
    lines += [words.opens.format(path=loop_line(path, language)) for path in loops.opened]
    return lines if loops.exact else [*lines, words.inexact]
