"""A worker process with a tool of the tests: python -m … DATABASE CONTENT FILE. The tool appends a line to the file."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from agentplat.domain.steps import ResultKind
from agentplat.domain.tools import Asked, Effect, Given, Move, ToolSpec
from agentplat.running import working
from agentplat.settings import load
from agentplat.store.port import Work
from agentplat.usecases.tool import Tool
from typing_extensions import override

from tests.agentplat.tool_records import spec


@dataclass(frozen=True, kw_only=True)
class Appending(Tool):
    """Writes its text to the end of a file."""

    file: Path

    @property
    @override
    def spec(self) -> ToolSpec:
        return spec("append", Effect.WRITE)

    @override
    def fault(self, asked: Asked) -> str | None:
        return None

    @override
    def artifact(self, asked: Asked) -> str | None:
        return None

    @override
    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        return ()

    @override
    def __call__(self, asked: Asked) -> Given:
        with self.file.open("a", encoding="utf-8") as out:
            out.write(f"{asked.arguments['text']}\n")
            out.flush()
            os.fsync(out.fileno())
        return Given(result=ResultKind.DONE, data=b"appended")


def main(url: str, content: str, file: str) -> None:
    """Work until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = load({"database_url": url, "content": content, "poll_interval_s": "0.02"}, None)
    with working(settings, [Appending(file=Path(file))]):
        print("ready", flush=True)
        stop.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
