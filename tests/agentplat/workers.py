"""Workers as processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentplat.store.sql import SqlStore

from tests.agentplat.processes import END_S, environment


@contextmanager
def worker(store: SqlStore, folder: Path, content: str | None = None, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that has told that it is ready, and ends in order. content: its content store, else the folder's."""
    url = store._engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "agentplat", "worker", "--database-url", url, "--poll-interval-s", "0.02"]
    with (
        (folder / "worker.log").open("a", encoding="utf-8") as log,
        subprocess.Popen(
            [*command, "--content", content or str(folder / "content")],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "agentplat takes runs\n"
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(END_S) == 0
        finally:
            if process.poll() is None:
                process.kill()
