"""The thread that carries waiting publications to the graph service in the background (P-6).

Several processes may run one on the same database: each leases its entries there.
"""

from __future__ import annotations

import secrets

import structlog
from typing_extensions import override

from agentplat.background import Background
from agentplat.domain.errors import StoreUnavailable
from agentplat.domain.outbox import Backoff
from agentplat.usecases.deliver_outbox import DeliverOutbox, Outcome

log = structlog.get_logger()


class Courier(Background):
    """poll_s: seconds between two looks at an outbox with nothing due.

    While the graph service is down, attempts come at the waits of the backoff, not once for every agent that waits.
    """

    def __init__(self, deliver: DeliverOutbox, backoff: Backoff, poll_s: float) -> None:
        super().__init__("courier")
        self._deliver, self._backoff, self._poll_s = deliver, backoff, poll_s
        self._owner = secrets.token_hex(16)
        self._failures = 0

    @override
    def _turn(self) -> float:
        """Try one entry."""
        try:
            outcome = self._deliver.next_due(self._owner)
            if outcome is Outcome.DELIVERED and self._failures:
                self._deliver.hasten()
        except StoreUnavailable:
            log.warning("the outbox cannot be read: the database does not answer")
            outcome = Outcome.DOWN
        except Exception:
            # A fault of ours with one entry must not end deliveries for all; its lease keeps it away for a while.
            log.exception("a delivery failed by a fault of ours")
            outcome = None
        if outcome is None:
            return self._poll_s
        if outcome is Outcome.DOWN:
            self._failures += 1
            return self._backoff.wait_s(self._failures, self._deliver.chance())
        if outcome is Outcome.DELIVERED:
            self._failures = 0
        return 0.0
