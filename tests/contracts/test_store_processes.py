"""Several processes on one log, processes that are killed, and servers that go away."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event

import pytest

from graphsvc.domain.errors import StoreUnavailable
from graphsvc.store.opening import migrate, open_store
from tests.contracts import log_writer
from tests.contracts.entries import agent, append, everything, published, written_by
from tests.postgres import running_postgres

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 120
"""Far beyond what any wait here takes, even on a busy machine."""


class Writer:
    """A process of log_writer.py."""

    def __init__(self, url: str, author: str, *, blocks: int, size: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        if sys.modules.get("pysqlite3", self) is None:
            environment["WITHOUT_PYSQLITE3"] = "1"
        command = [sys.executable, str(log_writer.__file__), url, author, str(blocks), str(size)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment)

    def line(self) -> str:
        """The next line it says; empty at its end."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], WAIT_S)[0], "the writer says nothing"
        return self.process.stdout.readline().decode().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")

    def acknowledged(self) -> list[int]:
        """The revisions it says until its end."""
        return [int(line) for line in iter(self.line, "")]


@contextmanager
def writers(url: str, *authors: str, blocks: int, size: int) -> Iterator[list[Writer]]:
    """Processes that are ready to write, all killed at the end."""
    with ExitStack() as stack:
        started = []
        for author in authors:
            writer = Writer(url, author, blocks=blocks, size=size)
            stack.enter_context(writer.process)
            stack.callback(writer.process.kill)
            started.append(writer)
        assert [writer.line() for writer in started] == ["ready"] * len(authors)
        yield started


@pytest.mark.promise("G-25", "G-26", "G-27")
def test_processes_on_one_log_lose_nothing_and_tear_no_block(url: str) -> None:
    authors, blocks, size = ("one", "two"), 25, 3
    # Both find no schema and bring it up to date at the same time.
    with writers(url, *authors, blocks=blocks, size=size) as started:
        for writer in started:
            writer.go()
        acknowledged = [writer.acknowledged() for writer in started]
        assert [writer.process.wait(WAIT_S) for writer in started] == [0, 0]
    with closing(open_store(url)) as store:
        entries = everything(store)
    assert len(entries) == len(authors) * blocks * size
    for author, revisions in zip(authors, acknowledged, strict=True):
        assert written_by(author, entries) == list(range(1, blocks * size + 1))
        assert [entries[revision - 1].agent.name for revision in revisions] == [author] * blocks
    for start in range(0, len(entries), size):
        assert len({entry.agent for entry in entries[start : start + size]}) == 1


@pytest.mark.promise("G-26", "G-27")
def test_another_process_sees_a_block_as_soon_as_it_was_acknowledged(url: str) -> None:
    with writers(url, "one", blocks=5, size=2) as [writer], closing(open_store(url)) as store:
        writer.go()
        for revision in map(int, iter(writer.line, "")):
            assert store.head() >= revision
            assert next(store.read(revision - 1)).revision == revision


@pytest.mark.promise("G-26")
def test_a_killed_process_has_kept_every_block_it_acknowledged_and_half_of_none(url: str) -> None:
    chance = random.Random(26)
    size, kept = 40, 0
    for attempt in range(4):
        author = f"author-{attempt}"
        with writers(url, author, blocks=0, size=size) as [writer]:
            writer.go()
            said = [int(writer.line()) for _ in range(chance.randint(1, 6))]
            Event().wait(chance.uniform(0, 0.02))
            writer.process.kill()
            said += writer.acknowledged()
        with closing(open_store(url)) as store:
            entries = everything(store)
            assert store.head() == len(entries)
        assert len(entries) % size == 0
        assert len(entries) >= said[-1] == kept + len(said) * size
        assert len(written_by(author, entries)) in (len(said) * size, (len(said) + 1) * size)
        kept = len(entries)


@pytest.mark.promise("G-25")
def test_a_log_opened_again_is_the_same_log(url: str) -> None:
    with closing(open_store(url)) as store:
        appended = append(store, published(1), published(2, agent("reviewer")))
    with closing(open_store(url)) as store:
        assert everything(store) == appended
        assert append(store, published(2))[0].revision == 3


@pytest.mark.promise("G-27")
def test_a_replica_that_does_nothing_with_its_turn_loses_it_to_the_others(postgres_url: str) -> None:
    stuck, other = open_store(postgres_url, patience_s=2), open_store(postgres_url)

    def be_stuck() -> None:
        with stuck.writing() as log:
            log.append([published(1)])
            assert append(other, published(2))[0].revision == 1
            log.append([published(3)])

    with closing(stuck), closing(other):
        with pytest.raises(StoreUnavailable):
            be_stuck()
        assert written_by("developer", everything(other)) == [2]
        assert stuck.head() == 1


def test_a_server_that_is_away_is_told_without_its_address_and_is_used_again_when_it_is_back() -> None:
    with running_postgres() as server, closing(open_store(server.url())) as store:
        append(store, published(1))
        server.stop()
        for call in (store.head, lambda: list(store.read(0)), lambda: store.find(agent(), 1), lambda: append(store, published(2))):
            with pytest.raises(StoreUnavailable) as refusal:
                call()
            assert str(refusal.value) == "the store of the graph service does not answer; try again later"
        server.start()
        assert append(store, published(2))[0].revision == 2
        assert written_by("developer", everything(store)) == [1, 2]


def test_a_server_that_was_away_between_two_calls_is_not_noticed() -> None:
    with running_postgres() as server, closing(open_store(server.url())) as store:
        append(store, published(1))
        server.stop()
        server.start()
        assert append(store, published(2))[0].revision == 2


@pytest.mark.promise("G-26")
def test_a_block_whose_server_goes_away_is_not_acknowledged() -> None:
    with running_postgres() as server, closing(open_store(server.url())) as store:

        def lose_the_server() -> None:
            with store.writing() as log:
                log.append([published(1)])
                server.stop()

        with pytest.raises(StoreUnavailable):
            lose_the_server()
        server.start()
        assert everything(store) == []


def test_a_file_in_a_folder_that_is_not_there_is_told_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        open_store(f"sqlite:///{tmp_path / 'missing' / 'log.db'}")
    assert str(refusal.value) == "the store of the graph service does not answer; try again later"


def test_a_server_that_was_never_there_is_told_without_its_password() -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        migrate("postgresql://graph:sesame@127.0.0.1:1/graph")
    assert str(refusal.value) == "the store of the graph service does not answer; try again later"
