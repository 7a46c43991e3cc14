"""What the store promises about proposals and their pipelines: the part of `store.port` that is about orchestration.

Nothing here knows who may read what: whoever asks checks that before, by the scope of the workspace (W-12).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from agentplat.domain.access import Person
from agentplat.domain.pipeline_templates import NewPipeline
from agentplat.domain.pipelines import Pipeline, PipelineState, PipelineStep, StepState
from agentplat.domain.proposals import KeptProposal, Proposal, ProposalRevision
from agentplat.domain.registry import Agent
from agentplat.domain.tickets import Author


class Proposals(Protocol):
    """Proposals and their revisions. A decided one never changes."""

    def add(self, space_id: int, proposal: Proposal, author: Author, at: int) -> KeptProposal:
        """Store a proposal as its first revision."""

    def find(self, proposal_id: int) -> KeptProposal | None:
        """The proposal."""

    def hold(self, proposal_id: int) -> KeptProposal | None:
        """The proposal, held against every other writer who holds it until the transaction ends."""

    def revise(self, held: KeptProposal, proposal: Proposal, author: Author, at: int) -> KeptProposal:
        """Store the next revision of a held proposal that nobody decided."""

    def revision(self, proposal_id: int, number: int) -> ProposalRevision | None:
        """One revision."""

    def revisions(self, proposal_id: int) -> list[ProposalRevision]:
        """All revisions, oldest first."""

    def approve(self, held: KeptProposal, by: Person, at: int) -> None:
        """Note that a person approved the newest revision of a held proposal."""

    def decline(self, held: KeptProposal, by: Person, reason: str, at: int) -> None:
        """Note that a person declined a held proposal."""

    def page(self, scopes: Collection[str], space_id: int | None, before: int | None, size: int) -> list[KeptProposal]:
        """Proposals in workspaces of these scopes and below, of one space where that is given, with an id under `before`, newest
        first.
        """

    def undecided(self, scopes: Collection[str], workspace_id: int | None, size: int) -> list[KeptProposal]:
        """Proposals that nobody decided, in spaces that are there, of workspaces of these scopes and below, newest first; of one
        workspace where that is given.
        """


class Pipelines(Protocol):
    """Pipelines, their steps and the runs of those."""

    def start(self, new: NewPipeline, at: int) -> Pipeline:
        """Store the project, its team, the template, and the pipeline with all its steps waiting."""

    def find(self, pipeline_id: int) -> Pipeline | None:
        """The pipeline."""

    def of_proposal(self, proposal_id: int) -> Pipeline | None:
        """The pipeline that an approved proposal became."""

    def hold(self, pipeline_id: int) -> Pipeline | None:
        """The pipeline, held against every other writer who holds it until the transaction ends."""

    def take(self, pipeline_id: int) -> Pipeline | None:
        """As `hold`, a running one that nobody else holds; None for any other."""

    def due(self, after: int, size: int) -> list[int]:
        """Running pipelines with an id behind `after` in which something is to be done: a running step's last run has ended, or no
        step runs.
        """

    def template(self, pipeline_id: int) -> str:
        """What it runs, as the text that was kept."""

    def team(self, pipeline_id: int) -> dict[str, Agent]:
        """The agents of its project by role."""

    def project_name(self, pipeline_id: int) -> str:
        """What its project is called."""

    def steps(self, pipeline_id: int) -> dict[str, PipelineStep]:
        """The steps by key."""

    def runs(self, pipeline_id: int) -> list[tuple[str, int, int]]:
        """The runs of all attempts: key, attempt and run, in the order of the runs."""

    def opened(self, pipeline_id: int, key: str, run_id: int) -> None:
        """Note the run of a step's next attempt, which runs from then on. An attempt never has two runs (D-16)."""

    def move(self, pipeline_id: int, key: str, state: StepState, reason: str | None = None) -> None:
        """Set where a step stands."""

    def end(self, held: Pipeline, state: PipelineState, reason: str | None, at: int) -> Pipeline:
        """End a held pipeline that is running."""

    def page(self, scopes: Collection[str], space_id: int | None, before: int | None, size: int) -> Sequence[Pipeline]:
        """Pipelines in workspaces of these scopes and below, of one space where that is given, with an id under `before`, newest
        first.
        """

    def of_runs(self, run_ids: Collection[int]) -> dict[int, int]:
        """The pipelines that these runs are attempts of, by run; those that are none are left out."""
