"""``--promise`` chooses tests by the promises they prove."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spec.manifest import asks_for
from tests.spec.sample import write_sample


def run(sample: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Exit status, names of the tests that passed, and everything printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments],
        cwd=sample,
        env={**os.environ, "PYTHONPATH": str(sample)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, re.findall(r"::(test_\w+) PASSED", done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("G-1", ["G-1"]), ("G-10", ["G-10"]), ("G-", ["G-1", "G-10"]), ("G", []), ("-", []), ("", []), ("1", [])],
)
def test_an_id_means_itself_and_an_area_all_of_its_promises(asked: str, meant: list[str]) -> None:
    assert [promise for promise in ("G-1", "G-10", "P-1") if asks_for(asked, promise)] == meant


def test_promises_choose_their_tests_and_a_test_with_an_unknown_one_fails_even_when_its_id_is_computed(tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "project")
    stray = "import pytest\n\nIDS = ['G-1', 'G-77']\n\n\n@pytest.mark.promise(*IDS)\ndef test_stray():\n    pass\n"
    (sample / "tests" / "test_stray.py").write_text(stray, encoding="utf-8")
    status, names, output = run(sample, "--promise", "G-1", "--promise", "P-")
    assert (status, names) == (pytest.ExitCode.TESTS_FAILED, ["test_double", "test_weak", "test_count"]), output
    assert "marked with G-77, which tests/spec/promises.yaml does not have" in output
    assert "2 deselected" in output


def test_an_id_that_no_promise_has_is_refused(tmp_path: Path) -> None:
    status, names, output = run(write_sample(tmp_path / "project"), "--promise", "G-2")
    assert (status, names) == (pytest.ExitCode.USAGE_ERROR, []), output
    assert "--promise G-2: no promise in force has this id or area" in output
