"""The worker: takes runs, lets a driver carry each to its end, and keeps the lease alive meanwhile (R-4, R-5).

Any number of workers may run on one database. One whose lease was lost finds out at its next write, which is refused.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.errors import ContentDamaged, InvalidInput, LeaseLost, PlatformError, RunFailed, RunWaits, StoreUnavailable
from agentplat.domain.runs import Run
from agentplat.domain.steps import ResultKind
from agentplat.drivers.port import Called, Driver, Hands, Task
from agentplat.usecases.call_tool import CallTool
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.lease_run import LeaseRun

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The use cases that a worker needs."""

    lease: LeaseRun
    call: CallTool
    finish: FinishRun
    content: ContentStore


class _RunHands(Hands):
    """The hands of one run. run: as it stands after the last call.

    Calls are numbered from the beginning, whoever held the run before: what the trail answers already is not done again.
    """

    def __init__(self, bench: Bench, run: Run) -> None:
        self._bench, self.run, self._calls = bench, run, 0

    @override
    def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        self._calls += 1
        self.run, result = self._bench.call(self.run, self._calls, tool, arguments)
        text = result.reason or ""
        if result.content is not None:
            try:
                text = self._bench.content.get(result.content).decode()
            except ContentDamaged as error:
                # Somebody erased what an earlier call had read: the run goes on without it.
                return Called(result=ResultKind.FAILED, text=str(error))
        return Called(result=result.result, text=text)


class Worker:
    """poll_s: seconds between two looks when there is nothing to do. A worker drives one run at a time."""

    def __init__(self, bench: Bench, drivers: Sequence[Driver], poll_s: float) -> None:
        self._bench, self._poll_s = bench, poll_s
        self._drivers = {driver.kind: driver for driver in drivers}
        self._owner = secrets.token_hex(16)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="worker", daemon=True)

    def start(self) -> None:
        """Begin to take runs."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Take no more runs, and whether the one under way ended within so many seconds."""
        self._stopping.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                run = self._bench.lease(self._drivers, self._owner)
                if run is not None:
                    self._carry(run)
                    continue
            except StoreUnavailable:
                log.warning("no runs can be taken: the database does not answer")
            except Exception:
                # A fault of ours with one run must not end the work on all; its lease keeps it away for a while.
                log.exception("a run failed by a fault of ours")
            self._stopping.wait(self._poll_s)

    def _carry(self, run: Run) -> None:
        """Drive a held run to its end, or leave it to whoever holds it by now."""
        with self._renewing(run):
            try:
                self._drive(run)
            except LeaseLost:
                log.warning("a run is held by another worker by now", run=run.id)

    def _drive(self, run: Run) -> None:
        held = self._bench.lease.prepare(run)
        hands = _RunHands(self._bench, run)
        task = Task(run=run, manifest=held.manifest, opening=held.opening, input=held.input, trail=held.trail)
        try:
            answer = self._drivers[run.driver].drive(task, hands)
            ended = self._bench.finish(hands.run, answer)
        except RunWaits as waiting:
            log.info("run waits", run=run.id, agent=run.agent.text, what=waiting.what)
            return
        except (RunFailed, InvalidInput) as error:
            ended = self._bench.finish.fail(hands.run, str(error))
        log.info("run ended", run=run.id, agent=run.agent.text, state=ended.state)

    @contextmanager
    def _renewing(self, run: Run) -> Iterator[None]:
        """Renew the lease three times in its length, until the block ends."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self._bench.lease.lease_s / 3):
                try:
                    if not self._bench.lease.renew(run):
                        return
                except PlatformError:
                    log.warning("a lease could not be renewed: the database does not answer", run=run.id)

        thread = threading.Thread(target=renew, name=f"lease of run {run.id}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
