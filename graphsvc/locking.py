"""One writer, many readers: searches share the graph, folding has it alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class ReadWriteLock:
    """Readers share; a writer waits for them to leave, and new readers wait for a waiting writer, so that none is starved."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = 0
        self._writers = 0  # waiting or writing

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Share the graph with other readers. Not to be nested: a writer that waits in between would block both."""
        with self._changed:
            self._changed.wait_for(lambda: self._writers == 0)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
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
