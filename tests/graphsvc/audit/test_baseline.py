"""Baselines: what is accepted is hidden for as long as somebody stands for it."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from graphsvc.audit.baseline import Acceptance, Baseline, acceptance_of, read_baseline, write_baseline
from graphsvc.domain.audit import AuditLimits, Finding, LoopComponent, SearchCut, TriggersToDrop
from graphsvc.domain.errors import InvalidInput
from tests.graphsvc.audit.auditing import TODAY, audited, of_kind
from tests.oracle import agent

PAIR = [agent("a", ["y"], ["x"], "acme"), agent("b", ["x"], ["y"], "acme")]
ENTRY = {"fingerprint": "0" * 64, "rule": "LW101", "owner": "platform team", "reason": "meant", "expires": "2027-01-31"}


def accepting(findings: list[Finding], expires: date = TODAY) -> dict[str, Acceptance]:
    entries = [acceptance_of(found, "platform team", "meant", expires) for found in findings]
    return {entry.fingerprint: entry for entry in entries if entry}


def file_with(folder: Path, *entries: Any, **others: Any) -> Path:
    path = folder / "baseline.json"
    path.write_text(json.dumps({"form": 1, "accepted": list(entries), **others}), encoding="utf-8")
    return path


def refused(path: Path) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read_baseline(path, TODAY)
    assert all(violation.place == str(path) and violation.remedy for violation in caught.value.violations)
    return [violation.field for violation in caught.value.violations]


@pytest.mark.promise("O-9")
def test_what_is_accepted_counts_to_its_last_day_and_not_after_it() -> None:
    findings = audited(PAIR)
    for today, hidden in ((TODAY, True), (TODAY + timedelta(days=1), False)):
        baseline = Baseline(accepting(findings), today)
        assert {each.accepted is not None for each in baseline.judge(findings)} == {hidden}
        assert bool(baseline.expired) is not hidden
        assert baseline.unmet == []


@pytest.mark.promise("O-9")
def test_what_to_drop_is_hidden_with_its_component_and_shown_with_it() -> None:
    findings = audited(PAIR)
    entries = accepting(of_kind(findings, LoopComponent))  # type: ignore[arg-type]
    judged = {type(each.finding).__name__: each.accepted is not None for each in Baseline(entries, TODAY).judge(findings)}
    assert judged == {"LoopComponent": True, "ShortestLoop": False, "TriggersToDrop": True}
    assert not any(each.accepted for each in Baseline({}, TODAY).judge(findings))


@pytest.mark.promise("O-9")
def test_a_component_that_changed_is_not_accepted_any_more() -> None:
    baseline = Baseline(accepting(audited(PAIR)), TODAY)
    grown = audited([*PAIR, agent("c", ["x"], ["y"], "acme")])
    judged = [each for each in baseline.judge(grown) if isinstance(each.finding, (LoopComponent, TriggersToDrop))]
    assert [each.accepted for each in judged] == [None, None]
    assert [entry.rule for entry in baseline.unmet] == ["LW101"]


@pytest.mark.promise("O-9")
def test_what_was_not_looked_at_cannot_be_accepted() -> None:
    (cut,) = of_kind(audited(PAIR, limits=AuditLimits(max_visits=0)), SearchCut)
    assert acceptance_of(cut, "platform team", "meant", TODAY) is None
    forged = Acceptance(fingerprint=cut.fingerprint, rule=cut.rule.id, owner="me", reason="x", expires=TODAY)
    assert [each.accepted for each in Baseline({cut.fingerprint: forged}, TODAY).judge([cut])] == [None]


@pytest.mark.promise("O-9")
def test_a_baseline_that_was_written_is_read_back_in_order(tmp_path: Path) -> None:
    entries = accepting(audited(PAIR))
    path = tmp_path / "baseline.json"
    assert write_baseline(path, reversed(list(entries.values()))) == len(entries)
    assert read_baseline(path, TODAY).entries == entries
    before = path.read_bytes()
    write_baseline(path, entries.values())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["baseline.json"]


@pytest.mark.promise("O-9")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"fingerprint": "0" * 63}, "accepted[1].fingerprint"),
        ({"fingerprint": "G" * 64}, "accepted[1].fingerprint"),
        ({"fingerprint": 7}, "accepted[1].fingerprint"),
        ({"rule": "LW999"}, "accepted[1].rule"),
        ({"rule": []}, "accepted[1].rule"),
        ({"owner": " "}, "accepted[1].owner"),
        ({"owner": None}, "accepted[1].owner"),
        ({"reason": "x" * 1_001}, "accepted[1].reason"),
        ({"reason": "a\nb"}, "accepted[1].reason"),
        ({"expires": "2027-02-30"}, "accepted[1].expires"),
        ({"expires": "20270131"}, "accepted[1].expires"),
        ({"expires": 2027}, "accepted[1].expires"),
        ({"about": 1}, "accepted[1].about"),
        ({"extra": 1}, "accepted[1]"),
    ],
)
def test_a_faulty_entry_is_refused_with_its_place(changes: dict[str, object], field: str, tmp_path: Path) -> None:
    assert refused(file_with(tmp_path, ENTRY, {**ENTRY, "fingerprint": "1" * 64, **changes})) == [field]


@pytest.mark.promise("O-9")
def test_all_faults_of_a_baseline_are_told_at_once(tmp_path: Path) -> None:
    missing = {key: value for key, value in ENTRY.items() if key != "owner"}
    assert refused(file_with(tmp_path, ENTRY, ENTRY, missing, "x")) == ["accepted[1].fingerprint", "accepted[2]", "accepted[3]"]


@pytest.mark.promise("O-9")
def test_what_is_no_baseline_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    for content in (b"", b"[]", b"{", b"\xff", b'{"form": 1}', b'{"form": 1, "accepted": {}}', b"[" * 100_000):
        path.write_bytes(content)
        assert refused(path) == ["baseline"]
    assert refused(file_with(tmp_path, form=2)) == ["form"]
    assert refused(file_with(tmp_path, form=True)) == ["form"]
    assert refused(tmp_path / "nothing.json") == ["baseline"]


@pytest.mark.promise("O-9")
def test_a_baseline_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        write_baseline(tmp_path / "nowhere" / "baseline.json", [])
