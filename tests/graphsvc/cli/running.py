"""The command line, run to its end within this process: quick enough for many cases, and the same code as the real one."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

from graphsvc.__main__ import main


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    status: int
    stdout: str
    stderr: str


def run(*arguments: str, stdin: bytes = b"") -> Ended:
    """Run `graphsvc` with these arguments. An error that would be a traceback on a terminal comes out as itself."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with mock.patch.multiple(sys, argv=["graphsvc", *arguments], stdin=given, stdout=out, stderr=err):
        try:
            main()
            status: int | str | None = 0
        except SystemExit as end:
            status = end.code
    assert isinstance(status, int)
    return Ended(status, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


def lines(records: Sequence[str]) -> bytes:
    """Records as a file of JSON lines."""
    return "".join(f"{record}\n" for record in records).encode("utf-8")
