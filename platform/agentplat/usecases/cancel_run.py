"""Cancelling a run: asked for by a person, carried out by whoever holds it, or at once where nobody does (R-4)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Person
from agentplat.domain.errors import Conflict, LeaseLost, Unauthenticated, phrase
from agentplat.domain.runs import DriverKind, Run, RunState
from agentplat.domain.steps import Closing
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import readable_run
from agentplat.usecases.tell_space import end_run


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """Cancels runs."""

    store: Store

    def __call__(self, access: Access, run_id: int) -> Run:
        """The run: cancelled where no worker holds it, else with a note for its worker, who ends it before its next step.

        A program that drives a run is not waited for: it is refused from now on. Asking again changes nothing. Raises NotFound
        where the run is not readable, AccessDenied, Conflict where it has ended otherwise, Unauthenticated, StoreUnavailable.
        """
        if access.person is None:
            raise Unauthenticated
        try:
            return self._cancelled(access, access.person, run_id)
        except LeaseLost:
            # A worker took it up at this moment. Whoever holds it reads the note, which an earlier request must have left.
            with self.store.reading() as work:
                return readable_run(work, access, run_id)

    def _cancelled(self, access: Access, person: Person, run_id: int) -> Run:
        with self.store.writing() as work:
            run = readable_run(work, access, run_id)
            access.demand_publishing(run.agent.scope)
            run = cancel_noted(work, run_id, person)
            if run.ended and run.state is not RunState.CANCELLED:
                said = "run %(id)s is %(state)s already; it can not be cancelled any more"
                raise Conflict(phrase(said, id=run.id, state=phrase(run.state.value)))
            return run

    def carry_out(self, run: Run) -> Run:
        """End a held run whose cancelling was asked for. Raises LeaseLost, StoreUnavailable."""
        with self.store.writing() as work:
            return close_cancelled(work, run)


def cancel_noted(work: Work, run_id: int, person: Person) -> Run:
    """Note that a person wants a run that is there to be cancelled, and end it where nobody has to be waited for.

    The run as it is then: one that has ended already stays as it is. Raises LeaseLost where a worker takes it up at this moment.
    """
    known = _there(work, run_id)
    # The first note locks the row, so that no worker takes the run up between the look and the end.
    work.runs.ask_to_cancel(known, person, now_ms())
    run = _there(work, run_id)
    if run.ended or (run.state is RunState.RUNNING and run.driver is not DriverKind.EXTERNAL):
        return run
    return close_cancelled(work, run)


def _there(work: Work, run_id: int) -> Run:
    run = work.runs.find(run_id)
    assert run is not None  # whoever cancels has found it, and runs are never deleted
    return run


def close_cancelled(work: Work, run: Run) -> Run:
    """End a run as cancelled, naming who asked for it. Raises LeaseLost."""
    known = work.runs.find(run.id)
    by_id = None if known is None else known.cancel_asked_by_id
    by = None if by_id is None else work.people.by_id(by_id).ref.text
    return end_run(work, run, Closing(state=RunState.CANCELLED, by=by), now_ms())
