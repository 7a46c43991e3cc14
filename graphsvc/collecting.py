"""Keeping the cyclic garbage collector away from bulk loading."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_inside = 0


@contextmanager
def uncollected() -> Iterator[None]:
    """Run a block in which millions of long-lived objects without cycles are made, without the collector scanning them again and
    again (a third of the time of a bulk import). What lives at the end of the last such block is left out of later scans too."""
    global _inside
    with _lock:
        _inside += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.freeze()
                gc.enable()
