"""Forks servers from one process that has imported them, because a start from nothing takes seconds.

``python -m tests.acceptance.zygote DESCRIPTOR``: each request is one packet of JSON on that socket. {"start": MODULE,
"arguments": […]} comes with the descriptors of the child's standard output and error and is answered with its process id,
{"wait": ID} with its exit status, negative for a signal. At the end of the socket, which is also the end of the tests' process,
the children that are left are killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from tempfile import TemporaryDirectory

from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.kernels import jit
from graphsvc.service import check_files
from graphsvc.store.opening import open_store

SERVERS = ("graphsvc.__main__", "agentplat.__main__", "agentplat.running")
MOST_BYTES = 65_536


def _load() -> None:
    """Import what the servers need, some of it by its first use. No thread is started, for no fork takes one along."""
    for module in SERVERS:
        import_module(module)
    version = AgentVersion(parse_agent("acme:a"), 1, declare(["x"], ["x"]))
    list(check_files([version], None, EVERYTHING, Limits(), jit.search))
    with TemporaryDirectory() as folder:
        open_store(f"sqlite:///{folder}/graph.db").close()


def _next_child(requests: socket.socket) -> str | None:
    """In each child: the module to run. In the parent: None, at the end of the requests."""
    alive: set[int] = set()
    while packet := socket.recv_fds(requests, MOST_BYTES, 2):
        text, descriptors, _, _ = packet
        if not text:
            break
        request = json.loads(text)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            alive.discard(request["wait"])
            requests.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        child = os.fork()
        if child == 0:
            requests.close()
            _become(request["start"], request["arguments"], descriptors)
            return str(request["start"])
        alive.add(child)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(str(child).encode())
    for child in alive:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return None


def _become(module: str, arguments: Sequence[str], descriptors: Sequence[int]) -> None:
    for descriptor, standard in zip(descriptors, (1, 2), strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    # The zygote's own objects remember what their descriptors were when it started: a file, say, where now there is a pipe.
    sys.stdout, sys.stderr = (os.fdopen(standard, "w", encoding="utf-8", closefd=False) for standard in (1, 2))
    sys.argv = [module, *arguments]


def main() -> None:
    """Serve requests; a child goes on as the server that was asked for."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    _load()
    requests.send(b"ready")
    module = _next_child(requests)
    if module is not None:
        import_module(f"{module}.__main__").main()


if __name__ == "__main__":
    main()
