"""What all tests share: choosing by promise, hypothesis profiles, the shared data."""

from __future__ import annotations

import os
import re
from pathlib import Path

import hypothesis
import pytest

from tests.spec.manifest import PROMISES, read_promises

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI") == "true"

# Examples that come and go with a seed belong on a developer's machine; CI and mutants want the same run every time.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
hypothesis.settings.load_profile("ci" if IN_CI else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--promise",
        action="append",
        default=[],
        metavar="ID",
        help="run only tests that prove this promise (G-1) or one of its area (G-); may be given several times",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse marks that name no promise in force, then keep what `--promise` asks for."""
    in_force = read_promises(ROOT / PROMISES)
    marks = {item: {str(name) for mark in item.iter_markers("promise") for name in mark.args} for item in items}
    unknown = [f"{item.nodeid}: {name}" for item in items for name in sorted(marks[item] - in_force.keys())]
    if unknown:
        raise pytest.UsageError("marks name promises that are not in tests/spec/promises.yaml:\n" + "\n".join(unknown))
    wanted = config.getoption("--promise")
    if not wanted:
        return
    for asked in wanted:
        if asked not in in_force and not (re.fullmatch(r"[A-Z]-", asked) and any(name.startswith(asked) for name in in_force)):
            raise pytest.UsageError(f"--promise {asked}: no promise in force has this id or area; see tests/spec/promises.yaml")
    kept = [item for item in items if any(name == asked or (asked[-1] == "-" and name.startswith(asked)) for name in marks[item] for asked in wanted)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real declarations, graphs and answers that stands beside the checkout."""
    folder = ROOT.parent / "shared" / "data"
    if folder.is_dir():
        return folder
    reason = "the folder ../shared/data is not there: the real declarations, graphs and answers are looked up in it"
    if IN_CI:
        pytest.fail(reason)
    pytest.skip(reason)
