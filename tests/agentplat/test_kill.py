"""Both processes are killed while versions are published: none is lost or half there, each reaches the graph once and in order."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from agentplat.domain.access import OPERATOR, Grant, Role
from agentplat.domain.registry import ReportState
from agentplat.signing import make_key, read_key, write_public
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.manage_people import ManagePeople
from agentplat.usecases.manage_tokens import ManageTokens

from graphsvc.domain.model import EntryKind
from graphsvc.store.opening import open_store as open_log
from tests.agentplat.processes import END_S, Server, server
from tests.agentplat.world import manifest, ref, wait_until

ROUNDS = 4
AGENTS = [f"acme/platform:agent{i}" for i in range(3)]


@dataclass
class Publisher:
    """Publishes without end, to whatever address there is just now, and remembers what was acknowledged."""

    token: str
    address: str = ""
    acknowledged: list[tuple[str, int]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        for count in itertools.count():
            if self.stopping.is_set():
                return
            body = {"manifest": manifest(AGENTS[count % 3], [f"event{count}"], [f"event{count - 1}"])}
            try:
                answer = httpx.post(f"http://{self.address}/v1/agents:publish", json=body, headers=headers, timeout=END_S)
            except httpx.HTTPError:
                self.stopping.wait(0.02)
                continue
            assert answer.status_code == 200, answer.text
            [version] = answer.json()["versions"]
            self.acknowledged.append((version["agent"], version["version"]))


@contextmanager
def _publishing(token: str) -> Iterator[Publisher]:
    publisher = Publisher(token)
    thread = threading.Thread(target=publisher.run)
    thread.start()
    try:
        yield publisher
    finally:
        publisher.stopping.set()
        thread.join(END_S)
        assert not thread.is_alive()


def _token(store: SqlStore) -> str:
    people = ManagePeople(store=store)
    people.add(OPERATOR, ref("acme:ana"))
    people.grant(OPERATOR, ref("acme:ana"), Grant(Role.AUTHOR, "acme"))
    return ManageTokens(store=store).make(OPERATOR, ref("acme:ana"), "test", None)[0]


@contextmanager
def _graph(folder: Path, port: str) -> Iterator[Server]:
    flags = ["--listen", f"127.0.0.1:{port}", "--store-url", f"sqlite:///{folder / 'graphsvc.db'}"]
    tokens = ["--jwt-keys", folder / "pub.pem", "--jwt-issuer", "agentplat"]
    with server("graphsvc", "serve", *flags, *tokens, errors=folder / "graph.log") as running:
        yield running


@contextmanager
def _platform(folder: Path, url: str, graph: str) -> Iterator[Server]:
    flags = ["--listen", "127.0.0.1:0", "--database-url", url, "--signing-key", folder / "key.pem", "--graph-target", graph]
    quick = ["--verify-timeout-s", "2", "--retry-longest-s", "0.5", "--requests-per-minute", "1000000"]
    with server("agentplat", "serve", *flags, *quick, errors=folder / "platform.log") as running:
        yield running


def _numbers(store: SqlStore) -> dict[str, list[int]]:
    with store.reading() as work:
        return {
            agent.ref.text: [version.number for version in reversed(work.registry.versions(agent, None, 10_000))]
            for agent in work.registry.page(["*"], None, 1_000)
        }


def _states(store: SqlStore) -> set[ReportState]:
    with store.reading() as work:
        agents = work.registry.page(["*"], None, 1_000)
        return {work.registry.report(a, number).state for a in agents for number in range(1, work.registry.last_number(a) + 1)}


def _told(folder: Path) -> dict[str, list[int]]:
    told: dict[str, list[int]] = {}
    with closing(open_log(f"sqlite:///{folder / 'graphsvc.db'}")) as log:
        for entry in log.read(0):
            assert entry.kind is EntryKind.PUBLISH
            told.setdefault(entry.agent.text, []).append(entry.number)
    return told


@pytest.mark.promise("P-6", "P-3")
def test_no_version_is_lost_or_half_there_or_told_twice_when_both_processes_are_killed(tmp_path: Path) -> None:
    dice = random.Random(6)
    url = f"sqlite:///{tmp_path / 'agentplat.db'}"
    migrate(url)
    make_key(tmp_path / "key.pem")
    write_public(read_key(tmp_path / "key.pem"), tmp_path / "pub.pem", tmp_path / "jwks.json")
    with closing(open_store(url)) as store:
        port = "0"
        with _publishing(_token(store)) as publisher:
            for _ in range(ROUNDS):
                with _graph(tmp_path, port) as graph, _platform(tmp_path, url, graph.ready["address"]) as platform:
                    port = graph.ready["address"].rpartition(":")[2]
                    publisher.address = platform.ready["address"]
                    first, second = dice.sample([graph, platform], 2)
                    for victim, more in ((first, dice.randint(2, 6)), (second, dice.randint(1, 4))):
                        goal = len(publisher.acknowledged) + more
                        wait_until(lambda goal=goal: len(publisher.acknowledged) >= goal, "versions were published")
                        victim.process.kill()
                        victim.process.wait(END_S)
                        if victim is platform:
                            break
        stored = _numbers(store)
        for agent, number in publisher.acknowledged:
            assert number in stored[agent]
        assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in stored.values())
        with _graph(tmp_path, port) as graph, _platform(tmp_path, url, graph.ready["address"]):
            wait_until(lambda: ReportState.NOT_ANSWERED not in _states(store), "every report was filled in")
            assert _told(tmp_path) == stored
