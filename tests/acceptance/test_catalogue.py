"""The catalogue of the examples, published by the command line at `agentplat up`, and its report as several people see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest
from agentplat.domain.access import OPERATOR, Grant, Role
from agentplat.store.sql import open_store
from agentplat.usecases.manage_people import ManagePeople
from agentplat.usecases.manage_tokens import ManageTokens

from tests.agentplat.processes import END_S, ROOT, Server, process, up
from tests.agentplat.world import ref, wait_until

CATALOGUE = ROOT / "examples" / "catalogue"
DEVELOPER = "acme/platform:developer"
SECOND = CATALOGUE / "acme-platform-developer-2.yaml"

START, REVIEWER, TESTER, RELEASER = (f"acme/platform:{name}" for name in ("developer", "reviewer", "tester", "releaser"))
PUBLISHERS_LOOPS = [
    [START, REVIEWER],
    [START, REVIEWER, TESTER],
    [START, REVIEWER, TESTER, RELEASER, "acme/docs:documentation"],
    [START, REVIEWER, TESTER, RELEASER, "acme/security:scanner"],
    [START, REVIEWER, TESTER, RELEASER, None],
]
READERS_LOOPS = [*PUBLISHERS_LOOPS[:2], *[[START, REVIEWER, TESTER, RELEASER, None]] * 3]


@dataclass(frozen=True)
class Person:
    """Somebody with a token in a file."""

    token_file: Path

    def publish(self, running: Server, *files: Path) -> list[Any]:
        """Publish files by the command; gives what it told of each version."""
        shown = ("--server", running.url, "--token-file", self.token_file, "--format", "json")
        done = process("publish", *files, *shown, cwd=self.token_file.parent)
        assert (done.status, done.err) == (0, "")
        return done.answers

    def report(self, running: Server) -> dict[str, Any]:
        """The report of the developer's second version as this person gets it."""
        token = self.token_file.read_text(encoding="utf-8")
        url = f"{running.url}/v1/agents/{quote(DEVELOPER, safe='')}/versions/2/report"
        answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=END_S)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


@contextmanager
def _people(folder: Path) -> Iterator[ManagePeople]:
    store = open_store(f"sqlite:///{folder / 'data' / 'agentplat.db'}")
    try:
        yield ManagePeople(store=store)
    finally:
        store.close()


def _person(folder: Path, name: str, role: Role, scope: str) -> Person:
    with _people(folder) as people:
        people.add(OPERATOR, ref(name))
        people.grant(OPERATOR, ref(name), Grant(role, scope))
        token = ManageTokens(store=people.store).make(OPERATOR, ref(name), "test", None)[0]
    file = folder / f"{name.replace(':', '-')}.token"
    file.write_text(token, encoding="utf-8")
    return Person(file)


def _loops(told: dict[str, Any]) -> list[Any]:
    return [loop["agents"] for loop in told["report"]["loops"]]


def _kill(running: Server) -> None:
    """Both processes end, and neither has a moment to do anything about it."""
    everybody = [psutil.Process(running.process.pid), *psutil.Process(running.process.pid).children(recursive=True)]
    assert len(everybody) > 1
    for one in everybody:
        one.kill()
    running.process.wait(END_S)
    wait_until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in everybody), "both ended")


@pytest.mark.promise("P-4", "P-7", "G-26")
def test_the_catalogue_closes_loops_that_its_publisher_and_a_reader_see_each_in_their_own_way(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        publisher = _person(tmp_path, "acme:publisher", Role.AUTHOR, "acme")
        supplier = _person(tmp_path, "globex:publisher", Role.AUTHOR, "globex")
        reader = _person(tmp_path, "acme:reader", Role.VIEWER, "acme/platform")
        first = [file for file in sorted(CATALOGUE.glob("acme-*.yaml")) if file != SECOND]
        told = publisher.publish(running, *first) + supplier.publish(running, *sorted(CATALOGUE.glob("globex-*.yaml")))
        assert [_loops(version) for version in told] == [[]] * len(told)

        [second] = publisher.publish(running, SECOND)
        assert (second["agent"], second["version"], second["state"], second["fresh"]) == (DEVELOPER, 2, "verified", False)
        assert _loops(second) == PUBLISHERS_LOOPS
        kept = publisher.report(running)
        assert (kept["report"], kept["fresh"]) == (second["report"], False)
        narrow = reader.report(running)
        assert narrow["fresh"]
        assert _loops(narrow) == READERS_LOOPS
        for name in ("acme/docs:", "acme/security:", "globex", "integrator", "scanner"):
            assert name not in str(narrow)
        assert "globex" not in str(kept)
        _kill(running)

    with up(tmp_path) as running:
        assert publisher.report(running) == kept
        assert reader.report(running) == narrow
        # Who published it once is a reader like any other as soon as their grants no longer cover what they saw then.
        with _people(tmp_path) as people:
            people.grant(OPERATOR, ref("acme:publisher"), Grant(Role.VIEWER, "acme/platform"))
            people.revoke(OPERATOR, ref("acme:publisher"), Grant(Role.AUTHOR, "acme"))
        assert publisher.report(running) == narrow
        assert running.stop() == 0
