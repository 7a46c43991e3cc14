"""The audit in a process of its own, so that a server goes on answering while all cores work on it, and can end it at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from graphsvc.columns import Columns, in_columns
from graphsvc.domain.audit import AuditLimits, Finding, Progress
from graphsvc.domain.errors import Overloaded
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import Scope
from graphsvc.domain.redaction import Reader

_FINDINGS_AT_ONCE = 100
_LOOK_EVERY_S = 0.2
_POLITENESS = 10
"""What is added to the niceness of the audit's process: answers go first."""

_busy = threading.Lock()


class AuditDied(Exception):
    """The process of an audit ended before the audit did."""


def audit_apart(
    versions: Iterable[AgentVersion],
    reader: Reader,
    scopes: Sequence[Scope],
    limits: AuditLimits,
    goes_on: Callable[[], bool],
) -> Generator[Progress | Finding]:
    """What `graphsvc.audit.local.audit` finds, with its progress. One at a time in a process: it takes all cores.

    goes_on: asked several times a second; where it says no, or raises, the audit ends at once, as it does when the iterator is
    closed. Raises Overloaded while another audit runs, AuditDied.
    """
    if not _busy.acquire(blocking=False):
        raise Overloaded("another audit is being made; try again later")
    try:
        yield from _apart(versions, (reader, tuple(scopes), limits), goes_on)
    finally:
        _busy.release()


def _apart(versions: Iterable[AgentVersion], question: Any, goes_on: Callable[[], bool]) -> Iterator[Progress | Finding]:
    # A copy of this process, threads and locks and all, would not be safe: so a fresh one is spawned.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, *question), name="audit", daemon=True)
    process.start()
    theirs.close()
    feeder = threading.Thread(target=_feed, args=(ours, versions), name="audit feeder")
    feeder.start()
    try:
        while goes_on():
            if not ours.poll(_LOOK_EVERY_S):
                continue
            try:
                parts = ours.recv()
            except EOFError:
                raise AuditDied(f"the process of an audit ended with status {process.exitcode}") from None
            if parts is None:
                return
            yield from parts
    finally:
        process.kill()
        process.join()
        feeder.join()  # its next send fails, now that nobody is left to read
        ours.close()


def _feed(connection: Connection, versions: Iterable[AgentVersion]) -> None:
    with suppress(OSError):  # the audit was ended, which whoever ended it knows
        for columns in in_columns(versions):
            connection.send(columns)
        connection.send(None)


def _received(connection: Connection) -> Iterator[Columns]:
    while (columns := connection.recv()) is not None:
        yield columns


def _work(connection: Connection, reader: Reader, scopes: tuple[Scope, ...], limits: AuditLimits) -> None:
    """What the process does."""
    from graphsvc.audit.local import audit  # noqa: PLC0415 - a server that makes no audit need not load it

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the server, which ends its audits itself
    os.nice(_POLITENESS)
    waiting: list[Progress | Finding] = []

    def tell(progress: Progress) -> None:
        waiting.append(progress)
        connection.send(waiting)
        waiting.clear()

    try:
        for finding in audit(_received(connection), reader, scopes=scopes, limits=limits, tell=tell):
            waiting.append(finding)
            if len(waiting) >= _FINDINGS_AT_ONCE:
                connection.send(waiting)
                waiting.clear()
        connection.send(waiting)
        connection.send(None)
    except (BrokenPipeError, EOFError):
        return  # the server is gone, and with it whoever asked
