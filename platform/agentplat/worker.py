"""The worker: takes runs, lets a driver carry each to its end, and keeps the lease alive meanwhile (R-4, R-5).

Any number of workers may run on one database. One whose lease was lost finds out at its next write, which is refused.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from typing_extensions import override

from agentplat.domain.budgets import Unit
from agentplat.domain.errors import (
    ContentDamaged,
    ContentUnavailable,
    ContractUnmet,
    InvalidInput,
    LeaseLost,
    PlatformError,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunWaits,
    StoreUnavailable,
)
from agentplat.domain.hands import Called, Turn
from agentplat.domain.recovery import Past
from agentplat.domain.runs import Run
from agentplat.drivers.port import Driver, Hands, Task
from agentplat.usecases.act_in_run import ActInRun
from agentplat.usecases.catalogue import Acting

TIDY_S = 60.0
"""Seconds between two looks for what removed spaces have left; most is taken away by whoever removes them."""

log = structlog.get_logger()


class _RunHands(Hands):
    """The hands of one run. run: as it stands after the last act.

    Calls and turns are numbered from the beginning, whoever held the run before: what the trail has already is not done again.
    """

    def __init__(self, act: ActInRun, run: Run, past: Past) -> None:
        self._act, self.run, self._past = act, run, past
        self._calls = self._turns = 0

    @override
    def call(self, tool: str, arguments: Mapping[str, Any]) -> Called:
        self._calls += 1
        self.run, called = self._act.call(self.run, self._calls, tool, arguments)
        if self.run.ended:
            raise RunEnded(self.run.id, self.run.state.value)
        return called

    @override
    def recall(self) -> str | None:
        if self._turns >= len(self._past.turns):
            return None
        self._turns += 1
        return self._act.said(self._past.turns[self._turns - 1])

    @override
    def expect(self, worst: Mapping[Unit, int]) -> None:
        self.run = self._act.expect_turn(self.run, self._turns + 1, worst)

    @override
    def record(self, turn: Turn) -> None:
        self._turns += 1
        self.run = self._act.turn(self.run, self._turns, turn)


class Worker:
    """poll_s: seconds between two looks when there is nothing to do. A worker drives one run at a time."""

    def __init__(self, acting: Acting, drivers: Sequence[Driver], poll_s: float) -> None:
        self._acting, self._poll_s = acting, poll_s
        self._drivers = {driver.kind: driver for driver in drivers}
        self._owner = secrets.token_hex(16)
        self._held: Run | None = None
        self._tidies_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="worker", daemon=True)

    def start(self) -> None:
        """Begin to take runs."""
        self._thread.start()

    def wind_down(self) -> None:
        """Take no more runs."""
        self._stopping.set()

    def stop(self, seconds: float) -> bool:
        """Take no more runs, and whether the one under way ended within so many seconds; else it is given back to the others."""
        self.wind_down()
        self._thread.join(seconds)
        held = self._held
        if self._thread.is_alive() and held is not None:
            self._acting.lease.release(held)
            log.warning("a run was given back, as the worker had to end before it", run=held.id)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                run = self._acting.lease(self._drivers, self._owner)
                if run is not None:
                    self._carry(run)
                    continue
            except StoreUnavailable:
                log.warning("no runs can be carried: the database does not answer")
            except ContentUnavailable as error:
                log.warning("a run stopped until its lease ends: the content store does not answer", reason=error.reason)
            except Exception:
                # A fault of ours with one run must not end the work on all; its lease keeps it away for a while.
                log.exception("a run failed by a fault of ours")
            self._tidy()
            self._stopping.wait(self._poll_s)

    def _tidy(self) -> None:
        """Take away what removed spaces have left here, whoever removed them."""
        if time.monotonic() < self._tidies_at:
            return
        self._tidies_at = time.monotonic() + TIDY_S
        try:
            self._acting.tidy()
        except PlatformError as error:
            log.warning("work trees of removed spaces could not be taken away", reason=str(error))
        except Exception:
            log.exception("work trees of removed spaces could not be taken away by a fault of ours")

    def _carry(self, run: Run) -> None:
        """Drive a held run to its end, or leave it to whoever holds it by now."""
        if not run.ended:
            with self._renewing(run):
                try:
                    run = self._drive(run)
                except LeaseLost:
                    log.warning("a run is held by another worker by now", run=run.id)
        if run.ended:
            log.info("run ended", run=run.id, agent=run.agent.text, state=run.state)

    def _drive(self, run: Run) -> Run:
        """Let the run's driver think until the run has ended. Raises LeaseLost."""
        try:
            held = self._acting.lease.place(self._acting.lease.prepare(run))
        except (RunFailed, ContentDamaged) as error:
            return self._acting.finish.fail(run, str(error))
        hands = _RunHands(self._acting.act, run, held.past)
        tools = self._acting.act.offered(held)
        task = Task(
            run=run,
            manifest=held.manifest,
            opening=held.opening,
            input=held.input,
            tools=tools,
            workplace=held.workplace,
            trees=held.trees,
        )
        try:
            answer = self._drivers[run.driver].drive(task, hands)
            self._acting.act.demand_going_on(hands.run)
            return self._acting.finish(hands.run, answer)
        except RunWaits as waiting:
            log.info("run waits", run=run.id, agent=run.agent.text, what=waiting.what)
            return run
        except RunEnded:
            return hands.run
        except RunCancelled:
            return self._acting.cancel.carry_out(hands.run)
        except (ContractUnmet, RunFailed, InvalidInput, ContentDamaged) as error:
            return self._acting.finish.fail(hands.run, str(error))

    @contextmanager
    def _renewing(self, run: Run) -> Iterator[None]:
        """Renew the lease three times in its length, until the block ends."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self._acting.lease.lease_s / 3):
                try:
                    if not self._acting.lease.renew(run):
                        return
                except PlatformError:
                    log.warning("a lease could not be renewed: the database does not answer", run=run.id)

        thread = threading.Thread(target=renew, name=f"lease of run {run.id}", daemon=True)
        thread.start()
        self._held = run
        try:
            yield
        finally:
            self._held = None
            done.set()
            thread.join()
