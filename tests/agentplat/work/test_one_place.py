"""What must happen at one place only, seen in the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import agentplat
import pytest

PACKAGE = Path(agentplat.__file__).parent


def _calls(attribute: str, owner: str) -> Iterator[str]:
    """The modules that call ``….owner.attribute(…)``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == attribute
                and isinstance(node.func.value, ast.Attribute)
                and node.func.value.attr == owner
            ):
                yield path.relative_to(PACKAGE).as_posix()


@pytest.mark.promise("W-4")
@pytest.mark.parametrize("act", ["close", "wait"])
def test_no_run_ends_or_waits_without_its_space_being_told(act: str) -> None:
    assert list(_calls(act, "runs")) == ["usecases/tell_space.py"]


@pytest.mark.promise("W-2")
def test_tickets_are_made_at_one_place() -> None:
    assert list(_calls("make", "tickets")) == ["usecases/make_ticket.py"]
