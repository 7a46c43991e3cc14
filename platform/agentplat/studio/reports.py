"""A version's warning as the pages show it: the very lines of the command line, and a picture of each loop (U-1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.languages import Language
from agentplat.domain.shown import ShownReport
from agentplat.studio.rings import Ring, rings
from agentplat.usecases.preview_version import Preview
from agentplat.usecases.tell import body_warning, preview_text, shown_text, warning_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLine:
    """One line of a report. warns: whether it belongs to the warning."""

    text: str
    warns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """A report. lines: word for word those of the command line. warns: whether there is anything to warn of."""

    lines: tuple[LoopLine, ...]
    rings: tuple[Ring, ...]
    warns: bool


def report_view(shown: ShownReport, language: Language) -> ReportView:
    """The report of a version."""
    return _view(shown_text(shown, language), set(warning_lines(shown, language)), shown.body)


def preview_view(preview: Preview, language: Language) -> ReportView:
    """What publishing would tell."""
    text = preview_text(preview, language)
    if preview.body is None:
        return _view(text, {text}, None)
    return _view(text, set(body_warning(preview.body, language)), preview.body)


def _view(text: str, warning: set[str], body: Mapping[str, Any] | None) -> ReportView:
    lines = tuple(LoopLine(text=line, warns=line in warning) for line in text.split("\n") if line)
    return ReportView(lines=lines, rings=() if body is None else rings(body), warns=bool(warning))
