"""A start from a snapshot is a start from the log, only quicker; a snapshot that can not be trusted costs nothing but time."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING, reader_of
from graphsvc.kernels import reference
from graphsvc.service import GraphService
from graphsvc.store.opening import open_store
from graphsvc.store.snapshot import FileSnapshot, SnapshotDamaged
from tests.graphsvc.rpc.processes import serve

POLICY = LimitPolicy(default=Limits(), ceiling=Limits())
READER = reader_of([parse_agent("acme:x").scope])


def published(rng: random.Random, number: int) -> AgentVersion:
    events = [f"event {letter}" for letter in "abcdefgh"]
    emits = [{"event": event, "artifacts": ["plan"]} if rng.random() < 0.5 else event for event in rng.sample(events, 2)]
    agent = parse_agent(f"{rng.choice(['*', 'acme', 'acme/platform', 'globex'])}:{rng.choice('pqrstuvé')}")
    return AgentVersion(agent, number, declare(emits, rng.sample(events, 2)))


def opened(folder: Path, *, snapshot: bool = True) -> GraphService:
    state = FileSnapshot(folder / "graph.snapshot").load() if snapshot else None
    return GraphService(open_store(f"sqlite:///{folder}/graph.db"), POLICY, reference.search, snapshot=state)


def told(service: GraphService) -> list[object]:
    """All that can be asked of it."""
    versions = list(service.export(EVERYTHING)[1])
    reports = [service.check(v.agent, v.declaration, reader).as_json() for v in versions for reader in (EVERYTHING, READER)]
    return [service.status(EVERYTHING), versions, reports]


def filled(folder: Path, seed: int, first: int = 1, count: int = 40) -> None:
    rng = random.Random(seed)
    with closing(opened(folder)) as service:
        for number in range(first, first + count):
            version = published(rng, number)
            service.publish(version, EVERYTHING)
            if rng.random() < 0.2:
                service.retire(version.agent)
        service.state(FileSnapshot(folder / "graph.snapshot").save)


@pytest.mark.promise("G-28")
@pytest.mark.parametrize("seed", range(4))
def test_a_start_from_a_snapshot_and_the_tail_answers_as_one_from_the_whole_log(seed: int, tmp_path: Path) -> None:
    filled(tmp_path, seed)
    for first in (41, 81):
        with closing(opened(tmp_path)) as service:
            assert service.loaded_from == service.revision
            rng = random.Random(seed + first)
            for number in range(first, first + 3):
                service.publish(published(rng, number), EVERYTHING)
        with closing(opened(tmp_path)) as quick, closing(opened(tmp_path, snapshot=False)) as slow:
            assert 0 < quick.loaded_from < quick.revision == slow.revision
            assert slow.loaded_from == 0
            assert told(quick) == told(slow)
        filled(tmp_path, seed, first + 3, 37)


def flipped(content: bytes) -> bytes:
    at = len(content) * 2 // 3
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


SPOILT: list[Callable[[bytes], bytes]] = [
    flipped,
    lambda content: content[:-1],
    lambda content: content[:20],
    lambda _: b"",
    lambda content: b"X" + content[1:],
    lambda content: content + b"x",
]


@pytest.mark.promise("G-28")
@pytest.mark.parametrize("spoil", SPOILT)
def test_a_damaged_snapshot_is_noticed(spoil: Callable[[bytes], bytes], tmp_path: Path) -> None:
    filled(tmp_path, 1)
    file = tmp_path / "graph.snapshot"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(SnapshotDamaged):
        FileSnapshot(file).load()


@pytest.mark.promise("G-28")
def test_a_snapshot_of_another_log_is_left_aside(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        filled(tmp_path / name, seed)
    Path(tmp_path / "one/graph.snapshot").replace(tmp_path / "other/graph.snapshot")
    with closing(opened(tmp_path / "other")) as service, closing(opened(tmp_path / "other", snapshot=False)) as plain:
        assert service.loaded_from == 0
        assert told(service) == told(plain)


@pytest.mark.promise("G-28")
def test_a_server_leaves_a_snapshot_and_starts_from_it_or_says_that_it_is_damaged(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    file = tmp_path / "kept"
    arguments = ("--store-url", f"sqlite:///{tmp_path}/graph.db", "--snapshot", str(file))
    with serve(*arguments, cwd=tmp_path) as server:
        assert server.stop() == 0
    kept = file.read_bytes()
    assert FileSnapshot(file).load() is not None
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(flipped(kept))
    with serve(*arguments, cwd=tmp_path) as server:
        assert server.ready["revision"] >= 40
        assert server.stop() == 0
        assert any(line["event"] == "snapshot left aside" for line in server.logged())
    assert FileSnapshot(file).load() is not None
    assert list(tmp_path.glob("*.partial")) == []
