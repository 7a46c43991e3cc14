"""Keeps a child process running beside the platform: starts it, starts it again when it ends, ends it in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from agentplat.domain.errors import ChildFailed

MOST_RESTARTS = 5
RESTART_WINDOW_S = 60.0
"""More than MOST_RESTARTS ends within this time mean that starting again will not help."""

log = structlog.get_logger()


class Supervisor:
    """A child process that tells on its first line of output, as JSON, that it is ready.

    name: what it is, in messages. command: takes the fields of the first ready line, None before there was one, and gives the
    program with its arguments; so a port that the system chose at first is kept afterwards.
    """

    def __init__(self, name: str, command: Callable[[dict[str, Any] | None], Sequence[str]]) -> None:
        self.name, self._command = name, command
        self._ready: dict[str, Any] | None = None
        self._told = threading.Event()
        self._stopping = threading.Event()
        self._failed = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        # The child is tied to the thread that starts it, so one thread does all of that and lives as long as the child.
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self, seconds: float) -> dict[str, Any]:
        """Start the child and give the fields of its ready line. Raises ChildFailed when there is none within so many seconds."""
        self.begin()
        return self.wait(seconds)

    def begin(self) -> None:
        """Start the child without waiting for it."""
        self._thread.start()

    def wait(self, seconds: float) -> dict[str, Any]:
        """The fields of the ready line of a child that was started. Raises ChildFailed as `start` does."""
        if not self._told.wait(seconds) or self._ready is None:
            self.stop(1.0)
            raise ChildFailed(f"{self.name} did not start; its own messages above say why")
        return self._ready

    @property
    def failed(self) -> bool:
        """Whether the child ended so often that it was given up."""
        return self._failed.is_set()

    def stop(self, seconds: float) -> bool:
        """Ask the child to end, kill it when it has not within so many seconds, and tell whether it ended by itself."""
        self._stopping.set()
        with self._lock:
            child = self._child
        if child is not None and child.poll() is None:
            child.terminate()
        self._thread.join(seconds)
        if child is None or not self._thread.is_alive():
            return True
        child.kill()
        self._thread.join()
        return False

    def _run(self) -> None:
        ends: deque[float] = deque(maxlen=MOST_RESTARTS)
        while not self._stopping.is_set():
            code = self._once()
            if self._stopping.is_set():
                break
            log.error("a child ended", child=self.name, exit_status=code)
            now = time.monotonic()
            gave_up = self._ready is None or (len(ends) == MOST_RESTARTS and now - ends[0] < RESTART_WINDOW_S)
            if gave_up:
                self._failed.set()
                break
            ends.append(now)
        self._told.set()

    def _once(self) -> int:
        """Run the child to its end."""
        program = [sys.executable, "-m", "agentplat.tethered", str(os.getpid()), *self._command(self._ready)]
        with self._lock:
            if self._stopping.is_set():
                return 0
            self._child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        with self._child as child:
            for line in child.stdout or ():
                self._hear(line)
            return child.wait()

    def _hear(self, line: str) -> None:
        if self._ready is None:
            try:
                self._ready = dict(json.loads(line))
            except (ValueError, TypeError):
                log.warning("a child said something else than that it is ready", child=self.name)
                return
        log.info("a child is ready", child=self.name, address=self._ready.get("address"))
        self._told.set()
