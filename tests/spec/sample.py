"""A project of a few lines with this repository's own pytest set-up, to see that promises and mutants work as they should."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "tests/spec/promises.yaml": "G-1: Doubling is right.\nG-10: Halving is right.\nP-1: Nobody says so.\nP-2: Counting ends.\n",
    "arithmetic.py": (
        "def double(n):\n    return n * 2\n\n\n"
        "def halve(n):\n    return n // 2\n\n\n"
        "def count(n):\n    while n:\n        n -= 1\n    return n\n"
    ),
    "tests/test_arithmetic.py": (
        "import pytest\nfrom arithmetic import count, double, halve\n\n\n"
        "@pytest.mark.promise('G-1')\ndef test_double():\n    assert double(3) == 6\n\n\n"
        "@pytest.mark.promise('G-10')\ndef test_halve():\n    assert halve(6) == 3\n\n\n"
        "@pytest.mark.promise('P-1')\ndef test_weak():\n    double(3)\n\n\n"
        "@pytest.mark.promise('P-2')\ndef test_count():\n    assert count(3) == 0\n\n\n"
        "def test_without_mark():\n    pass\n"
    ),
}


def write_sample(folder: Path) -> Path:
    """Write the project into a new folder and return it."""
    for part in ("pyproject.toml", "tests/conftest.py", "tests/spec/manifest.py", "tests/mutants/guard.py"):
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / part, target)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder
