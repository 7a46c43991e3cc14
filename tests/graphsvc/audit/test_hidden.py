"""What is hidden from an auditor, and in which order things were published, changes no byte of an audit in any form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsvc.audit import dropping
from graphsvc.audit.formats.choice import AuditFormat
from graphsvc.audit.local import audit
from graphsvc.columns import in_columns
from graphsvc.domain.audit import AuditLimits, Finding, Progress
from tests.graphsvc.audit.auditing import as_bytes, audited, written
from tests.graphsvc.folding import reader, version_of
from tests.oracle import agent
from tests.properties.test_redaction import twins
from tests.properties.worlds import World, worlds

ROOT = Path(__file__).parents[3]
PATIENCE_S = 180


@pytest.mark.promise("O-9", "O-10", "G-16")
@settings(max_examples=150)
@given(twins(), st.sampled_from([0, dropping.EXACT_UNITS]))
def test_hidden_names_scopes_and_private_events_change_no_byte(both: tuple[World, World], exact: int) -> None:
    said: list[tuple[list[Finding], list[Progress]]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dropping, "EXACT_UNITS", exact)
        for world in both:
            told: list[Progress] = []
            said.append((list(audit(in_columns(map(version_of, world.published)), reader(world.reader), tell=told.append)), told))
    (one, one_told), (other, other_told) = said
    assert as_bytes(one) == as_bytes(other)
    assert one_told == other_told
    for form in AuditFormat:
        assert written(one, form) == written(other, form)


@pytest.mark.promise("O-9", "G-16")
@settings(max_examples=25)
@given(twins())
def test_hidden_names_do_not_move_the_place_where_a_search_is_cut(both: tuple[World, World]) -> None:
    for max_visits in range(0, 60, 3):
        limits = AuditLimits(max_visits=max_visits, max_length=4)
        one, other = (audited(world.published, world.reader, limits=limits) for world in both)
        assert as_bytes(one) == as_bytes(other)


@pytest.mark.promise("O-10")
@settings(max_examples=100)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_no_byte(world: World, random: object) -> None:
    shuffled = list(world.published)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert as_bytes(audited(world.published, world.reader)) == as_bytes(audited(shuffled, world.reader))


@pytest.mark.promise("O-10")
def test_neither_hash_seed_nor_process_changes_a_byte() -> None:
    team = str(ROOT / "tests" / "golden" / "team.jsonl")
    for form in (AuditFormat.SARIF, AuditFormat.GRAPHML):
        said = set()
        for seed in ("1", "2", "3"):
            environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "graphsvc", "audit", team, "--reader", "acme", "--format", form.value]
            said.add(subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True, timeout=PATIENCE_S).stdout)
        assert len(said) == 1


@pytest.mark.promise("O-10")
@pytest.mark.parametrize("form", list(AuditFormat))
def test_no_form_names_what_the_auditor_may_not_see(form: AuditFormat) -> None:
    agents = [
        agent("mine", ["back"], ["out"], "acme"),
        agent("SECRET-1", ["out"], ["SECRET-EVENT"], "SECRET-SCOPE"),
        agent("SECRET-2", ["SECRET-EVENT"], ["back"], "SECRET-SCOPE"),
        agent("SECRET-3", ["back", "SECRET-EVENT"], ["SECRET-EVENT"], "SECRET-SCOPE"),
    ]
    text = written(audited(agents, ["acme"]), form)
    assert "SECRET" not in text
    assert "acme:mine" in text
    assert "SECRET-EVENT" in written(audited(agents), form)
