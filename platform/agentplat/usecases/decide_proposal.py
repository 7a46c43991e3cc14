"""A person's decision about a proposal. Approving makes all that the proposal asks for, in one transaction (D-14, D-15)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agentplat.domain.access import Access, Person
from agentplat.domain.budgets import pipeline_holder
from agentplat.domain.errors import Conflict, Unauthenticated, phrase
from agentplat.domain.pipeline_templates import NewPipeline, template_of
from agentplat.domain.pipelines import Pipeline, ProposalState
from agentplat.domain.proposal_reading import read_proposal
from agentplat.domain.proposals import KeptProposal, Proposal, newest_run, project_name
from agentplat.domain.registry import Agent, Content
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.names import check_ref
from agentplat.usecases.propose import manifest_of
from agentplat.usecases.publish_version import Publication, PublishVersion, Stored, new_owner
from agentplat.usecases.texts import check_reason
from agentplat.usecases.workrooms import Room, readable_proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the decider saw: the number and the digest of a revision."""

    revision: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """What an approval made. hires: the first versions of the agents that were hired, with what the graph service says of them."""

    pipeline: Pipeline
    hires: tuple[Publication, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Team:
    """agents: by role. hires: what was read of their manifests; stored: the versions."""

    agents: dict[str, Agent]
    hires: list[Content]
    stored: Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideProposal:
    """Approves and declines."""

    store: Store
    publish: PublishVersion

    def approve(self, access: Access, proposal_id: int, seen: Seen) -> Approved:
        """Hire, make the project, its team and its pipeline, and let that run; all of it or nothing.

        The versions of hired agents are published as any others: stored with an entry of the outbox in this transaction, then told
        to the graph service. Raises NotFound, AccessDenied where the caller may not publish in the workspace's scope, Conflict for
        a stale revision, a decided proposal, or agents that can not work any more, Unauthenticated, StoreUnavailable.
        """
        person, owner = _person(access), new_owner()
        with self.store.writing() as work:
            held, room = _held(work, access, proposal_id)
            proposal = _proposal(work, held, seen)
            team = self._team(work, access, person, proposal, owner)
            pipeline = _started(work, held, room, proposal, team.agents, person)
        hires = self.publish.told(access, team.hires, team.stored, owner)
        return Approved(pipeline=pipeline, hires=tuple(hires))

    def decline(self, access: Access, proposal_id: int, seen: Seen, reason: str) -> KeptProposal:
        """Decline; nothing is made of it any more. Raises what approving raises, and InvalidInput."""
        person = _person(access)
        with self.store.writing() as work:
            held, room = _held(work, access, proposal_id)
            said = check_reason(reason)
            _proposal(work, held, seen)
            at = now_ms()
            work.proposals.decline(held, person, said, at)
            details = {"proposal": held.id, "revision": held.revision, "reason": said}
            work.acts.record(at, person, "decline proposal", Ref(room.workspace.scope, "*"), details)
            told = f"Proposal {held.id}, revision {held.revision}, was declined: {said}"
            work.spaces.say(room.space, MessageKind.NOTICE, Author(person_id=person.id), told, at)
            return work.proposals.find(held.id) or held

    def _team(self, work: Work, access: Access, person: Person, proposal: Proposal, owner: str) -> _Team:
        """The agents by role, the hired ones published. Raises AccessDenied, Conflict."""
        hires = {role.name: manifest_of(role.hire, role.name) for role in proposal.roles if role.hire is not None}
        for content in sorted(hires.values(), key=lambda found: found.agent.text):
            access.demand_publishing(content.agent.scope)
            if work.registry.last_number(work.registry.hold(content.agent)):
                said = "%(agent)s is there by now and can not be hired; revise the proposal to name it"
                raise Conflict(phrase(said, agent=content.agent))
        stored = self.publish.store_all(work, person, list(hires.values()), owner)
        agents = {}
        for role in proposal.roles:
            ref = hires[role.name].agent if role.name in hires else check_ref(str(role.agent), role.name)
            agents[role.name] = _able(work, role.name, ref)
        return _Team(agents=agents, hires=list(hires.values()), stored=stored)


def _able(work: Work, role: str, ref: Ref) -> Agent:
    """An agent of a role that can be started as things are. Raises Conflict."""
    agent = work.registry.find(ref)
    if agent is None or agent.current is None:
        said = "the role %(role)s can not be filled: %(agent)s has no published version; publish one, or revise the proposal"
        raise Conflict(phrase(said, role=role, agent=ref))
    if agent.paused:
        said = "the role %(role)s can not be filled: %(agent)s is paused; resume it, or revise the proposal"
        raise Conflict(phrase(said, role=role, agent=ref))
    return agent


def _person(access: Access) -> Person:
    if access.person is None:
        raise Unauthenticated
    return access.person


def _held(work: Work, access: Access, proposal_id: int) -> tuple[KeptProposal, Room]:
    """An undecided proposal that the caller may decide about, held. Raises NotFound, AccessDenied, Conflict."""
    _, room = readable_proposal(work, access, proposal_id)
    access.demand_publishing(room.workspace.scope)
    held = work.proposals.hold(proposal_id)
    assert held is not None  # proposals are never deleted
    if held.state is not ProposalState.PROPOSED:
        raise Conflict(phrase("proposal %(id)s is %(state)s already", id=held.id, state=phrase(held.state.value)))
    if room.space.removed_at is not None:
        raise Conflict("the space of this proposal was removed; propose anew in another one")
    return held, room


def _proposal(work: Work, held: KeptProposal, seen: Seen) -> Proposal:
    """What the newest revision says, if that is what was seen. Raises Conflict."""
    newest = work.proposals.revision(held.id, held.revision)
    assert newest is not None  # a proposal has the revision that it says
    if seen.revision != newest.number:
        said = "revision %(seen)s of proposal %(id)s is not the newest, which is %(newest)s; look at that, then decide"
        raise Conflict(phrase(said, seen=seen.revision, id=held.id, newest=newest.number))
    if seen.digest != newest.digest:
        said = "revision %(newest)s of proposal %(id)s has another digest than what was seen; look at it again, then decide"
        raise Conflict(phrase(said, newest=newest.number, id=held.id))
    return read_proposal(json.loads(newest.body))


def _started(work: Work, held: KeptProposal, room: Room, proposal: Proposal, team: dict[str, Agent], person: Person) -> Pipeline:
    at = now_ms()
    template = template_of(proposal)
    new = NewPipeline(
        proposal_id=held.id,
        workspace_id=room.workspace.id,
        space_id=room.space.id,
        project=project_name(proposal.goal),
        team=team,
        template=template,
        on_behalf_of=person,
        source_run_id=newest_run(work.proposals.revisions(held.id)),
    )
    work.proposals.approve(held, person, at)
    pipeline = work.pipelines.start(new, at)
    for unit, ceiling in sorted(template.budget.items()):
        work.budgets.set_ceiling(pipeline_holder(pipeline.id), unit, ceiling)
    details = {
        "proposal": held.id,
        "revision": held.revision,
        "pipeline": pipeline.id,
        "budget": dict(proposal.as_json()["budget"]),
    }
    work.acts.record(at, person, "approve proposal", Ref(room.workspace.scope, "*"), details)
    told = f"Proposal {held.id}, revision {held.revision}, was approved; pipeline {pipeline.id} runs."
    work.spaces.say(room.space, MessageKind.NOTICE, Author(person_id=person.id), told, at)
    return pipeline
