"""A disk that is full: what was not kept is not named, the error is clear, and the run can still be finished."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from agentplat.domain.artifacts import FINAL_ANSWER
from agentplat.domain.runs import RunState
from agentplat.store.sql import open_store

from tests.agentplat.processes import END_S, ROOT, environment
from tests.agentplat.run_records import fault_of, opened, stored

pytestmark = pytest.mark.promise("A-7")

# A disk of one megabyte, that only this process and its children see.
SMALL_DISK = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"'
UNSHARED = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]


def _can_mount(folder: Path) -> bool:
    try:
        tried = subprocess.run([*UNSHARED, SMALL_DISK, str(folder), "true"], capture_output=True, timeout=END_S, check=False)
    except OSError:
        return False
    return tried.returncode == 0


def _finish_on_full(sqlite_url: str, content: Path, kind: str) -> str:
    with closing(open_store(sqlite_url)) as store:
        run = opened(store)
    before = [*UNSHARED, SMALL_DISK, str(content)] if kind == "disk" else []
    command = [sys.executable, "-m", "tests.agentplat.content.full_disk", sqlite_url, str(content), kind]
    done = subprocess.run(
        [*before, "sh", "-c", f'"$@" && find "{content}" -type f | wc -l', "sh", *command],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=END_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with closing(open_store(sqlite_url)) as store:
        assert stored(store, run.id).state is RunState.FINISHED
        with store.reading() as work:
            assert work.artifacts.of_run(run.id).keys() == {FINAL_ANSWER}
        assert fault_of(store, run.id) is None
    refused, files = done.stdout.splitlines()
    # The two summaries, and nothing of what did not fit.
    assert files == "2"
    return refused


def test_a_file_that_may_not_grow_is_not_kept_and_not_named(sqlite_url: str, tmp_path: Path) -> None:
    assert _finish_on_full(sqlite_url, tmp_path / "content", "limit") == "refused: File too large"


def test_a_full_disk_keeps_nothing_of_what_did_not_fit_and_names_nothing(sqlite_url: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if not _can_mount(disk):
        pytest.skip("this machine lets no process mount a small disk of its own; the limit on files is tested all the same")
    assert _finish_on_full(sqlite_url, disk, "disk") == "refused: No space left on device"
