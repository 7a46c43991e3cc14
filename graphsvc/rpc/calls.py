"""The call that is being answered: its caller, its deadline and what telemetry notes of it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import grpc

from graphsvc.domain.errors import DeadlinePassed
from graphsvc.domain.grants import Caller
from graphsvc.domain.report import Report

T = TypeVar("T")

_FOREVER_S = 1e9
"""The gRPC library tells a call without deadline by a remaining time of centuries."""

NOBODY = Caller("", ())


@dataclass(slots=True, kw_only=True)
class Call:
    """One call. arrived, deadline: in seconds of the monotonic clock; revision, visits: noted from the answer."""

    method: str
    arrived: float
    deadline: float
    caller: Caller = NOBODY
    revision: int | None = None
    visits: int | None = None

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.deadline - time.monotonic()

    def check_deadline(self) -> None:
        """Raises DeadlinePassed once the deadline has passed."""
        if self.remaining_s <= 0:
            raise DeadlinePassed("the deadline passed before the answer was ready")

    def note(self, report: Report) -> None:
        """Keep what telemetry tells of a report: its revision and visits, no name."""
        self.revision, self.visits = report.revision, report.visits


_CURRENT: ContextVar[Call] = ContextVar("call")


def begin(method: str, arrived: float, context: grpc.ServicerContext, default_deadline_s: float) -> Call:
    """Make this thread's current call. Its deadline is the client's, or the default counted from the arrival where it set none."""
    remaining_s = context.time_remaining()
    given = remaining_s is not None and remaining_s < _FOREVER_S
    deadline = time.monotonic() + remaining_s if given else arrived + default_deadline_s
    call = Call(method=method, arrived=arrived, deadline=deadline)
    _CURRENT.set(call)
    return call


def current() -> Call:
    """The call that this thread answers."""
    return _CURRENT.get()


_END = object()


def within_deadline(requests: Iterator[T], call: Call) -> Iterator[T]:
    """The requests of a stream, for as long as the deadline allows.

    Waiting for the next request can not be given a bound in the gRPC library, so another thread waits; it ends with the call.
    Raises DeadlinePassed.
    """
    inbox: queue.Queue[T | object] = queue.Queue(maxsize=1)
    over = threading.Event()

    def put(item: T | object) -> None:
        taken = False
        while not taken and not over.is_set():
            with suppress(queue.Full):
                inbox.put(item, timeout=0.1)
                taken = True

    def pump() -> None:
        # A client that leaves ends its requests with an RpcError, or as if it had said all: who must know looks for its own mark.
        with suppress(grpc.RpcError):
            for request in requests:
                put(request)
        put(_END)

    threading.Thread(target=pump, name="requests", daemon=True).start()
    try:
        while True:
            try:
                item = inbox.get(timeout=max(call.remaining_s, 0))
            except queue.Empty:
                call.check_deadline()
                continue
            if item is _END:
                return
            yield item  # type: ignore[misc]
    finally:
        over.set()
