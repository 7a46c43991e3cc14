"""Cancelling a pipeline, and with it every run of its steps (D-16)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Person
from agentplat.domain.errors import Conflict, LeaseLost, Unauthenticated, phrase
from agentplat.domain.pipelines import UNDER_WAY, Pipeline, PipelineState, StepState
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.cancel_run import cancel_noted
from agentplat.usecases.texts import check_reason
from agentplat.usecases.workrooms import Room, readable_pipeline

_TRIES = 5
"""How often it is begun anew because a worker took up one of the runs at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelPipeline:
    """Cancels pipelines."""

    store: Store

    def __call__(self, access: Access, pipeline_id: int, reason: str) -> Pipeline:
        """End the pipeline; runs that a worker holds end before their next step. Asking again changes nothing.

        Raises NotFound, AccessDenied where the caller may not publish in the workspace's scope, Conflict where it has ended
        otherwise, InvalidInput, Unauthenticated, StoreUnavailable.
        """
        if access.person is None:
            raise Unauthenticated
        for _ in range(_TRIES):
            try:
                return self._cancelled(access, access.person, pipeline_id, reason)
            except LeaseLost:
                continue
        raise Conflict(phrase("the runs of pipeline %(id)s go from worker to worker just now; ask again", id=pipeline_id))

    def _cancelled(self, access: Access, person: Person, pipeline_id: int, reason: str) -> Pipeline:
        with self.store.writing() as work:
            _, room = readable_pipeline(work, access, pipeline_id)
            access.demand_publishing(room.workspace.scope)
            said = check_reason(reason)
            held = work.pipelines.hold(pipeline_id)
            assert held is not None  # pipelines are never deleted
            if held.state is PipelineState.CANCELLED:
                return held
            if held.state is not PipelineState.RUNNING:
                said = "pipeline %(id)s is %(state)s already; it can not be cancelled any more"
                raise Conflict(phrase(said, id=held.id, state=phrase(held.state.value)))
            return _end(work, held, room, person, said)


def _end(work: Work, held: Pipeline, room: Room, person: Person, reason: str) -> Pipeline:
    at = now_ms()
    for key, step in sorted(work.pipelines.steps(held.id).items()):
        if step.state in UNDER_WAY:
            work.pipelines.move(held.id, key, StepState.CANCELLED)
        if step.state is StepState.RUNNING and step.run_id is not None:
            cancel_noted(work, step.run_id, person)
    told = f"Pipeline {held.id} was cancelled: {reason}"
    work.spaces.say(room.space, MessageKind.NOTICE, Author(person_id=person.id), told, at)
    work.acts.record(at, person, "cancel pipeline", Ref(room.workspace.scope, "*"), {"pipeline": held.id, "reason": reason})
    return work.pipelines.end(held, PipelineState.CANCELLED, reason, at)
