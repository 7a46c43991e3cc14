"""What was made once for a key, without an order of use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Made = TypeVar("_Made")

_MOST = 65_536


class Remembered(dict[_Key, _Made]):
    """What keys stand for, made when it is asked for first; all of it is forgotten when it has become too much.

    A dictionary, because looking up the hundreds of agents and hops of a report in it takes a fraction of what `lru_cache` takes,
    which keeps an order that nobody needs here. Safe to use from many threads: two may make the same thing, which must be equal.
    """

    def __init__(self, make: Callable[[_Key], _Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: _Key) -> _Made:
        if len(self) >= _MOST:
            self.clear()
        made = self[key] = self._make(key)
        return made
