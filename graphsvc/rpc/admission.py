"""How much one caller may ask of the server at once and over time (O-7). What is too much is refused at once, never queued."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from graphsvc.domain.errors import Overloaded

MAX_REMEMBERED_CALLERS = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class RateLimit:
    """A bucket of calls for each caller: it holds `burst` calls and fills at `per_s` calls a second."""

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count one call. Raises Overloaded when the caller's bucket is empty."""
        with self._lock:
            now = self._clock()
            bucket = self._buckets.setdefault(caller, _Bucket(self._burst, now))
            self._buckets.move_to_end(caller)
            # The caller that has been quiet for longest is forgotten; by then its bucket has most likely filled up again.
            if len(self._buckets) > MAX_REMEMBERED_CALLERS:
                self._buckets.popitem(last=False)
            bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._per_s)
            bucket.filled_at = now
            if bucket.tokens < 1:
                raise Overloaded(f"the caller sends too many calls; at most {self._per_s:g} a second are answered")
            bucket.tokens -= 1


class StreamSlots:
    """Places for streaming calls, which hold a thread for as long as their caller likes: `total` at once, `per_caller` for one."""

    def __init__(self, total: int, per_caller: int) -> None:
        self._total, self._per_caller = total, per_caller
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    def take(self, caller: str) -> None:
        """Take a place. Raises Overloaded when none is free; otherwise `give_back` must follow."""
        with self._lock:
            if self._held[caller] >= self._per_caller:
                raise Overloaded(f"the caller has {self._per_caller} streams open, which is the most for one caller; end one first")
            if self._held.total() >= self._total:
                raise Overloaded(f"{self._total} streams are open, which is the most at once; try again later")
            self._held[caller] += 1

    def give_back(self, caller: str) -> None:
        """Free a place."""
        with self._lock:
            self._held[caller] -= 1
            if not self._held[caller]:
                del self._held[caller]
