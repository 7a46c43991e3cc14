"""`graphsvc` as a process of its own."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PATIENCE_S = 600.0
"""A first start compiles the kernels, on a machine that may be busy."""


def environment(**variables: str) -> dict[str, str]:
    """The variables of a child: none of the service's own but these, and this checkout first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHSVC_")}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


def graphsvc(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "graphsvc", *arguments],
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )


@dataclass(frozen=True)
class Server:
    """A server that has told that it is ready. log: the file with its standard error."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    log: Path

    @property
    def address(self) -> str:
        """Where it answers."""
        address: str = self.ready["address"]
        return address

    def stop(self) -> int:
        """Tell it to stop, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def logged(self) -> list[dict[str, Any]]:
        """The lines of its log; the gRPC library's own lines have another form and are left out."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def _line(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(PATIENCE_S), "the server did not get ready in time"
    line = process.stdout.readline()
    assert line, f"the server ended: {log.read_text(encoding='utf-8')}"
    return line


@contextmanager
def started(*flags: str, cwd: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A server on a free port of loopback that need not be ready yet, and its log; killed where it has not ended by itself."""
    log = cwd / "log.jsonl"
    command = [sys.executable, "-m", "graphsvc", "serve", "--format", "json", "--listen", "127.0.0.1:0", *flags]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment(**variables), stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
        )
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def serve(*flags: str, cwd: Path, **variables: str) -> Iterator[Server]:
    """A server that is ready."""
    with started(*flags, cwd=cwd, **variables) as (process, log):
        yield Server(process, json.loads(_line(process, log)), log)
