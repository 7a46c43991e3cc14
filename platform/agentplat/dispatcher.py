"""The dispatcher: publishes the events of finished runs, one run after the other, for as long as it lives (R-13).

Any number may run on one database, in any number of processes: each run is held by one of them while it is handled. One that is
killed leaves its run as it was, and the next one takes it.
"""

from __future__ import annotations

import threading

import structlog

from agentplat.domain.errors import StoreUnavailable
from agentplat.usecases.dispatch_events import DispatchEvents

log = structlog.get_logger()


class Dispatcher:
    """poll_s: seconds between two looks when nothing is due."""

    def __init__(self, dispatch: DispatchEvents, poll_s: float) -> None:
        self._dispatch, self._poll_s = dispatch, poll_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)

    def start(self) -> None:
        """Begin to dispatch."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End after the run under way, and whether it ended within so many seconds."""
        self._stopping.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._dispatch.waiting():
                    self._drain()
            except StoreUnavailable:
                log.warning("no finished runs can be dispatched: the database does not answer")
            except Exception:
                # A fault of ours that is no fault of one run must not end the work on all.
                log.exception("dispatching failed by a fault of ours")
            self._stopping.wait(self._poll_s)

    def _drain(self) -> None:
        """Handle runs until none is due or the end is asked for."""
        while not self._stopping.is_set() and self._dispatch() is not None:
            pass
