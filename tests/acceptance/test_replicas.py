"""Two replicas on one PostgreSQL take publications at once: one log, one answer, and what one acknowledged the other knows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from graphsvc.client import AgentRef, AgentVersion, Declaration, GraphClient, Report, Unanswered, declare, parse_agent
from graphsvc.domain.model import LogEntry
from graphsvc.store.opening import open_store
from tests.acceptance.lives import Life, Zygote, zygote
from tests.graphsvc.rpc.serving import PATIENCE_S, wait_until

AUTHORS, VERSIONS = 4, 25
FLAGS = ("--write-patience-s", str(PATIENCE_S), "--follow-interval-s", "86400")
"""A replica looks for what the other stored only when it publishes, or when a caller has seen more than it has."""


def _agent(author: int) -> AgentRef:
    return parse_agent(f"acme/platform:author-{author}")


def _content(author: int, number: int) -> Declaration:
    """Version n of everybody hears version n of everybody else, so that loops come and go with every publication."""
    return declare([f"said-{author}-{number}"], [f"said-{other}-{number}" for other in range(AUTHORS) if other != author])


@dataclass
class Author:
    """Publishes at one replica, asks the other at once, and takes the other one where the first is gone."""

    number: int
    clients: Sequence[GraphClient]
    dice: random.Random
    revisions: list[int] = field(default_factory=list)
    moved: int = 0

    def run(self, versions: int) -> None:
        """Publish so many more versions."""
        here = self.dice.randrange(2)
        for _ in range(versions):
            number = len(self.revisions) + 1
            version = AgentVersion(_agent(self.number), number, _content(self.number, number))
            try:
                published = self.clients[here].publish(version)
            except Unanswered:
                # Whether it was stored is unknown; the other replica finds out.
                here = 1 - here
                self.moved += 1
                published = self.clients[here].publish(version)
            self.revisions.append(published.revision)
            here = 1 - here
            try:
                self._is_known(self.clients[here], version, published.revision)
            except Unanswered:
                here = 1 - here
                self.moved += 1

    def _is_known(self, client: GraphClient, version: AgentVersion, revision: int) -> None:
        seen = client.describe(version.agent, at_least_revision=revision)
        assert seen.revision >= revision
        assert seen.version == version


def _replica(mother: Zygote, url: str) -> Life:
    return mother.start("graphsvc", "serve", "--store-url", url, "--listen", "127.0.0.1:0", *FLAGS)


def _run(authors: Sequence[Author], versions: int, victim: Life | None, dice: random.Random) -> None:
    def stored() -> int:
        return sum(len(author.revisions) for author in authors)

    with ThreadPoolExecutor(len(authors)) as pool:
        runs = [pool.submit(author.run, versions) for author in authors]
        if victim is not None:
            goal = stored() + dice.randint(4, AUTHORS * versions // 2)
            wait_until(
                lambda: sum(len(author.revisions) for author in authors) >= goal or any(run.done() for run in runs),
                "some were stored",
            )
            Event().wait(dice.uniform(0, 0.01))  # nothing is waited for: this is the moment that chance chose
            victim.kill()
        for run in runs:
            run.result(PATIENCE_S)


def _log(url: str) -> list[LogEntry]:
    with closing(open_store(url)) as store:
        return list(store.read(0))


def _assert_whole(log: Sequence[LogEntry], authors: Sequence[Author]) -> None:
    assert [entry.revision for entry in log] == list(range(1, len(log) + 1))
    for author in authors:
        own = [entry for entry in log if entry.agent == _agent(author.number)]
        assert [entry.revision for entry in own] == author.revisions
        assert [entry.number for entry in own] == list(range(1, len(own) + 1))
        assert [entry.declaration for entry in own] == [_content(author.number, entry.number) for entry in own]
    assert len(log) == sum(len(author.revisions) for author in authors)


def _checks(client: GraphClient, revision: int) -> list[Report]:
    """The same questions at one revision: every agent with its first, its newest and its next version."""
    numbers = (1, VERSIONS, VERSIONS * 3)
    return [
        client.check(_agent(author), _content(author, number), at_least_revision=revision)
        for author in range(AUTHORS)
        for number in numbers
    ]


@pytest.mark.promise("G-21", "G-25", "G-26", "G-27")
def test_two_replicas_are_one_graph_even_when_one_of_them_is_killed(tmp_path: Path, postgres_url: str) -> None:
    dice = random.Random(27)
    with zygote(tmp_path) as mother, ExitStack() as stack:

        def client(life: Life) -> GraphClient:
            return stack.enter_context(GraphClient(life.address, deadline_s=PATIENCE_S))

        kept, victim = _replica(mother, postgres_url), _replica(mother, postgres_url)
        authors = [Author(i, (client(kept), client(victim)), random.Random(i)) for i in range(AUTHORS)]
        _run(authors, VERSIONS, None, dice)
        assert [author.moved for author in authors] == [0] * AUTHORS
        _assert_whole(_log(postgres_url), authors)

        _run(authors, VERSIONS, victim, dice)
        assert any(author.moved for author in authors)
        _assert_whole(_log(postgres_url), authors)

        back = _replica(mother, postgres_url)
        clients = (client(kept), client(back))
        for author in authors:
            author.clients = clients
        _run(authors, VERSIONS, None, dice)
        log = _log(postgres_url)
        _assert_whole(log, authors)

        one, other = (_checks(asked, len(log)) for asked in clients)
        assert [report.revision for report in one + other] == [len(log)] * len(one + other)
        assert [report.digest for report in one] == [report.digest for report in other]
        assert any(report.loops for report in one)
        for life in (kept, back):
            life.stop()
