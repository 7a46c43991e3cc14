"""Carrying pipelines on: what has ended is noted, and what may begin is opened, in one transaction (D-16).

Any number of processes may do so at once. What a pipeline does next follows from what is stored and from nothing else, so that
whoever is killed leaves it as it was before, or as it is afterwards. A pipeline is held by its row while it is moved; the content
of outputs is fetched before, outside any transaction, and what was fetched counts only if it is still what is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.errors import ContentDamaged
from agentplat.domain.pipeline_templates import read_template
from agentplat.domain.pipelines import UNDER_WAY, Pipeline, PipelineState, StepState
from agentplat.domain.step_inputs import MOST_INPUT_BYTES, input_text
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.move_pipeline import Fault, Given, Movement, Wanted

PAGE = 100
DISORDER = "it could not be carried on by a fault of ours; the operator's log says more"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPipelines:
    """Moves pipelines."""

    store: Store
    content: ContentStore

    def due(self, after: int = 0) -> list[int]:
        """Pipelines with an id behind `after` in which something is to be done, the first of them. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.pipelines.due(after, PAGE)

    def __call__(self, pipeline_id: int) -> Pipeline | None:
        """Do all that is to be done in a pipeline now.

        The pipeline as it is then; None where somebody else holds it or it has ended. Raises ContentUnavailable, StoreUnavailable.
        """
        given: dict[Wanted, Given] = {}
        while True:
            with self.store.reading() as work:
                pipeline = work.pipelines.find(pipeline_id)
                if pipeline is None or pipeline.state is not PipelineState.RUNNING:
                    return None
                wanted = _movement(work, pipeline, {}).wanted
            given = {one: given[one] if one in given else self._fetched(one) for one in wanted}
            with self.store.writing() as work:
                pipeline = work.pipelines.take(pipeline_id)
                if pipeline is None:
                    return None
                movement = _movement(work, pipeline, given)
                if given.keys() >= set(movement.wanted):
                    return movement.carry_out(self.content)
            # Another run has ended since it was looked: what its successors need is fetched too.

    def give_up(self, pipeline_id: int) -> None:
        """End a pipeline that can not be carried on. Its runs go on to their own ends. Raises StoreUnavailable."""
        with self.store.writing() as work:
            pipeline = work.pipelines.take(pipeline_id)
            space = None if pipeline is None else work.spaces.find(pipeline.space_id)
            if pipeline is not None and space is not None:
                at = now_ms()
                for key, step in work.pipelines.steps(pipeline.id).items():
                    if step.state in UNDER_WAY:
                        work.pipelines.move(pipeline.id, key, StepState.CANCELLED, DISORDER)
                author = Author(person_id=pipeline.on_behalf_of_id)
                work.spaces.say(space, MessageKind.NOTICE, author, f"Pipeline {pipeline.id} failed: {DISORDER}", at)
                work.pipelines.end(pipeline, PipelineState.FAILED, DISORDER, at)

    def _fetched(self, wanted: Wanted) -> Given:
        """The input of a step, or why there is none. Raises ContentUnavailable."""
        texts: dict[str, str] = {}
        for output in wanted.outputs:
            if output.blob is None:
                return Fault(reason=f"what the step {output.key} came to was erased")
            try:
                texts[output.key] = self.content.get(output.blob).decode()
            except ContentDamaged:
                return Fault(reason=f"what the step {output.key} came to is lost or damaged")
        text = input_text(wanted.template, wanted.step, wanted.outputs, texts)
        size = len(text.encode())
        if size > MOST_INPUT_BYTES:
            return Fault(reason=f"its input would be {size} bytes; at most {MOST_INPUT_BYTES} are given to a run")
        return text


def _movement(work: Work, pipeline: Pipeline, given: Mapping[Wanted, Given]) -> Movement:
    return Movement(work, pipeline, read_template(work.pipelines.template(pipeline.id)), given)
