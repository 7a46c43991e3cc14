"""What all tests share: choosing by promise, hypothesis profiles, the shared data."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from tests.spec.manifest import PROMISES, asks_for, read_promises

ROOT = Path(__file__).resolve().parent.parent
IN_CI = os.environ.get("CI") == "true"
IN_FORCE = pytest.StashKey[dict[str, str]]()

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


def pytest_configure(config: pytest.Config) -> None:
    config.stash[IN_FORCE] = read_promises(ROOT / PROMISES)
    for asked in config.getoption("--promise"):
        if not any(asks_for(asked, promise) for promise in config.stash[IN_FORCE]):
            raise pytest.UsageError(f"--promise {asked}: no promise in force has this id or area; see {PROMISES}")


def _promises_of(item: pytest.Item) -> set[str]:
    return {promise for mark in item.iter_markers("promise") for promise in mark.args}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--promise")
    if not wanted:
        return
    chosen = [any(asks_for(asked, promise) for asked in wanted for promise in _promises_of(item)) for item in items]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, chosen, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, chosen, strict=True) if kept]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose marks name a promise that is not in force; ids may be computed, so reading the files is not enough."""
    if unknown := sorted(_promises_of(item) - item.config.stash[IN_FORCE].keys()):
        pytest.fail(f"marked with {', '.join(unknown)}, which {PROMISES} does not have", pytrace=False)


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
