"""``python -m tests.spec.guarantees``: write docs/guarantees.md from the manifest of promises."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.spec.manifest import PROMISES, read_promises

PAGE = Path("docs/guarantees.md")
AREAS = {
    "G": "The graph service",
    "P": "Publishing",
    "R": "Runs, trails, chains and the dispatcher",
    "A": "Artifacts, labels, the Gate and budgets",
    "D": "Delegation, output contracts and orchestration",
    "O": "Commands, settings, access and limits",
    "W": "Workspaces, tickets, spaces and work trees",
    "U": "Studio",
}


def render(promises: Mapping[str, str]) -> str:
    """The page as Markdown: one table for each area. Raises KeyError for a promise of an area without heading."""
    lines = [
        "# Guarantees",
        "",
        "What this release promises. Every line is proved by tests that carry its id (`make test PYTEST_ARGS='--promise G-1'`)",
        "and that fail when the code is broken on purpose (`make mutants PROMISE=G-1`).",
        "",
        "<!-- Made from tests/spec/promises.yaml by: make guarantees -->",
    ]
    area = ""
    for name, sentence in promises.items():
        if name.partition("-")[0] != area:
            area = name.partition("-")[0]
            lines += ["", f"## {AREAS[area]}", "", "| id | promise |", "|---|---|"]
        lines.append(f"| {name} | {sentence} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(read_promises(PROMISES)), encoding="utf-8")
