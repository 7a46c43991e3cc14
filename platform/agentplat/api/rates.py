"""How many requests a caller may send (O-7)."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from agentplat.domain.errors import Overloaded

_MOST_CALLERS = 10_000
"""Callers remembered; the one that was heard longest ago is forgotten, and begins anew with a full allowance."""


class RateLimit:
    """A bucket for each caller that fills evenly. per_minute: requests a minute on average. burst: requests at once, at least 1."""

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_minute / 60, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count a request. Raises Overloaded with the seconds until the next one may come."""
        with self._lock:
            now = self._clock()
            level, since = self._buckets.pop(caller, (float(self._burst), now))
            level = min(self._burst, level + (now - since) * self._per_second)
            allowed = level >= 1
            self._buckets[caller] = (level - 1 if allowed else level, now)
            if len(self._buckets) > _MOST_CALLERS:
                self._buckets.popitem(last=False)
        if not allowed:
            raise Overloaded(math.ceil((1 - level) / self._per_second))
