"""The commands as real processes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from unittest.mock import patch

import pytest
from agentplat.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
START_S = 300.0
"""How long a start may take: the graph service compiles its kernels the first time, on a machine that does other things too."""
END_S = 120.0


def environment(**more: str) -> dict[str, str]:
    """The variables of a command: the checkout's code, and no setting of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(("AGENTPLAT_", "GRAPHSVC_"))}
    return {**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}", **more}


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def answers(self) -> list[Any]:
        """What it printed, a JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def process(*arguments: object, cwd: Path, **variables: str) -> Done:
    """Run a command to its end as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "agentplat", *map(str, arguments)],
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        encoding="utf-8",
        timeout=END_S,
        check=False,
    )
    return Done(status=done.returncode, out=done.stdout, err=done.stderr)


def command(*arguments: object, cwd: Path, **variables: str) -> Done:
    """Run a command that serves nothing to its end, in this process: a start takes a second, and longer on a busy machine."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment(**variables), clear=True),
        patch.object(sys, "argv", ["agentplat", *map(str, arguments)]),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ending,
    ):
        main()
    return Done(status=int(ending.value.code or 0), out=out.getvalue(), err=err.getvalue())


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server. ready: the fields of its ready line. errors: the file that its log goes to."""

    process: subprocess.Popen[str]
    ready: Mapping[str, Any]
    errors: Path

    @property
    def url(self) -> str:
        """Where it answers HTTP."""
        return f"http://{self.ready['address']}"

    def log(self) -> list[dict[str, Any]]:
        """The lines of its log so far, its child's among them."""
        lines = self.errors.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def stop(self) -> int:
        """Ask it to end, and give its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S)


@contextmanager
def server(module: str, *arguments: object, errors: Path, **variables: str) -> Iterator[Server]:
    """A server that has told that it is ready; killed at the end if it still runs."""
    with (
        errors.open("a", encoding="utf-8") as log,
        subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments), "--format", "json"],
            cwd=errors.parent,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
        ) as process,
    ):
        try:
            yield Server(process=process, ready=json.loads(_first_line(process, errors)), errors=errors)
        finally:
            if process.poll() is None:
                process.kill()


def _first_line(process: subprocess.Popen[str], errors: Path) -> str:
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    stdout = process.stdout
    threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    try:
        line = lines.get(timeout=START_S)
    except Empty:
        line = ""
    assert line, f"the server did not start:\n{errors.read_text(encoding='utf-8')}"
    return line


@contextmanager
def up(folder: Path, *arguments: object, **variables: str) -> Iterator[Server]:
    """`agentplat up` on a data folder below this one and on free ports."""
    folder.mkdir(exist_ok=True)
    free: Sequence[object] = ("--listen", "127.0.0.1:0", "--graph-target", "127.0.0.1:0")
    with server(
        "agentplat", "up", "--data-dir", folder / "data", *free, *arguments, errors=folder / "up.log", **variables
    ) as running:
        yield running
