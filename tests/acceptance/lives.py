"""Servers with many short lives, each a process of its own that ends by SIGKILL."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.zygote import MOST_BYTES
from tests.agentplat.processes import START_S, environment


@dataclass(frozen=True, kw_only=True)
class Life:
    """A server that has told that it is ready. ready: the fields of its ready line."""

    ready: dict[str, Any]
    pid: int
    zygote: Zygote

    @property
    def address(self) -> str:
        """Where it answers."""
        address: str = self.ready["address"]
        return address

    def kill(self) -> None:
        """End it at once; it must have lived until now."""
        assert self._ended_by(signal.SIGKILL) == -signal.SIGKILL

    def stop(self) -> None:
        """Ask it to end, which it must do in order."""
        assert self._ended_by(signal.SIGTERM) == 0

    def _ended_by(self, number: signal.Signals) -> int:
        os.kill(self.pid, number)
        return self.zygote.wait(self.pid)


class Zygote:
    """The process that the servers are forked from. log: the file for what they say on standard error."""

    def __init__(self, requests: socket.socket, log: Path) -> None:
        self._requests, self._log = requests, log

    def start(self, module: str, *arguments: object) -> Life:
        """Start a server and wait until it is ready."""
        output, inlet = os.pipe()
        with os.fdopen(output, encoding="utf-8") as lines, self._log.open("a", encoding="utf-8") as errors:
            try:
                request = {"start": module, "arguments": [*map(str, arguments), "--format", "json"]}
                socket.send_fds(self._requests, [json.dumps(request).encode()], [inlet, errors.fileno()])
            finally:
                os.close(inlet)
            pid = int(self.answer())
            with selectors.DefaultSelector() as selector:
                selector.register(lines, selectors.EVENT_READ)
                assert selector.select(START_S), "the server did not get ready in time"
            line = lines.readline()
        assert line, f"the server ended:\n{self._log.read_text(encoding='utf-8')}"
        return Life(ready=json.loads(line), pid=pid, zygote=self)

    def wait(self, pid: int) -> int:
        """The exit status of a server that is ending."""
        self._requests.send(json.dumps({"wait": pid}).encode())
        return int(self.answer())

    def answer(self) -> str:
        """What the process answers to the request before."""
        told = self._requests.recv(MOST_BYTES).decode()
        assert told, f"the zygote ended:\n{self._log.read_text(encoding='utf-8')}"
        return told


@contextmanager
def zygote(folder: Path) -> Iterator[Zygote]:
    """A zygote; its servers that still live at the end are killed."""
    log = folder / "servers.log"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(START_S)
    command = [sys.executable, "-m", "tests.acceptance.zygote", str(theirs.fileno())]
    with (
        log.open("a", encoding="utf-8") as errors,
        subprocess.Popen(command, cwd=folder, env=environment(), stderr=errors, pass_fds=[theirs.fileno()]) as process,
        ours,
    ):
        theirs.close()
        found = Zygote(ours, log)
        ready = False
        try:
            assert found.answer() == "ready"
            ready = True
            yield found
        finally:
            ours.close()
            if not ready:
                process.kill()  # it has no children yet, and would notice the end of the socket only when everything is loaded
            process.wait(START_S)
