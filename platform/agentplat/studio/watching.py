"""Live updates by server-sent events: one thread looks for what changed and wakes the streams that wait for it (U-9).

A stream tells only that something changed, and how far it is; the page then asks for what it does not have, with its own rights. So
nothing is shown twice, whatever was missed, and a stream that goes on elsewhere needs to know nothing of the one before.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from agentplat.domain.errors import Overloaded, StoreUnavailable
from agentplat.domain.insights import Progress
from agentplat.domain.runs import ENDED
from agentplat.domain.scopes import within_any
from agentplat.usecases.monitor_runs import MonitorRuns

MOST_STREAMS, MOST_OF_ONE = 256, 16
"""Streams open at once, in all and for one person."""
LASTS_S, BEAT_S = 300.0, 15.0
"""Seconds until a stream ends, so that rights are looked at again, and between two signs of life. Browsers come back."""
_LOOK_S, _AFTER_FAULT_S = 0.3, 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a stream tells. id: grows or changes with every change. last: whether nothing will follow."""

    id: str
    data: str
    last: bool


@dataclass(eq=False, slots=True, kw_only=True)
class Stream:
    """One open page. run_id: of a run; scopes: of all that is under way in them; space_id: of what is said too."""

    person_id: int
    loop: asyncio.AbstractEventLoop
    run_id: int | None = None
    scopes: tuple[str, ...] = ()
    space_id: int | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    told: Told | None = None
    closed: bool = False


class Watcher:
    """Looks while any stream is open. look_s: seconds between two looks."""

    def __init__(self, monitor: MonitorRuns, look_s: float = _LOOK_S) -> None:
        self._monitor, self._look_s = monitor, look_s
        self._streams: set[Stream] = set()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        # The newest run seen, and those that have not ended: how waiting runs end is seen only by whoever remembers them.
        self._newest = -1
        self._open: set[int] = set()

    def open(self, stream: Stream) -> None:
        """Begin to tell a stream. Raises Overloaded where there are too many, or the platform is about to end."""
        with self._changed:
            of_one = sum(other.person_id == stream.person_id for other in self._streams)
            if self._stopping.is_set() or len(self._streams) >= MOST_STREAMS or of_one >= MOST_OF_ONE:
                raise Overloaded(5)
            self._streams.add(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
                self._thread.start()
            self._changed.notify()

    def leave(self, stream: Stream) -> None:
        """Forget a stream."""
        with self._changed:
            self._streams.discard(stream)

    def close(self, seconds: float) -> bool:
        """End every stream and take no new ones; whether the thread ended within so many seconds."""
        with self._changed:
            self._stopping.set()
            for stream in self._streams:
                stream.closed = True
                stream.loop.call_soon_threadsafe(stream.wake.set)
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._streams or self._stopping.is_set())
                streams = list(self._streams)
            try:
                self._look(streams)
                pause = self._look_s
            except StoreUnavailable:
                log.warning("live pages wait: the database does not answer")
                pause = _AFTER_FAULT_S
            except Exception:
                log.exception("looking for changes failed by a fault of ours")
                pause = _AFTER_FAULT_S
            self._stopping.wait(pause)

    def _look(self, streams: Iterable[Stream]) -> None:
        if self._newest < 0:
            self._newest, self._open = self._monitor.begin()
        asked = {stream.run_id for stream in streams if stream.run_id is not None}
        found = self._monitor.progress(asked | self._open, self._newest)
        self._newest = max((one.run_id for one in found), default=self._newest)
        self._open = {one.run_id for one in found if one.state not in ENDED}
        spaces = {stream.space_id for stream in streams if stream.space_id is not None}
        said = self._monitor.said(spaces) if spaces else {}
        by_id = {one.run_id: one for one in found}
        for stream in streams:
            told = _of_run(by_id.get(stream.run_id)) if stream.run_id is not None else _of_scopes(stream, found, said)
            if told is not None and told != stream.told:
                stream.told = told
                stream.loop.call_soon_threadsafe(stream.wake.set)


def _of_scopes(stream: Stream, found: Iterable[Progress], said: Mapping[int, int]) -> Told:
    # A run that has ended is among them once, and its going is one change more.
    inside = [(one.run_id, one.steps, one.state.value) for one in found if within_any(one.scope, stream.scopes)]
    last = 0 if stream.space_id is None else said.get(stream.space_id, 0)
    digest = hashlib.sha256(repr((last, inside)).encode()).hexdigest()[:16]
    return Told(id=digest, data="{}", last=False)


def _of_run(progress: Progress | None) -> Told | None:
    if progress is None:
        return None
    data = json.dumps({"steps": progress.steps, "state": progress.state.value})
    return Told(id=str(progress.steps), data=data, last=progress.state in ENDED)


async def events(watcher: Watcher, stream: Stream, known: str) -> AsyncIterator[str]:
    """What a stream sends. known: the id of the last event that the page has had."""
    try:
        yield "retry: 1000\n\n"
        end = stream.loop.time() + LASTS_S
        while not stream.closed and stream.loop.time() < end:
            told = stream.told
            if told is not None and (told.id != known or told.last):
                known = told.id
                yield f"id: {told.id}\nevent: changed\ndata: {told.data}\n\n"
                if told.last:
                    return
            try:
                await asyncio.wait_for(stream.wake.wait(), BEAT_S)
                stream.wake.clear()
            except TimeoutError:
                yield ": still here\n\n"
    finally:
        watcher.leave(stream)
