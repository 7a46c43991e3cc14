"""An import of many portions is killed, on either side: typed again it goes on, with nothing twice and no portion half stored."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from graphsvc.declarations.files import write_file
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.model import EntryKind, LogEntry
from graphsvc.store.opening import open_store
from tests.graphsvc.rpc.processes import PATIENCE_S, environment, graphsvc, serve
from tests.graphsvc.rpc.serving import wait_until

AGENTS, AT_ONCE = 20_000, 250


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.parquet"
    write_file(str(path), generate(Shape.TENANT, AGENTS, 3).versions())
    return path


def _command(catalogue: Path, *target: str) -> list[str]:
    return ["import", str(catalogue), *target, "--at-once", str(AT_ONCE), "--format", "json"]


def _started(catalogue: Path, *target: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "graphsvc", *_command(catalogue, *target)]
    return subprocess.Popen(
        command, cwd=catalogue.parent, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )


def _log(url: str) -> list[LogEntry]:
    with closing(open_store(url)) as store:
        return list(store.read(0))


def _wait_for_portions(url: str, portions: int, process: subprocess.Popen[str]) -> None:
    with closing(open_store(url)) as store:
        wait_until(lambda: store.head() >= portions * AT_ONCE or process.poll() is not None, "portions were stored")


def _assert_whole(log: list[LogEntry], count: int) -> None:
    """The first so many agents of the catalogue, once each and in its order, without a gap."""
    made = [(version.agent, 1, version.declaration) for version in generate(Shape.TENANT, AGENTS, 3).versions()]
    assert [entry.revision for entry in log] == list(range(1, count + 1))
    assert {entry.kind for entry in log} == {EntryKind.PUBLISH}
    assert [(entry.agent, entry.number, entry.declaration) for entry in log] == made[:count]


def _go_on(catalogue: Path, stored: int, *target: str) -> None:
    again = graphsvc(*_command(catalogue, *target), cwd=catalogue.parent)
    assert (again.returncode, again.stderr) == (0, "")
    assert json.loads(again.stdout) == {"revision": AGENTS, "created": AGENTS - stored, "unchanged": stored}


@pytest.mark.promise("G-26")
def test_an_import_into_a_store_that_is_killed_goes_on_when_it_is_typed_again(catalogue: Path) -> None:
    url = f"sqlite:///{catalogue.parent / 'graph.db'}"
    stored = 0
    open_store(url).close()
    for portions in (3, 9):
        with _started(catalogue, "--store", url) as command:
            _wait_for_portions(url, portions, command)
            command.kill()
            assert command.wait(PATIENCE_S) < 0, "it was killed before its end"
        log = _log(url)
        assert stored < len(log) < AGENTS
        assert len(log) % AT_ONCE == 0
        stored = len(log)
        _assert_whole(log, stored)
    _go_on(catalogue, stored, "--store", url)
    _assert_whole(_log(url), AGENTS)


@pytest.mark.promise("G-26")
def test_an_import_into_a_server_that_is_killed_says_how_far_it_came_and_goes_on(catalogue: Path) -> None:
    url = f"sqlite:///{catalogue.parent / 'graph.db'}"
    with serve("--store-url", url, cwd=catalogue.parent) as server, _started(catalogue, "--server", server.address) as command:
        _wait_for_portions(url, 5, command)
        server.process.kill()
        out, told = command.communicate(timeout=PATIENCE_S)
        assert (command.returncode, out) == (4, "")
    log = _log(url)
    acknowledged = int(told.split()[0])
    assert told.startswith(f"{acknowledged} of {AGENTS} agents are stored; type the command again to go on\nerror: ")
    assert len(log) in (acknowledged, acknowledged + AT_ONCE), "only the last portion may be stored without its answer"
    _assert_whole(log, len(log))
    with serve("--store-url", url, cwd=catalogue.parent) as server:
        _go_on(catalogue, len(log), "--server", server.address)
    _assert_whole(_log(url), AGENTS)


@pytest.mark.promise("G-26")
def test_what_a_server_had_of_a_client_that_is_killed_amid_a_portion_is_not_stored(catalogue: Path) -> None:
    url = f"sqlite:///{catalogue.parent / 'graph.db'}"
    with serve("--store-url", url, cwd=catalogue.parent) as server:
        with _started(catalogue, "--server", server.address) as command:
            _wait_for_portions(url, 4, command)
            command.kill()
            assert command.wait(PATIENCE_S) < 0, "it was killed before its end"
        again = graphsvc(*_command(catalogue, "--server", server.address), cwd=catalogue.parent)
        assert again.returncode == 0
        done = json.loads(again.stdout)
        assert done["created"] + done["unchanged"] == AGENTS == done["revision"]
        assert done["created"] % AT_ONCE == 0
    _assert_whole(_log(url), AGENTS)
