"""The graph service is killed amid publications, again and again: what it acknowledged is there, and nothing is half there."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event

import pytest

from graphsvc.client import AgentVersion, Declaration, GraphClient, Unanswered, declare, parse_agent
from graphsvc.domain.model import EntryKind, LogEntry
from graphsvc.store.opening import open_store
from tests.acceptance.lives import zygote
from tests.graphsvc.rpc.processes import serve
from tests.graphsvc.rpc.serving import PATIENCE_S, wait_until

AUTHORS, BLOCK = 4, 5


@cache
def _content(name: str, number: int) -> Declaration:
    """What an agent says in one of its versions, so that a log can be compared with what was sent."""
    emits = [
        {"event": f"{name}.{number}.{i}", "context": f"context of {name} {number}", "artifacts": [f"artifact-{number}-{i}"]}
        for i in range(number % 4)
    ]
    return declare(emits, [f"author-{i}.{number - 1}.0" for i in range(AUTHORS)])


def _version(name: str, number: int) -> AgentVersion:
    return AgentVersion(parse_agent(f"acme/platform:{name}"), number, _content(name, number))


@dataclass
class Author:
    """Publishes one version of its agent after the other; one that was not acknowledged is sent again in the server's next life."""

    name: str
    dice: random.Random
    revisions: list[int] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        """Publications acknowledged until now; version n got revisions[n - 1]."""
        return len(self.revisions)

    def run(self, client: GraphClient) -> None:
        """Publish until the server is gone."""
        try:
            while True:
                number = len(self.revisions) + 1
                published = client.publish(_version(self.name, number))
                assert published.report.revision >= published.revision
                self.revisions.append(published.revision)
                old = self.dice.randint(1, number)
                again = client.publish(_version(self.name, old))
                assert (again.revision, again.created) == (self.revisions[old - 1], False)
        except Unanswered:
            return


@dataclass
class Loader:
    """Imports one block of versions after the other, each all or none."""

    blocks: int = 0
    names: Sequence[str] = tuple(f"loaded-{i}" for i in range(BLOCK))

    @property
    def acknowledged(self) -> int:
        """Blocks acknowledged until now."""
        return self.blocks

    def run(self, client: GraphClient) -> None:
        """Import until the server is gone."""
        try:
            while True:
                imported = client.import_versions(_version(name, self.blocks + 1) for name in self.names)
                assert (imported.created, imported.unchanged) in ((BLOCK, 0), (0, BLOCK))
                self.blocks += 1
        except Unanswered:
            return


@dataclass(frozen=True)
class Victim:
    """A server about to be killed. revision: where it stood when it was ready."""

    address: str
    revision: int
    kill: Callable[[], None]


def _forked(folder: Path, url: str, lives: int) -> Generator[Victim, None, None]:
    with zygote(folder) as mother:
        for _ in range(lives):
            life = mother.start("graphsvc", "serve", "--store-url", url, "--listen", "127.0.0.1:0")
            yield Victim(life.address, life.ready["revision"], life.kill)


def _fresh(folder: Path, url: str, lives: int) -> Generator[Victim, None, None]:
    for _ in range(lives):
        with serve("--store-url", url, cwd=folder) as server:

            def kill(process=server.process) -> None:
                process.kill()
                assert process.wait(PATIENCE_S) < 0

            yield Victim(server.address, server.ready["revision"], kill)


def _publish_until_killed(victim: Victim, authors: Sequence[Author | Loader], dice: random.Random) -> None:
    def acknowledged() -> int:
        return sum(author.acknowledged for author in authors)

    goal = acknowledged() + dice.randint(1, 12)
    with GraphClient(victim.address, deadline_s=PATIENCE_S) as client, ThreadPoolExecutor(len(authors)) as pool:
        runs = [pool.submit(author.run, client) for author in authors]
        try:
            wait_until(lambda: acknowledged() >= goal or any(run.done() for run in runs), "versions were acknowledged")
            Event().wait(dice.uniform(0, 0.01))  # nothing is waited for: this is the moment that chance chose
        finally:
            victim.kill()
        for run in runs:
            run.result(PATIENCE_S)


def _read(url: str, after: int) -> list[LogEntry]:
    with closing(open_store(url)) as store:
        return list(store.read(after))


def _assert_whole(log: Sequence[LogEntry], authors: Sequence[Author], loader: Loader) -> None:
    """No gap, contents as sent, versions once and in order, blocks in one piece, and nothing acknowledged lost."""
    assert [entry.revision for entry in log] == list(range(1, len(log) + 1))
    assert all(entry.kind is EntryKind.PUBLISH for entry in log)
    told: dict[str, list[LogEntry]] = {}
    for entry in log:
        assert entry.declaration == _content(entry.agent.name, entry.number)
        told.setdefault(entry.agent.name, []).append(entry)
    for entries in told.values():
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    for author in authors:
        # The last publication may have been stored without its answer getting out; no other may.
        revisions = [entry.revision for entry in told.get(author.name, [])]
        assert revisions[: author.acknowledged] == author.revisions
        assert len(revisions) <= author.acknowledged + 1
    assert len({len(told.get(name, [])) for name in loader.names}) == 1
    blocks = list(zip(*(told.get(name, []) for name in loader.names), strict=True))
    assert loader.blocks <= len(blocks) <= loader.blocks + 1
    for block in blocks:
        assert [entry.revision for entry in block] == list(range(block[0].revision, block[0].revision + BLOCK))


def _kill_again_and_again(victims: Iterator[Victim], url: str, seed: int) -> None:
    dice = random.Random(seed)
    authors = [Author(f"author-{i}", random.Random(seed + i)) for i in range(AUTHORS)]
    loader = Loader()
    log: list[LogEntry] = []
    for victim in victims:
        # Read only now: it is the server's task to mend whatever the kill left in the files.
        log += _read(url, len(log))
        assert victim.revision == len(log)
        _assert_whole(log, authors, loader)
        _publish_until_killed(victim, [*authors, loader], dice)
    log = _read(url, 0)
    _assert_whole(log, authors, loader)
    assert all(author.acknowledged for author in authors)
    assert loader.blocks


@pytest.mark.promise("G-22", "G-25", "G-26")
def test_two_hundred_kills_lose_no_publication_and_halve_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'graph.db'}"
    with closing(_forked(tmp_path, url, 200)) as victims:
        _kill_again_and_again(victims, url, seed=26)


@pytest.mark.promise("G-26")
def test_a_command_that_is_killed_and_typed_again_finds_everything_it_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'graph.db'}"
    with closing(_fresh(tmp_path, url, 5)) as victims:
        _kill_again_and_again(victims, url, seed=5)
