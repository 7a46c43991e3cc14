"""Reading proposals and pipelines. Each name and id in them is asked about again (O-5, W-12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.budgets import Budget, pipeline_holder
from agentplat.domain.errors import NotFound
from agentplat.domain.pipeline_templates import TemplateStep, read_template
from agentplat.domain.pipelines import Pipeline, PipelineStep
from agentplat.domain.proposals import KeptProposal, ProposalRevision
from agentplat.domain.runs import RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Author
from agentplat.store.port import Store, Work
from agentplat.usecases.workrooms import readable_pipeline, readable_proposal, readable_room


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProposal:
    """A proposal as its reader may see it. body: JSON values of the revision asked for. person, run_id: who wrote that one, None
    where the reader may not read them. pipeline_id: what it became.
    """

    kept: KeptProposal
    revision: ProposalRevision
    body: Mapping[str, Any]
    person: Ref | None
    run_id: int | None
    decided_by: Ref | None
    pipeline_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """A step of a pipeline. agent: who does it. runs: of its attempts, as far as readable. run_state: of the last one."""

    node: TemplateStep
    step: PipelineStep
    agent: Ref | None
    runs: tuple[int, ...]
    run_state: RunState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPipeline:
    """A pipeline as its reader may see it. project: its name. steps: empty in lists. budgets: what its steps took together."""

    pipeline: Pipeline
    project: str
    on_behalf_of: Ref | None
    source_run_id: int | None
    steps: tuple[ShownStep, ...] = ()
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOrchestration:
    """Reads both."""

    store: Store

    def proposals(self, access: Access, space_id: int | None, before: int | None, size: int) -> list[KeptProposal]:
        """Proposals with ids under `before`, newest first; of one space where that is given. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            if space_id is not None:
                readable_room(work, access, space_id)
            return work.proposals.page(access.scopes, space_id, before, size)

    def proposal(self, access: Access, proposal_id: int, number: int | None = None) -> ShownProposal:
        """One revision, the newest where none is asked for. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            kept, _ = readable_proposal(work, access, proposal_id)
            revision = work.proposals.revision(proposal_id, kept.revision if number is None else number)
            if revision is None:
                raise NotFound
            pipeline = work.pipelines.of_proposal(proposal_id)
            person, run_id = _author(work, access, revision.author)
        return ShownProposal(
            kept=kept,
            revision=revision,
            body=json.loads(revision.body),
            person=person,
            run_id=run_id,
            decided_by=access.visible(kept.decided_by),
            pipeline_id=None if pipeline is None else pipeline.id,
        )

    def pipelines(self, access: Access, space_id: int | None, before: int | None, size: int) -> list[ShownPipeline]:
        """Pipelines with ids under `before`, newest first; of one space where that is given. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            if space_id is not None:
                readable_room(work, access, space_id)
            return [_shown(work, access, found) for found in work.pipelines.page(access.scopes, space_id, before, size)]

    def pipeline(self, access: Access, pipeline_id: int) -> ShownPipeline:
        """A pipeline with its steps. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            pipeline, _ = readable_pipeline(work, access, pipeline_id)
            steps = _steps(work, access, pipeline_id)
            budgets = tuple(work.budgets.of([pipeline_holder(pipeline_id)]))
            return _shown(work, access, pipeline, steps, budgets)


def _author(work: Work, access: Access, author: Author) -> tuple[Ref | None, int | None]:
    if author.person_id is not None:
        return access.visible(work.people.by_id(author.person_id).ref), None
    return None, _run(work, access, author.run_id)


def _run(work: Work, access: Access, run_id: int | None) -> int | None:
    return run_id if run_id is not None and work.runs.readable_among([run_id], access.scopes) else None


def _shown(
    work: Work,
    access: Access,
    pipeline: Pipeline,
    steps: tuple[ShownStep, ...] = (),
    budgets: tuple[Budget, ...] = (),
) -> ShownPipeline:
    return ShownPipeline(
        pipeline=pipeline,
        project=work.pipelines.project_name(pipeline.id),
        on_behalf_of=access.visible(work.people.by_id(pipeline.on_behalf_of_id).ref),
        source_run_id=_run(work, access, pipeline.source_run_id),
        steps=steps,
        budgets=budgets,
    )


def _steps(work: Work, access: Access, pipeline_id: int) -> tuple[ShownStep, ...]:
    template = read_template(work.pipelines.template(pipeline_id))
    team, steps, attempts = work.pipelines.team(pipeline_id), work.pipelines.steps(pipeline_id), work.pipelines.runs(pipeline_id)
    readable = work.runs.readable_among([run_id for _, _, run_id in attempts], access.scopes)
    found = []
    for node in template.steps:
        step = steps[node.key]
        run = None if step.run_id not in readable or step.run_id is None else work.runs.find(step.run_id)
        found.append(
            ShownStep(
                node=node,
                step=step,
                agent=access.visible(team[node.role].ref),
                runs=tuple(run_id for key, _, run_id in attempts if key == node.key and run_id in readable),
                run_state=None if run is None else run.state,
            )
        )
    return tuple(found)
