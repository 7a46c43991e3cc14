"""Proposing an orchestration, and wording a proposal anew: by a run through its tool, or by a person (D-15)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.errors import Conflict, InvalidInput, NotFound, Unauthenticated, Violation
from agentplat.domain.pipelines import ProposalState
from agentplat.domain.proposal_reading import WHOLE, look_through
from agentplat.domain.proposals import KeptProposal, Proposal
from agentplat.domain.registry import Content
from agentplat.domain.scopes import contains
from agentplat.domain.tickets import Author, MessageKind
from agentplat.domain.times import now_ms
from agentplat.loop_check import read_manifests
from agentplat.store.port import Store, Work
from agentplat.usecases.names import check_ref
from agentplat.usecases.workrooms import Room, readable_proposal, readable_room

MOST_TOLD_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A proposal as it was stored just now. digest: of its newest revision."""

    kept: KeptProposal
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """For people."""

    store: Store

    def __call__(self, access: Access, space_id: int, given: Any) -> Proposed:
        """Store a proposal of a person.

        Raises NotFound, AccessDenied, InvalidInput, Conflict, Unauthenticated, StoreUnavailable.
        """
        author = _person(access)
        with self.store.writing() as work:
            room = readable_room(work, access, space_id)
            access.demand_publishing(room.workspace.scope)
            return propose(work, room, author, given)

    def revise(self, access: Access, proposal_id: int, given: Any) -> Proposed:
        """Store the next revision of a proposal. Raises what proposing raises, Conflict where it is decided."""
        author = _person(access)
        with self.store.writing() as work:
            _, room = readable_proposal(work, access, proposal_id)
            access.demand_publishing(room.workspace.scope)
            return propose(work, room, author, given, proposal_id)


def _person(access: Access) -> Author:
    if access.person is None:
        raise Unauthenticated
    return Author(person_id=access.person.id)


def propose(work: Work, room: Room, author: Author, given: Any, revises: int | None = None) -> Proposed:
    """Store a proposal in a space within a transaction, and tell the space. revises: the proposal of the space to word anew.

    Raises InvalidInput with every fault, NotFound where the space has no such proposal, Conflict where it is decided or the space
    was removed.
    """
    proposal = checked(work, room, given)
    if room.space.removed_at is not None:
        raise Conflict("this space was removed; propose in another one")
    at = now_ms()
    if revises is None:
        kept = work.proposals.add(room.space.id, proposal, author, at)
    else:
        kept = work.proposals.revise(_undecided(work, room, revises), proposal, author, at)
    told = f"Proposal {kept.id}, revision {kept.revision}: {proposal.goal[:MOST_TOLD_CHARACTERS]}\ndigest: {proposal.digest}"
    work.spaces.say(room.space, MessageKind.PROPOSAL, author, told, at)
    return Proposed(kept=kept, digest=proposal.digest)


def _undecided(work: Work, room: Room, proposal_id: int) -> KeptProposal:
    held = work.proposals.hold(proposal_id)
    if held is None or held.space_id != room.space.id:
        raise NotFound
    if held.state is not ProposalState.PROPOSED:
        raise Conflict(f"proposal {held.id} is {held.state.value} and can not be revised any more; make a new one")
    return held


def checked(work: Work, room: Room, given: Any) -> Proposal:
    """A proposal whose agents are those of the workspace. Raises InvalidInput with every fault."""
    proposal, faults = look_through(given)
    if not any(fault.field == WHOLE for fault in faults):
        faults.extend(_faults_of_roles(work, room, proposal))
    if faults:
        raise InvalidInput(faults)
    return proposal


def _faults_of_roles(work: Work, room: Room, proposal: Proposal) -> Iterator[Violation]:
    hired: list[str] = []
    for i, role in enumerate(proposal.roles):
        where = f"roles[{i}]"
        try:
            if role.agent is not None:
                yield from _faults_of_agent(work, room, role.agent, f"{where}.agent")
                continue
            content = manifest_of(role.hire, f"{where}.hire")
        except InvalidInput as error:
            yield from error.violations
            continue
        yield from _faults_of_hire(work, room, content, f"{where}.hire", hired)
        hired.append(content.agent.text)


def _faults_of_agent(work: Work, room: Room, text: str, where: str) -> Iterator[Violation]:
    ref = check_ref(text, where)
    scope = room.workspace.scope
    # Whether an agent of another scope is there is not for those who may propose here to know.
    if not contains(scope, ref.scope) or work.registry.find(ref) is None:
        yield Violation(field=where, reason="is no agent of this workspace", remedy=f"name an agent of {scope}, or one to hire")


def _faults_of_hire(work: Work, room: Room, content: Content, where: str, hired: list[str]) -> Iterator[Violation]:
    scope = room.workspace.scope
    if not contains(scope, content.agent.scope):
        yield Violation(field=where, reason="is not of this workspace's scope", remedy=f"hire an agent of {scope}")
    elif work.registry.find(content.agent) is not None:
        remedy = "name it as the agent of the role, or hire one of another name"
        yield Violation(field=where, reason=f"{content.agent} is there already", remedy=remedy)
    if content.agent.text in hired:
        yield Violation(field=where, reason=f"{content.agent} is hired twice", remedy="hire each agent for one role")


def manifest_of(manifest: Any, where: str) -> Content:
    """What a manifest inside a proposal says. Raises InvalidInput with every fault."""
    # JSON is YAML, so that a manifest is read by its one reader.
    contents = read_manifests(json.dumps(manifest), where)
    [content] = contents
    return content
