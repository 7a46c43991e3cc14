"""What a store promises. One suite of contract tests holds every adapter to this page.

A store keeps an append-only log. Revisions begin at 1 and have no gap (G-25). Many processes may share one store; at most one
of them is inside `writing()` at a time, and what it appended becomes visible whole, durable and at once when the block ends
without an exception, or not at all (G-26, G-27).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from graphsvc.domain.model import LogEntry, NewEntry
from graphsvc.domain.names import AgentRef


class SnapshotState(NamedTuple):
    """The graph as numbers: values for JSON, and flat arrays by name."""

    meta: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


class Log(Protocol):
    """Reading the log. Every method raises StoreUnavailable when the store does not answer."""

    def head(self) -> int:
        """The newest revision, 0 for an empty log."""

    def read(self, after: int) -> Iterator[LogEntry]:
        """Entries with a revision above `after`, in revision order, streamed in bounded memory."""

    def find(self, agent: AgentRef, number: int) -> LogEntry | None:
        """The entry that published this version of this agent, or None."""


class Writing(Log, Protocol):
    """The log as its only writer sees it, own appends included."""

    def append(self, entries: Sequence[NewEntry]) -> list[LogEntry]:
        """Append in order, drawing the next revisions.

        A (agent, number) is published at most once: a second one raises VersionConflict and spoils the whole block.
        """


class Store(Log, Protocol):
    """A log that can be written to."""

    def writing(self) -> AbstractContextManager[Writing]:
        """Hold the log's single write lock, over all processes; commit on leaving, roll back on an exception."""

    def close(self) -> None:
        """Release connections and files. Calling it twice does nothing."""
