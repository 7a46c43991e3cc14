"""An event with very many emitters and listeners costs their sum, never their product."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNT = 100_000
GIBIBYTE = 2**30
WAIT_S = 280


@pytest.mark.promise("G-12")
def test_an_event_with_100_000_emitters_and_100_000_listeners_is_loaded_and_checked_within_a_gibibyte() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.graphsvc.crowd", str(COUNT)], cwd=ROOT, capture_output=True, timeout=WAIT_S
    )
    assert ended.returncode == 0, ended.stderr.decode()
    answer = json.loads(ended.stdout)
    # The twin stands on both sides, and one listener emits a second event.
    assert answer["created"] == 2 * COUNT - 1
    assert answer["incidences"] == 2 * COUNT + 1
    assert answer["peak_bytes"] < GIBIBYTE
    expected = {
        "self": [["*:self"], ["*:self", "*:twin"]],
        "far": [["*:far", f"*:listener {COUNT // 2}"], ["*:far", "*:twin", f"*:listener {COUNT // 2}"]],
        "twin": [["*:twin"]],
    }
    for name, loops in expected.items():
        report = answer["reports"][name]
        assert [loop["agents"] for loop in report["loops"]] == loops
        assert report["verification"] == "complete"
        longest, longer = max(map(len, loops)), sum(len(loop) > 1 for loop in loops)
        if longer:
            assert 0 < report["visits"] <= 3 * longest * longer * answer["incidences"]
        else:
            assert (report["proof"], report["visits"]) == ("order", None)
