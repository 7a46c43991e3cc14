from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from graphsvc.declarations.files import write_file
from graphsvc.declarations.generator import Shape, generate
from tests.graphsvc.rpc.processes import PATIENCE_S, environment

AGENTS = 2_000


def _ended(*arguments: str, cwd: Path) -> tuple[str, str]:
    """What a command printed, and what it showed on the terminal that its standard error is."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "graphsvc", *arguments],
            cwd=cwd,
            env=environment(TERM="xterm", COLUMNS="100"),
            stdout=subprocess.PIPE,
            stderr=theirs,
            encoding="utf-8",
        ) as process:
            os.close(theirs)
            shown = b""
            while chunk := _read(ours):
                shown += chunk
            out, _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
    finally:
        os.close(ours)
    return out, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that the other side is closed
        return b""


def test_an_import_shows_on_a_terminal_how_many_agents_of_all_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "made.parquet"
    write_file(str(path), generate(Shape.TENANT, AGENTS, 1).versions())
    out, shown = _ended(
        "import", str(path), "--store", f"sqlite:///{tmp_path / 'graph.db'}", "--at-once", "100", "--format", "json", cwd=tmp_path
    )
    assert out == f'{{"revision": {AGENTS}, "created": {AGENTS}, "unchanged": 0}}\n'
    assert f"agents read: {AGENTS:,}" in shown
    assert f"agents stored: {AGENTS:,} of {AGENTS:,}" in shown
