"""The stage of the browser tests, for what needs no browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.hall import Hall, furnish
from tests.browser.stage import Stage, staged


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A platform with agents and people."""
    with staged(tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.fixture(scope="package")
def hall(stage: Stage) -> Hall:
    """A workspace in use."""
    return furnish(stage)
