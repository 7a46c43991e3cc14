"""Ending runs and letting them wait, so that the space where a run works is told in the same transaction (W-4).

Nothing else in the use cases closes a run or lets one wait: a run that works in a space never ends there unseen.
"""

from __future__ import annotations

from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.steps import Closing, Waiting
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.store.port import Work
from agentplat.usecases.texts import clipped


def end_run(work: Work, run: Run, closing: Closing, at: int, answer: str | None = None) -> Run:
    """End the run. answer: what it came to, for the space where it works. Raises LeaseLost."""
    ended = work.runs.close(run, closing, at)
    if closing.state is RunState.FINISHED:
        told = answer if answer else f"Run {run.id} of {run.agent.name} finished."
    elif closing.state is RunState.FAILED:
        told = f"Run {run.id} of {run.agent.name} failed: {closing.reason}"
    else:
        told = f"Run {run.id} of {run.agent.name} was cancelled."
    _tell(work, run, MessageKind.RESULT, told, at)
    return ended


def let_wait(work: Work, run: Run, waiting: Waiting) -> Run:
    """Let the run wait. Raises LeaseLost."""
    at = now_ms()
    waits = work.runs.wait(run, waiting, at)
    what = (
        "an approval"
        if waiting.waiting_for is WaitingFor.APPROVAL
        else f"a budget, as it came to the ceiling for {waiting.ceiling}"
    )
    _tell(work, run, MessageKind.NOTICE, f"Run {run.id} of {run.agent.name} waits for {what}.", at)
    return waits


def _tell(work: Work, run: Run, kind: MessageKind, text: str, at: int) -> None:
    workplace = work.spaces.workplace(run.id)
    space = None if workplace is None else work.spaces.find(workplace.space_id)
    if workplace is not None and space is not None:
        tickets = () if workplace.ticket_id is None else (workplace.ticket_id,)
        work.spaces.say(space, kind, Author(run_id=run.id), clipped(text), at, tickets)
