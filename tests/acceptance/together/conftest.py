"""One running platform for all tests of this folder: a start takes many seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.together.hall import Hall, Room, hall


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """All processes on one data folder."""
    with hall(tmp_path_factory.mktemp("up")) as found:
        yield found


@pytest.fixture
def room(running: Hall) -> Room:
    """An area of the test's own, with two agents that programs drive."""
    made = running.room()
    made.publish("alice", "bob", tools=["create_ticket", "move_ticket", "assign_ticket", "delegate_task"])
    return made
