"""Reads the manifest of promises, and finds in the test files which of them are marked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

PROMISES = Path("tests/spec/promises.yaml")


@dataclass(frozen=True, slots=True)
class Mark:
    """One id in one ``pytest.mark.promise(...)``, with the file and line where it stands."""

    promise: str
    place: str


def read_promises(path: Path) -> dict[str, str]:
    """Promise ids in the order of the manifest, each with its sentence."""
    promises = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return {str(name): str(sentence) for name, sentence in promises.items()}


def asks_for(asked: str, promise: str) -> bool:
    """Whether ``--promise G-1`` (an id) or ``--promise G-`` (an area) means this promise."""
    return promise == asked or (asked.endswith("-") and promise.startswith(asked))


def marks_in(path: Path) -> Iterator[Mark]:
    """Every id that a test file writes out in a promise mark.

    Ids that are computed, such as those a text world brings along, are left to collection, which refuses unknown ones.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        match node:
            case ast.Call(func=ast.Attribute(attr="promise", value=ast.Attribute(attr="mark") | ast.Name(id="mark")), args=args):
                for arg in args:
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                        yield Mark(arg.value, f"{path}:{arg.lineno}")


def all_marks(tests: Path) -> list[Mark]:
    """The marks of every test file below a folder, by path."""
    return [mark for path in sorted(tests.rglob("test_*.py")) for mark in marks_in(path)]
