"""What goes over the wire about proposals and pipelines."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from agentplat.api.governing_models import BudgetOut
from agentplat.api.models import PublicationOut, Wire
from agentplat.domain.languages import Language
from agentplat.domain.proposals import KeptProposal
from agentplat.domain.times import iso
from agentplat.usecases.decide_proposal import Approved, Seen
from agentplat.usecases.propose import Proposed
from agentplat.usecases.read_orchestration import ShownPipeline, ShownProposal, ShownStep


class ProposeIn(Wire):
    """A proposal; every fault of it is told at once."""

    proposal: dict[str, Any]


class SeenIn(Wire):
    """What the decider saw: the number of a revision and its digest."""

    revision: int = Field(ge=1, le=2**31 - 1)
    digest: str = Field(min_length=64, max_length=64)

    @property
    def seen(self) -> Seen:
        """The two as a value."""
        return Seen(revision=self.revision, digest=self.digest)


class DeclineIn(SeenIn):
    """reason: why; it is recorded and told in the space."""

    reason: str = Field(max_length=10_000)


class CancelPipelineIn(Wire):
    """reason: why; it is recorded and told in the space."""

    reason: str = Field(max_length=10_000)


class ProposedOut(Wire):
    """A proposal that was stored just now. revision, digest: what to name when deciding."""

    proposal: int
    space: int
    revision: int
    digest: str

    @classmethod
    def of(cls, proposed: Proposed) -> Self:
        """The proposal on the wire."""
        kept = proposed.kept
        return cls(proposal=kept.id, space=kept.space_id, revision=kept.revision, digest=proposed.digest)


class ProposalOut(Wire):
    """How a proposal stands. revision: the newest; approved_revision: the one that was approved, null where none was."""

    proposal: int
    space: int
    state: str
    revision: int
    approved_revision: int | None
    created_at: str
    decided_at: str | None
    reason: str | None

    @classmethod
    def of(cls, kept: KeptProposal) -> Self:
        """The proposal on the wire."""
        return cls(
            proposal=kept.id,
            space=kept.space_id,
            state=kept.state.value,
            revision=kept.revision,
            approved_revision=kept.approved_revision,
            created_at=iso(kept.created_at),
            decided_at=None if kept.decided_at is None else iso(kept.decided_at),
            reason=kept.reason,
        )


class ProposalsOut(Wire):
    """A page of proposals, newest first. next: what to give as `before` for the next page, null on the last."""

    proposals: list[ProposalOut]
    next: int | None


class ProposalDetailsOut(ProposalOut):
    """A proposal with one of its revisions. person, run: who wrote that, null where it was the other or the reader may not read it.

    shown_revision, digest: which one is shown. pipeline: what it became, null where it was not approved.
    """

    shown_revision: int
    digest: str
    body: dict[str, Any]
    written_at: str
    person: str | None
    run: int | None
    decided_by: str | None
    pipeline: int | None

    @classmethod
    def shown(cls, shown: ShownProposal) -> Self:
        """The proposal on the wire."""
        return cls(
            shown_revision=shown.revision.number,
            digest=shown.revision.digest,
            body=dict(shown.body),
            written_at=iso(shown.revision.at),
            person=None if shown.person is None else shown.person.text,
            run=shown.run_id,
            decided_by=None if shown.decided_by is None else shown.decided_by.text,
            pipeline=shown.pipeline_id,
            **ProposalOut.of(shown.kept).model_dump(),
        )


class ApprovedOut(Wire):
    """What an approval made. hires: the first versions of hired agents with their reports."""

    proposal: int
    project: int
    pipeline: int
    hires: list[PublicationOut]

    @classmethod
    def of(cls, approved: Approved, language: Language) -> Self:
        """The approval on the wire."""
        pipeline = approved.pipeline
        hires = [PublicationOut.made(hire, language) for hire in approved.hires]
        return cls(proposal=pipeline.proposal_id, project=pipeline.project_id, pipeline=pipeline.id, hires=hires)


class PipelineOut(Wire):
    """How a pipeline stands. source_run: the run that proposed it, null where people did or the reader may not read it."""

    pipeline: int
    proposal: int
    project: int
    name: str
    space: int
    state: str
    on_behalf_of: str | None
    source_run: int | None
    opened_at: str
    finished_at: str | None
    reason: str | None

    @classmethod
    def of(cls, shown: ShownPipeline) -> Self:
        """The pipeline on the wire."""
        pipeline = shown.pipeline
        return cls(
            pipeline=pipeline.id,
            proposal=pipeline.proposal_id,
            project=pipeline.project_id,
            name=shown.project,
            space=pipeline.space_id,
            state=pipeline.state.value,
            on_behalf_of=None if shown.on_behalf_of is None else shown.on_behalf_of.text,
            source_run=shown.source_run_id,
            opened_at=iso(pipeline.opened_at),
            finished_at=None if pipeline.finished_at is None else iso(pipeline.finished_at),
            reason=pipeline.reason,
        )


class PipelinesOut(Wire):
    """A page of pipelines, newest first. next: what to give as `before` for the next page, null on the last."""

    pipelines: list[PipelineOut]
    next: int | None


class PipelineStepOut(Wire):
    """A step. needs: the steps before it. attempts: how many runs it had, of `most_attempts`; runs: those that the reader may read.

    run_state: how the last of them stands. agent: null where the reader may not read it.
    """

    key: str
    kind: str
    title: str
    role: str
    agent: str | None
    needs: list[str]
    state: str
    attempts: int
    most_attempts: int
    runs: list[int]
    run_state: str | None
    reason: str | None

    @classmethod
    def of(cls, shown: ShownStep) -> Self:
        """The step on the wire."""
        node, step = shown.node, shown.step
        return cls(
            key=node.key,
            kind=node.kind.value,
            title=node.title,
            role=node.role,
            agent=None if shown.agent is None else shown.agent.text,
            needs=list(node.needs),
            state=step.state.value,
            attempts=step.attempts,
            most_attempts=node.attempts,
            runs=list(shown.runs),
            run_state=None if shown.run_state is None else shown.run_state.value,
            reason=step.reason,
        )


class PipelineDetailsOut(PipelineOut):
    """A pipeline with its steps, each behind all that it needs, and what they may take and took together."""

    steps: list[PipelineStepOut]
    budgets: list[BudgetOut]

    @classmethod
    def shown(cls, shown: ShownPipeline) -> Self:
        """The pipeline on the wire."""
        return cls(
            steps=[PipelineStepOut.of(step) for step in shown.steps],
            budgets=[BudgetOut.shown(budget) for budget in shown.budgets],
            **PipelineOut.of(shown).model_dump(),
        )
