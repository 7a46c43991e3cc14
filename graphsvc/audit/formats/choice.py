"""The forms by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from graphsvc.audit.baseline import Judged
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.formats.junit import junit
from graphsvc.audit.formats.lines import github, json_document, json_lines, text
from graphsvc.audit.formats.sarif import sarif

Write = Callable[[Heading, Iterable[Judged]], Iterator[str]]


class AuditFormat(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    MERMAID = "mermaid"
    DOT = "dot"
    GRAPHML = "graphml"


_WRITERS: dict[AuditFormat, Write] = {
    AuditFormat.TEXT: text,
    AuditFormat.JSON: json_document,
    AuditFormat.JSONL: json_lines,
    AuditFormat.SARIF: sarif,
    AuditFormat.JUNIT: junit,
    AuditFormat.GITHUB: github,
}


def writer(form: AuditFormat) -> Write:
    """What writes findings in this form, line by line."""
    if form in _WRITERS:
        return _WRITERS[form]
    # networkx takes half a second to load, which only drawings need.
    from graphsvc.audit.formats import drawing  # noqa: PLC0415

    drawings: dict[AuditFormat, Write] = {
        AuditFormat.MERMAID: drawing.mermaid,
        AuditFormat.DOT: drawing.dot,
        AuditFormat.GRAPHML: drawing.graphml,
    }
    return drawings[form]
