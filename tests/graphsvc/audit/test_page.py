"""docs/audit.md shows what the command prints, and lists the rules there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphsvc.domain.rules import RULES
from tests.graphsvc.cli.running import run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


@pytest.mark.promise("O-9")
def test_the_transcripts_are_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    transcripts = re.findall(r"```text\n\$ graphsvc (.*)\n((?:.*\n)*?)```", PAGE)
    assert len(transcripts) == 2
    for command, shown in transcripts:
        words = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in command.split()]
        assert run(*[part for word in words for part in word]).stdout == shown


@pytest.mark.promise("O-9")
def test_the_rules_are_all_listed() -> None:
    rows = re.findall(r"^\| (LW\d+) \| (\S+) \| (\w+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(rule.id, rule.name, rule.level.value, rule.meaning) for rule in RULES]
