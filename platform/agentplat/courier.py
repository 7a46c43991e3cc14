"""The thread that carries waiting publications to the graph service in the background (P-6).

Several processes may run one on the same database: each leases its entries there.
"""

from __future__ import annotations

import secrets
import threading

import structlog

from agentplat.domain.errors import StoreUnavailable
from agentplat.domain.outbox import Backoff
from agentplat.usecases.deliver_outbox import DeliverOutbox, Outcome

log = structlog.get_logger()


class Courier:
    """poll_s: seconds between two looks at an outbox with nothing due.

    While the graph service is down, attempts come at the waits of the backoff, not once for every agent that waits.
    """

    def __init__(self, deliver: DeliverOutbox, backoff: Backoff, poll_s: float) -> None:
        self._deliver, self._backoff, self._poll_s = deliver, backoff, poll_s
        self._owner = secrets.token_hex(16)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End after the delivery under way, and whether it ended within so many seconds."""
        self._stopping.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            failures = self._step(failures)

    def _step(self, failures: int) -> int:
        """Try one entry and wait if need be. Takes and gives the number of times in a row that nobody answered."""
        try:
            outcome = self._deliver.next_due(self._owner)
            if outcome is Outcome.DELIVERED and failures:
                self._deliver.hasten()
        except StoreUnavailable:
            log.warning("the outbox cannot be read: the database does not answer")
            outcome = Outcome.DOWN
        except Exception:
            # A fault of ours with one entry must not end deliveries for all; its lease keeps it away for a while.
            log.exception("a delivery failed by a fault of ours")
            outcome = None
        if outcome is None:
            self._stopping.wait(self._poll_s)
        elif outcome is Outcome.DOWN:
            self._stopping.wait(self._backoff.wait_s(failures + 1, self._deliver.chance()))
            return failures + 1
        return 0 if outcome is Outcome.DELIVERED else failures
