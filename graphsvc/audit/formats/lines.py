"""Text, JSON, JSON lines and GitHub annotations: a finding is a line or a few."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from graphsvc.audit.baseline import Judged
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.formats.sarif import agents_of
from graphsvc.audit.messages import message_of
from graphsvc.domain.rules import RULES, Level

FORM = 1
"""Grows when the JSON changes its meaning."""

_COMMANDS = {Level.LOOP: "warning", Level.SELF: "warning", Level.NOTICE: "notice", Level.ADVICE: "notice", Level.DOUBT: "error"}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Tally:
    """Passes on what is not accepted, and counts."""

    def __init__(self) -> None:
        self.shown: Counter[str] = Counter()
        self.accepted = 0

    def open_ones(self, judged: Iterable[Judged]) -> Iterator[Judged]:
        for each in judged:
            if each.accepted is None:
                self.shown[each.finding.rule.id] += 1
                yield each
            else:
                self.accepted += 1

    def as_json(self) -> dict[str, Any]:
        counts = {rule.id: self.shown[rule.id] for rule in RULES if self.shown[rule.id]}
        return {"findings": self.shown.total(), "counts": counts, "accepted": self.accepted}

    def text(self) -> str:
        total = self.shown.total()
        kinds = ", ".join(f"{self.shown[rule.id]} {rule.name}" for rule in RULES if self.shown[rule.id])
        found = f"{total} finding{'' if total == 1 else 's'}: {kinds}" if total else "no findings"
        return f"{found}; {self.accepted} accepted in the baseline" if self.accepted else found


def text(_: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """A line for each finding, and one that counts them."""
    tally = _Tally()
    for each in tally.open_ones(judged):
        rule = each.finding.rule
        yield f"{rule.id} {rule.name}: {message_of(each.finding)}"
    yield tally.text()


def json_document(heading: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """One JSON object, written as the findings come."""
    tally = _Tally()
    yield f'{{"form": {FORM}, "audit": {_json(heading.as_json())}, "findings": ['
    before = ""
    for each in tally.open_ones(judged):
        yield before + _json(each.finding.as_json())
        before = ","
    yield f'], "summary": {_json(tally.as_json())}}}'


def json_lines(heading: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """The heading, a finding a line, and the summary: who reads a summary has read everything."""
    tally = _Tally()
    yield _json({"form": FORM, "audit": heading.as_json()})
    for each in tally.open_ones(judged):
        yield _json(each.finding.as_json())
    yield _json({"summary": tally.as_json()})


def _escaped(data: str) -> str:
    return data.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _place(heading: Heading, judged: Judged) -> str:
    agents = agents_of(judged.finding)
    place = heading.place_of(agents[0]) if agents else None
    if place is None:
        return ""
    path, line = place
    return f"file={_property(path)}," + (f"line={line}," if line is not None else "")


def _property(data: str) -> str:
    return _escaped(data).replace(":", "%3A").replace(",", "%2C")


def github(heading: Heading, judged: Iterable[Judged]) -> Iterator[str]:
    """Workflow commands that GitHub Actions shows as annotations."""
    for each in _Tally().open_ones(judged):
        rule = each.finding.rule
        title = _property(f"{rule.id} {rule.name}")
        yield f"::{_COMMANDS[rule.level]} {_place(heading, each)}title={title}::{_escaped(message_of(each.finding))}"
