"""One move of a pipeline: from what its runs have come to, to the runs that follow from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import FINAL_ANSWER, Blob
from agentplat.domain.chains import OpenedBy
from agentplat.domain.contracts import ContractMode
from agentplat.domain.errors import Refused
from agentplat.domain.labels import Labels, crossing, join
from agentplat.domain.modes import Mode
from agentplat.domain.pipeline_templates import NodeKind, Template, TemplateStep
from agentplat.domain.pipelines import Pipeline, PipelineState, PipelineStep, StepState, ending, out_of_reach, ready
from agentplat.domain.registry import Agent
from agentplat.domain.runs import Run, RunState
from agentplat.domain.spaces import Workplace
from agentplat.domain.step_inputs import StepOutput
from agentplat.domain.steps import Closing
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.store.port import Work
from agentplat.usecases.open_work import NewWork, open_work

MOST_REASON_CHARACTERS = 500
NO_OUTPUT = "it finished without an output that meets its contract"

_MODE_OF = {NodeKind.RESEARCH: Mode.PLAN, NodeKind.PROMPT_AGENT: Mode.CHAT, NodeKind.SYNTHESIS: Mode.CHAT}
"""Research reads and writes nothing. The other steps work: approving the proposal is what lets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A step whose turn it is, and what it is to be given of the steps before it."""

    template: Template
    step: TemplateStep
    outputs: tuple[StepOutput, ...]

    def __hash__(self) -> int:
        return hash((self.step.key, self.outputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a step can not begin at all."""

    reason: str


Given = str | Fault
"""The input of a step, or why there is none."""


class Movement:
    """What is to be done in a pipeline, as things stand in one transaction.

    given: what was fetched for the steps that may begin. wanted: what has to be fetched before the move can be carried out.
    """

    def __init__(self, work: Work, pipeline: Pipeline, template: Template, given: Mapping[Wanted, Given]) -> None:
        self._work, self._pipeline, self._template, self._given = work, pipeline, template, given
        self._nodes = {step.key: step for step in template.steps}
        self._steps = work.pipelines.steps(pipeline.id)
        self._before = dict(self._steps)
        self._runs = {key: self._run_of(step) for key, step in self._steps.items()}
        self._note_what_ended()
        self.wanted = [self._wanted(node) for node in ready(template.steps, self._states)]

    def carry_out(self, content: ContentStore) -> Pipeline:
        """Store what has ended, open what may begin, and end the pipeline where nothing more can come of it."""
        team = self._work.pipelines.team(self._pipeline.id)
        # A step that can not begin leaves others out of reach, which may have been the last ones.
        for wanted in self.wanted:
            given = self._given[wanted]
            refused = given.reason if isinstance(given, Fault) else self._opened(content, wanted, given, team)
            if refused is not None:
                self._set(wanted.step.key, StepState.FAILED, refused)
        while missing := out_of_reach(self._template.steps, self._states):
            for node, before in missing:
                self._set(node.key, StepState.SKIPPED, f"the step {before} did not finish")
        for key, step in self._steps.items():
            if step != self._before[key] and step.state is not StepState.RUNNING:
                self._work.pipelines.move(self._pipeline.id, key, step.state, step.reason)
        end = ending(self._states)
        return self._pipeline if end is None else self._end(end)

    @property
    def _states(self) -> dict[str, StepState]:
        return {key: step.state for key, step in self._steps.items()}

    def _set(self, key: str, state: StepState, reason: str | None = None) -> None:
        self._steps[key] = replace(self._steps[key], state=state, reason=reason)

    def _run_of(self, step: PipelineStep) -> Run | None:
        return None if step.run_id is None else self._work.runs.find(step.run_id)

    def _note_what_ended(self) -> None:
        for key, step in sorted(self._steps.items()):
            run = self._runs[key]
            if step.state is not StepState.RUNNING or run is None or not run.ended:
                continue
            reason = self._fault_of(self._nodes[key], run)
            if reason is None:
                self._set(key, StepState.FINISHED)
            elif run.state is RunState.CANCELLED or step.attempts >= self._nodes[key].attempts:
                self._set(key, StepState.FAILED, reason)
            else:
                self._set(key, StepState.WAITING, reason)

    def _fault_of(self, node: TemplateStep, run: Run) -> str | None:
        """Why an ended run did not do its step; None where it did."""
        if run.state is RunState.FINISHED:
            lacks = node.output_schema is not None and self._output(node, run) is None
            return f"run {run.id}: {NO_OUTPUT}" if lacks else None
        [last] = self._work.runs.trail(run.id, after=run.steps - 1)
        closing = last.read()
        why = closing.reason if isinstance(closing, Closing) and closing.reason else "no reason was given"
        return f"run {run.id} {run.state.value}: {why}"[:MOST_REASON_CHARACTERS]

    def _output(self, node: TemplateStep, run: Run) -> Blob | None:
        if node.output_schema is not None:
            contract = self._work.contracts.of_run(run.id)
            return None if contract is None else contract.output
        artifact = self._work.artifacts.find(run.id, FINAL_ANSWER)
        return None if artifact is None or artifact.erased_at is not None else artifact.blob

    def _wanted(self, node: TemplateStep) -> Wanted:
        outputs = []
        for key in node.needs:
            run = self._runs[key]
            assert run is not None  # a step that has finished had a run
            outputs.append(StepOutput(key=key, run_id=run.id, blob=self._output(self._nodes[key], run)))
        return Wanted(template=self._template, step=node, outputs=tuple(outputs))

    def _labels(self, node: TemplateStep) -> Labels:
        found = (self._runs[key] for key in node.needs)
        return join(*(run.labels for run in found if run is not None))

    def _opened(self, content: ContentStore, wanted: Wanted, text: str, team: Mapping[str, Agent]) -> str | None:
        """Open the run of a step's next attempt; why that is not to be, where it is not."""
        work, pipeline, node = self._work, self._pipeline, wanted.step
        space = work.spaces.find(pipeline.space_id)
        if space is None or space.removed_at is not None:
            return "the space was removed"
        agent = team[node.role]
        source = None if pipeline.source_run_id is None else work.runs.find(pipeline.source_run_id)
        labels = self._labels(node)
        carried = labels if source is None else join(labels, source.labels)
        if crossing(carried, agent.ref.scope) is not None:
            # Which label it is may not be for everybody to know who reads of the pipeline.
            return f"the barrier keeps what the step builds on from {agent.ref.scope}"
        new = NewWork(
            agent=agent,
            opened_by=OpenedBy.PIPELINE,
            on_behalf_of=work.people.by_id(pipeline.on_behalf_of_id),
            source=source,
            workplace=Workplace(workspace_id=space.workspace_id, space_id=space.id, mode=_MODE_OF[node.kind]),
            text=text,
            labels=labels,
        )
        try:
            run = open_work(work, content, new)
        except Refused as refusal:
            return str(refusal)[:MOST_REASON_CHARACTERS]
        if node.output_schema is not None:
            work.contracts.declare(run.id, node.output_schema, ContractMode.STRICT)
        work.pipelines.opened(pipeline.id, node.key, run.id)
        self._steps[node.key] = replace(self._steps[node.key], state=StepState.RUNNING, run_id=run.id)
        return None

    def _end(self, state: PipelineState) -> Pipeline:
        failed = [step for step in self._template.steps if self._steps[step.key].state is StepState.FAILED]
        reason = "; ".join(f"the step {step.key} failed: {self._steps[step.key].reason}" for step in failed) or None
        told = f"Pipeline {self._pipeline.id} {state.value}" + (f": {reason}" if reason else ".")
        at, space = now_ms(), self._work.spaces.find(self._pipeline.space_id)
        if space is not None:
            author = Author(person_id=self._pipeline.on_behalf_of_id)
            self._work.spaces.say(space, MessageKind.NOTICE, author, told, at)
        return self._work.pipelines.end(self._pipeline, state, reason, at)
