"""The dispatcher: publishes the events of finished runs, one run after the other, for as long as it lives (R-13).

Any number may run on one database, in any number of processes: each run is held by one of them while it is handled. One that is
killed leaves its run as it was, and the next one takes it.
"""

from __future__ import annotations

import structlog
from typing_extensions import override

from agentplat.background import Background
from agentplat.domain.errors import StoreUnavailable
from agentplat.usecases.dispatch_events import DispatchEvents

log = structlog.get_logger()


class Dispatcher(Background):
    """poll_s: seconds between two looks when nothing is due."""

    def __init__(self, dispatch: DispatchEvents, poll_s: float) -> None:
        super().__init__("dispatcher")
        self._dispatch, self._poll_s = dispatch, poll_s

    @override
    def _turn(self) -> float:
        try:
            if self._dispatch.waiting():
                self._drain()
        except StoreUnavailable:
            log.warning("no finished runs can be dispatched: the database does not answer")
        except Exception:
            # A fault of ours that is no fault of one run must not end the work on all.
            log.exception("dispatching failed by a fault of ours")
        return self._poll_s

    def _drain(self) -> None:
        """Handle runs until none is due or the end is asked for."""
        while not self._stopping.is_set() and self._dispatch() is not None:
            pass
