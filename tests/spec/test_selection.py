"""``--promise`` chooses tests by the promises they prove."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spec.sample import write_sample


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("sample") / "project")


def run(sample: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Exit status, names of the tests chosen, and everything printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments],
        cwd=sample,
        env={**os.environ, "PYTHONPATH": str(sample)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, re.findall(r"::(test_\w+) PASSED", done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ([], ["test_double", "test_halve", "test_weak", "test_count", "test_without_mark"]),
        (["--promise", "G-1"], ["test_double"]),
        (["--promise", "G-"], ["test_double", "test_halve"]),
        (["--promise", "G-10", "--promise", "P-2"], ["test_halve", "test_count"]),
    ],
)
def test_an_id_chooses_its_own_tests_and_an_area_all_of_its_tests(sample: Path, arguments: list[str], chosen: list[str]) -> None:
    status, names, output = run(sample, *arguments)
    assert (status, names) == (0, chosen), output


@pytest.mark.parametrize("asked", ["G-2", "G"])
def test_an_id_or_area_that_no_promise_has_is_refused(sample: Path, asked: str) -> None:
    status, names, output = run(sample, "--promise", asked)
    assert (status, names) == (pytest.ExitCode.USAGE_ERROR, []), output
    assert f"--promise {asked}: no promise in force has this id or area" in output


def test_a_test_whose_mark_names_no_promise_in_force_fails_even_when_the_id_is_computed(tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "project")
    stray = "import pytest\n\nIDS = ['G-1', 'G-77']\n\n\n@pytest.mark.promise(*IDS)\ndef test_stray():\n    pass\n"
    (sample / "tests" / "test_stray.py").write_text(stray, encoding="utf-8")
    status, names, output = run(sample, "--promise", "G-1")
    assert (status, names) == (pytest.ExitCode.TESTS_FAILED, ["test_double"]), output
    assert "marked with G-77, which tests/spec/promises.yaml does not have" in output
