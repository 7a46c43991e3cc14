"""One writer, many readers: searches share the graph, folding has it alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition


class ReadWriteLock:
    """Readers share; a writer waits for them to leave, and new readers wait for a waiting writer, so that none is starved."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = 0
        self._writers = 0  # waiting or writing
        self._reading = _Reading(self)

    def reading(self) -> AbstractContextManager[None]:
        """Share the graph with other readers. Not to be nested: a writer that waits in between would block both."""
        return self._reading

    def enter(self) -> None:
        """Begin to read; `leave` must follow."""
        with self._changed:
            while self._writers:
                self._changed.wait()
            self._readers += 1

    def leave(self) -> None:
        """End reading."""
        with self._changed:
            self._readers -= 1
            if self._writers and not self._readers:  # nobody else waits for a reader to leave
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Have the graph alone. Writers must not overlap; the service's publishing mutex sees to that."""
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._changed:
                self._writers -= 1
                self._changed.notify_all()


class _Reading(AbstractContextManager[None]):
    """One for all readers, as it keeps nothing of any of them."""

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.enter()

    def __exit__(self, *_: object) -> None:
        self._lock.leave()
