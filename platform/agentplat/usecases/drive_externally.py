"""Runs that a program of the user's drives: it takes one, acts in it and ends it, each time proving that it holds it (R-5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agentplat.domain.access import PUBLISHING, Access
from agentplat.domain.artifacts import Answer, blob_of
from agentplat.domain.calls import meant_by
from agentplat.domain.canonical import digest
from agentplat.domain.errors import Conflict, ContentDamaged, LeaseLost, RunCancelled, RunFailed, Unauthenticated
from agentplat.domain.hands import Called, Turn
from agentplat.domain.runs import DriverKind, Run, RunState
from agentplat.domain.scopes import outermost
from agentplat.domain.tools import ToolSpec
from agentplat.store.port import Store
from agentplat.usecases.act_in_run import ActInRun
from agentplat.usecases.arguments import canonical_arguments
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.lease_run import Held, LeaseRun
from agentplat.usecases.tool import WorkTool

_MARK_CHARACTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Says that a person's program was given a run. owner: what the run's row calls its holder."""

    run_id: int
    person_id: int
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveExternally:
    """Each method but `take` raises RunCancelled, Conflict where the run has ended, LeaseLost where another holds it, AccessDenied
    where the person's grants do not reach it any more, and StoreUnavailable.
    """

    store: Store
    lease: LeaseRun
    act: ActInRun
    finish_run: FinishRun

    def take(self, access: Access, owner: str) -> tuple[Holding, Held] | None:
        """Hold the oldest run that waits for a program and whose agent the caller may publish; None where there is none.

        owner: a text that nobody else has. Raises Unauthenticated, ContentUnavailable, StoreUnavailable.
        """
        if access.person is None:
            raise Unauthenticated
        scopes = outermost(scope for role in PUBLISHING for scope in access.scopes_with(role))
        while (run := self.lease([DriverKind.EXTERNAL], owner, scopes)) is not None:
            if run.ended:
                continue
            try:
                return Holding(run_id=run.id, person_id=access.person.id, owner=owner), self.lease.place(self.lease.prepare(run))
            except (RunFailed, ContentDamaged) as error:
                self.finish_run.fail(run, str(error))
        return None

    def held(self, holding: Holding) -> Held:
        """What the run is about, and what was done in it so far. Also raises ContentDamaged, ContentUnavailable."""
        return self.lease.prepare(self._run(holding))

    def task(self, holding: Holding) -> Held:
        """The run with its work trees. Also raises what `held` raises, and Conflict where they are gone and cannot be made."""
        try:
            return self.lease.place(self.held(holding))
        except RunFailed as error:
            raise Conflict(str(error)) from error

    def tools(self, held: Held) -> list[ToolSpec]:
        """The tools that a held run may call."""
        return self.act.offered(held)

    def heartbeat(self, holding: Holding) -> float:
        """Hold the run for another while, and say for how many seconds."""
        run = self._run(holding)
        if not self.lease.renew(run):
            raise LeaseLost(run.id)
        return self.lease.lease_s

    def call(self, holding: Holding, number: int, tool: str, arguments: Mapping[str, Any]) -> Called:
        """Make the call of this number in the run, from 1 without gaps; made before, its result is given again.

        Also raises RunWaits where the run waits from now on and is to be taken again later, InvalidInput for arguments that are not
        JSON, ContentDamaged, ContentUnavailable.
        """
        held = self.held(holding)
        made = len(held.past.calls)
        if number > made + 1:
            raise Conflict(f"the next call of run {holding.run_id} has number {made + 1}, not {number}")
        return self._call(holding, held, number, tool, arguments)

    def call_next(self, holding: Holding, request: str, tool: str, arguments: Mapping[str, Any]) -> Called:
        """Make a call for a caller that does not number calls. request: what it calls this request.

        A call that was made and has no result is gone on with. Of tools that act in the database, a request that comes again from
        the same holder is the same call; others only read, or the Gate does not let them do the same twice. Raises as `call` does.
        """
        held = self.held(holding)
        mark = digest(f"{holding.owner} {request}".encode())[:_MARK_CHARACTERS]
        known = self.act.tools.gate.tools.get(tool)
        asked = digest(canonical_arguments(arguments))
        number = meant_by(held.past.calls, tool, asked, mark if isinstance(known, WorkTool) else None)
        return self._call(holding, held, number or len(held.past.calls) + 1, tool, arguments, mark)

    def _call(
        self, holding: Holding, held: Held, number: int, tool: str, arguments: Mapping[str, Any], mark: str | None = None
    ) -> Called:
        with self._one_at_a_time(holding):
            try:
                return self.act.call(held.run, number, tool, arguments, mark)[1]
            except RunFailed as error:
                # A worker's driver would have failed by this; a program may have sent it by mistake.
                raise Conflict(str(error)) from error

    def turn(self, holding: Holding, number: int, turn: Turn) -> None:
        """Report a model's turn of this number, from 1 without gaps; reported before, it is not put into the trail again."""
        held = self.held(holding)
        made = len(held.past.turns)
        if number > made + 1:
            raise Conflict(f"the next turn of run {holding.run_id} has number {made + 1}, not {number}")
        if number <= made:
            if held.past.turns[number - 1].content != blob_of(turn.content.encode()):
                raise Conflict(f"turn {number} of run {holding.run_id} was reported already, with another content")
            return
        with self._one_at_a_time(holding):
            self.act.turn(held.run, number, turn)

    def finish(self, holding: Holding, answer: Answer) -> Run:
        """End the run well. Also raises InvalidInput with every fault of the answer, after which the run goes on."""
        run = self._run(holding)
        with self._one_at_a_time(holding):
            return self.finish_run(run, answer)

    def fail(self, holding: Holding, reason: str) -> Run:
        """End the run as failed."""
        run = self._run(holding)
        with self._one_at_a_time(holding):
            return self.finish_run.fail(run, reason)

    def release(self, holding: Holding) -> None:
        """Give the run back in order, for another program to go on with."""
        self.lease.release(self._run(holding))

    def _run(self, holding: Holding) -> Run:
        """The run, if the holding still holds it."""
        with self.store.reading() as work:
            run = work.runs.find(holding.run_id)
            person = work.people.by_id(holding.person_id)
            access = Access(person, work.people.grants(person))
        if run is None:
            raise LeaseLost(holding.run_id)
        access.demand_publishing(run.agent.scope)
        if run.state is RunState.CANCELLED or (run.owner == holding.owner and run.cancel_asked_at is not None):
            raise RunCancelled(run.id)
        if run.ended:
            raise Conflict(f"run {run.id} is {run.state.value} already; nothing more is done in it")
        if run.owner != holding.owner or run.state is not RunState.RUNNING:
            raise LeaseLost(run.id)
        return run

    @contextmanager
    def _one_at_a_time(self, holding: Holding) -> Iterator[None]:
        """Tell a run that went on by another request of the same program from one that is lost."""
        try:
            yield
        except LeaseLost as error:
            self._run(holding)
            reason = (
                f"another request went into run {holding.run_id} at the same time; send one after the other, then this one again"
            )
            raise Conflict(reason) from error
