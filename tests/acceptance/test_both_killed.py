"""Both processes are killed again and again while people publish: each version arrives once, in order, and gets its report."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import httpx
import pytest
from agentplat.domain.access import OPERATOR, Grant, Role
from agentplat.domain.registry import ReportState
from agentplat.signing import make_key, read_key, write_public
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.manage_people import ManagePeople
from agentplat.usecases.manage_tokens import ManageTokens

from graphsvc.domain.model import EntryKind, LogEntry
from graphsvc.store.opening import open_store as open_log
from tests.acceptance.lives import Life, Zygote, zygote
from tests.agentplat.processes import END_S
from tests.agentplat.world import manifest, ref, wait_until

LIVES, PUBLISHERS = 20, 3


@dataclass
class Publisher:
    """Publishes versions of one agent without end; one not acknowledged is sent again, wherever the platform answers then."""

    agent: str
    token: str
    address: str = ""
    events: list[str] = field(default_factory=list)
    states: set[str] = field(default_factory=set)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Publish until told to stop; `events` has one for each version acknowledged."""
        with httpx.Client(headers={"Authorization": f"Bearer {self.token}"}, timeout=END_S) as client:
            while not self.stopping.is_set():
                try:
                    self._publish_next(client)
                except httpx.HTTPError:
                    self.stopping.wait(0.02)

    def _publish_next(self, client: httpx.Client) -> None:
        number = len(self.events) + 1
        event = f"{self.agent}.{number}"
        body = {"manifest": manifest(self.agent, [event], [f"{self.agent}.{number - 1}"])}
        answer = client.post(f"http://{self.address}/v1/agents:publish", json=body)
        assert answer.status_code == 200, answer.text
        [version] = answer.json()["versions"]
        assert (version["agent"], version["version"]) == (self.agent, number)
        self.states.add(version["state"])
        self.events.append(event)


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Where two processes keep what outlives them, and how they are started. store: the platform's database, read past it."""

    folder: Path
    store: SqlStore
    mother: Zygote

    def graph(self, port: str = "0") -> Life:
        """A life of the graph service."""
        tokens = ("--jwt-keys", self.folder / "pub.pem", "--jwt-issuer", "agentplat")
        return self.mother.start(
            "graphsvc", "serve", "--listen", f"127.0.0.1:{port}", "--store-url", f"sqlite:///{self.folder / 'graph.db'}", *tokens
        )

    def platform(self, graph: str) -> Life:
        """A life of the platform. Its patience is short, so that what a killed life held is soon free again."""
        files = ("--database-url", f"sqlite:///{self.folder / 'platform.db'}", "--signing-key", self.folder / "key.pem")
        patience = ("--verify-timeout-s", "1", "--call-timeout-s", "1", "--retry-longest-s", "0.5", "--poll-interval-s", "0.05")
        unlimited = ("--requests-per-minute", "1000000", "--requests-burst", "100000")
        target = ("--listen", "127.0.0.1:0", "--graph-target", graph)
        return self.mother.start("agentplat", "serve", *target, *files, *patience, *unlimited)

    def token(self) -> str:
        """The token of somebody who may publish."""
        people = ManagePeople(store=self.store)
        people.add(OPERATOR, ref("acme:ana"))
        people.grant(OPERATOR, ref("acme:ana"), Grant(Role.AUTHOR, "acme"))
        return ManageTokens(store=self.store).make(OPERATOR, ref("acme:ana"), "test", None)[0]

    def settled(self) -> bool:
        """Whether nothing waits or was set aside in the outbox."""
        with self.store.reading() as work:
            return work.outbox.sizes() == (0, 0)

    def reports(self, agent: str) -> list[ReportState]:
        """The state of each version's report."""
        with self.store.reading() as work:
            [found] = [known for known in work.registry.page(["*"], None, 1_000) if known.ref.text == agent]
            return [work.registry.report(found, number).state for number in range(1, work.registry.last_number(found) + 1)]

    def log(self) -> list[LogEntry]:
        """What the graph has."""
        with closing(open_log(f"sqlite:///{self.folder / 'graph.db'}")) as log:
            return list(log.read(0))


@contextmanager
def installation(folder: Path) -> Iterator[Installation]:
    """One that nothing runs on yet."""
    url = f"sqlite:///{folder / 'platform.db'}"
    migrate(url)
    make_key(folder / "key.pem")
    write_public(read_key(folder / "key.pem"), folder / "pub.pem", folder / "jwks.json")
    with zygote(folder) as mother, closing(open_store(url)) as store:
        yield Installation(folder=folder, store=store, mother=mother)


@contextmanager
def publishing(token: str) -> Iterator[list[Publisher]]:
    """Publishers at work, told to stop at the end."""
    publishers = [Publisher(f"acme/platform:agent{i}", token) for i in range(PUBLISHERS)]
    with ThreadPoolExecutor(PUBLISHERS) as pool:
        runs = [pool.submit(publisher.run) for publisher in publishers]
        try:
            yield publishers
        finally:
            for publisher in publishers:
                publisher.stopping.set()
            for run in runs:
                run.result(END_S)


@pytest.mark.promise("P-6", "G-26")
def test_versions_reach_the_graph_once_and_in_order_however_often_both_processes_are_killed(tmp_path: Path) -> None:
    dice = random.Random(6)
    with installation(tmp_path) as there:
        with publishing(there.token()) as publishers:
            _kill_both_again_and_again(there, publishers, dice)
        wait_until(there.settled, "nothing waited in the outbox")
        log = there.log()
        assert {entry.kind for entry in log} == {EntryKind.PUBLISH}
        for publisher in publishers:
            own = [entry for entry in log if entry.agent.text == publisher.agent]
            # The very last request may have been broken off after its version was stored.
            assert len(publisher.events) <= len(own) <= len(publisher.events) + 1
            assert [entry.number for entry in own] == list(range(1, len(own) + 1))
            assert [emit.event for entry in own for emit in entry.declaration.emits] == [
                f"{publisher.agent}.{number}" for number in range(1, len(own) + 1)
            ]
            reports = there.reports(publisher.agent)
            assert len(reports) == len(own)
            assert ReportState.NOT_ANSWERED not in reports
        assert len(log) == sum(len(there.reports(publisher.agent)) for publisher in publishers)
        assert ReportState.NOT_ANSWERED.value in set().union(*(publisher.states for publisher in publishers))
        assert ReportState.LATE in [state for publisher in publishers for state in there.reports(publisher.agent)]


def _kill_both_again_and_again(there: Installation, publishers: list[Publisher], dice: random.Random) -> None:
    """Leaves both processes alive."""

    def acknowledged() -> int:
        return sum(len(publisher.events) for publisher in publishers)

    def some_more() -> None:
        goal = acknowledged() + dice.randint(1, 8)
        wait_until(lambda: acknowledged() >= goal, "versions were acknowledged")
        Event().wait(dice.uniform(0, 0.01))  # nothing is waited for: this is the moment that chance chose

    def platform() -> Life:
        life = there.platform(graph.address)
        for publisher in publishers:
            publisher.address = life.address
        return life

    graph = there.graph()
    port = graph.address.rpartition(":")[2]
    for _ in range(LIVES):
        victim = platform()
        some_more()
        graph.kill()
        some_more()
        back_first = dice.random() < 0.5
        if back_first:
            graph = there.graph(port)
            some_more()
        victim.kill()
        if not back_first:
            graph = there.graph(port)
    platform()
    some_more()
