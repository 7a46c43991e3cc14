"""Runs that a program of the user's drives: it takes one, acts in it and ends it, each time proving that it holds it (R-5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agentplat.domain.access import PUBLISHING, Access
from agentplat.domain.artifacts import Answer, blob_of
from agentplat.domain.errors import Conflict, ContentDamaged, LeaseLost, RunCancelled, RunFailed, Unauthenticated
from agentplat.domain.hands import Called, Turn
from agentplat.domain.runs import DriverKind, Run, RunState
from agentplat.domain.scopes import outermost
from agentplat.domain.tools import ToolSpec
from agentplat.store.port import Store
from agentplat.usecases.act_in_run import ActInRun
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.lease_run import Held, LeaseRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
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

    def take(self, access: Access, owner: str) -> tuple[Ticket, Held] | None:
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
                return Ticket(run_id=run.id, person_id=access.person.id, owner=owner), self.lease.prepare(run)
            except (RunFailed, ContentDamaged) as error:
                self.finish_run.fail(run, str(error))
        return None

    def held(self, ticket: Ticket) -> Held:
        """What the run is about, and what was done in it so far. Also raises ContentDamaged, ContentUnavailable."""
        return self.lease.prepare(self._run(ticket))

    def tools(self, held: Held) -> list[ToolSpec]:
        """The tools that a held run may call."""
        return self.act.offered(held.circumstances)

    def heartbeat(self, ticket: Ticket) -> float:
        """Hold the run for another while, and say for how many seconds."""
        run = self._run(ticket)
        if not self.lease.renew(run):
            raise LeaseLost(run.id)
        return self.lease.lease_s

    def call(self, ticket: Ticket, number: int, tool: str, arguments: Mapping[str, Any]) -> Called:
        """Make the call of this number in the run, from 1 without gaps; made before, its result is given again.

        Also raises RunWaits where the run waits from now on and is to be taken again later, InvalidInput for arguments that are not
        JSON, ContentDamaged, ContentUnavailable.
        """
        held = self.held(ticket)
        made = len(held.past.calls)
        if number > made + 1:
            raise Conflict(f"the next call of run {ticket.run_id} has number {made + 1}, not {number}")
        with self._one_at_a_time(ticket):
            try:
                return self.act.call(held.run, number, tool, arguments)[1]
            except RunFailed as error:
                # A worker's driver would have failed by this; a program may have sent it by mistake.
                raise Conflict(str(error)) from error

    def turn(self, ticket: Ticket, number: int, turn: Turn) -> None:
        """Report a model's turn of this number, from 1 without gaps; reported before, it is not put into the trail again."""
        held = self.held(ticket)
        made = len(held.past.turns)
        if number > made + 1:
            raise Conflict(f"the next turn of run {ticket.run_id} has number {made + 1}, not {number}")
        if number <= made:
            if held.past.turns[number - 1].content != blob_of(turn.content.encode()):
                raise Conflict(f"turn {number} of run {ticket.run_id} was reported already, with another content")
            return
        with self._one_at_a_time(ticket):
            self.act.turn(held.run, number, turn)

    def finish(self, ticket: Ticket, answer: Answer) -> Run:
        """End the run well. Also raises InvalidInput with every fault of the answer, after which the run goes on."""
        run = self._run(ticket)
        with self._one_at_a_time(ticket):
            return self.finish_run(run, answer)

    def fail(self, ticket: Ticket, reason: str) -> Run:
        """End the run as failed."""
        run = self._run(ticket)
        with self._one_at_a_time(ticket):
            return self.finish_run.fail(run, reason)

    def release(self, ticket: Ticket) -> None:
        """Give the run back in order, for another program to go on with."""
        self.lease.release(self._run(ticket))

    def _run(self, ticket: Ticket) -> Run:
        """The run, if the ticket still holds it."""
        with self.store.reading() as work:
            run = work.runs.find(ticket.run_id)
            person = work.people.by_id(ticket.person_id)
            access = Access(person, work.people.grants(person))
        if run is None:
            raise LeaseLost(ticket.run_id)
        access.demand_publishing(run.agent.scope)
        if run.state is RunState.CANCELLED or (run.owner == ticket.owner and run.cancel_asked_at is not None):
            raise RunCancelled(run.id)
        if run.ended:
            raise Conflict(f"run {run.id} is {run.state.value} already; nothing more is done in it")
        if run.owner != ticket.owner or run.state is not RunState.RUNNING:
            raise LeaseLost(run.id)
        return run

    @contextmanager
    def _one_at_a_time(self, ticket: Ticket) -> Iterator[None]:
        """Tell a run that went on by another request of the same program from one that is lost."""
        try:
            yield
        except LeaseLost as error:
            self._run(ticket)
            reason = (
                f"another request went into run {ticket.run_id} at the same time; send one after the other, then this one again"
            )
            raise Conflict(reason) from error
