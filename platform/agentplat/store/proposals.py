"""Proposals and their revisions in SQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.pipelines import ProposalState
from agentplat.domain.proposals import KeptProposal, Proposal, ProposalRevision
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Author
from agentplat.store import work_schema as schema
from agentplat.store.pipeline_port import Proposals
from agentplat.store.registry import below
from agentplat.store.schema import people


def _kept(row: Row[Any]) -> KeptProposal:
    return KeptProposal(
        id=row.id,
        space_id=row.space_id,
        state=ProposalState(row.state),
        revision=row.revision,
        approved_revision=row.approved_revision,
        decided_at=row.decided_at,
        decided_by=None if row.decided_by_id is None else Ref(row.scope, row.name),
        reason=row.reason,
        created_at=row.created_at,
    )


def _revision(row: Row[Any]) -> ProposalRevision:
    return ProposalRevision(
        proposal_id=row.proposal_id,
        number=row.revision,
        body=row.body,
        digest=row.digest,
        author=Author(person_id=row.person_id, run_id=row.run_id),
        at=row.at,
    )


def in_scopes(space_id: sa.Column[int], scopes: Collection[str]) -> sa.ColumnElement[bool]:
    """Whether the space of a row is in a workspace of these scopes or below."""
    spaces, workspaces = schema.spaces, schema.workspaces
    joined = spaces.join(workspaces, workspaces.c.id == spaces.c.workspace_id)
    return space_id.in_(sa.select(spaces.c.id).select_from(joined).where(below(workspaces.c.scope, scopes)))


class SqlProposals(Proposals):
    """Proposals in SQL; `store.pipeline_port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _select(self) -> sa.Select[Any]:
        proposals = schema.proposals
        joined = proposals.outerjoin(people, people.c.id == proposals.c.decided_by_id)
        return sa.select(*proposals.c, people.c.scope, people.c.name).select_from(joined)

    def _now(self, proposal_id: int) -> KeptProposal:
        found = self.find(proposal_id)
        assert found is not None  # proposals are never deleted
        return found

    @override
    def add(self, space_id: int, proposal: Proposal, author: Author, at: int) -> KeptProposal:
        proposals = schema.proposals
        added = proposals.insert().values(space_id=space_id, created_at=at).returning(proposals.c.id)
        proposal_id: int = self._connection.execute(added).scalar_one()
        self._add_revision(proposal_id, 1, proposal, author, at)
        return self._now(proposal_id)

    def _add_revision(self, proposal_id: int, number: int, proposal: Proposal, author: Author, at: int) -> None:
        values = {
            "body": proposal.text,
            "digest": proposal.digest,
            "run_id": author.run_id,
            "person_id": author.person_id,
            "at": at,
        }
        self._connection.execute(schema.proposal_revisions.insert().values(proposal_id=proposal_id, revision=number, **values))

    @override
    def find(self, proposal_id: int) -> KeptProposal | None:
        row = self._connection.execute(self._select().where(schema.proposals.c.id == proposal_id)).one_or_none()
        return None if row is None else _kept(row)

    @override
    def hold(self, proposal_id: int) -> KeptProposal | None:
        proposals = schema.proposals.c
        self._connection.execute(sa.select(proposals.id).where(proposals.id == proposal_id).with_for_update())
        # Only now: what its last holder wrote is visible only to a later statement.
        return self.find(proposal_id)

    @override
    def revise(self, held: KeptProposal, proposal: Proposal, author: Author, at: int) -> KeptProposal:
        proposals, number = schema.proposals, held.revision + 1
        self._add_revision(held.id, number, proposal, author, at)
        self._connection.execute(proposals.update().where(proposals.c.id == held.id).values(revision=number))
        return self._now(held.id)

    def _revisions(self, wanted: sa.ColumnElement[bool]) -> list[ProposalRevision]:
        revisions = schema.proposal_revisions
        return [
            _revision(row) for row in self._connection.execute(sa.select(revisions).where(wanted).order_by(revisions.c.revision))
        ]

    @override
    def revision(self, proposal_id: int, number: int) -> ProposalRevision | None:
        revisions = schema.proposal_revisions.c
        found = self._revisions(sa.and_(revisions.proposal_id == proposal_id, revisions.revision == number))
        return found[0] if found else None

    @override
    def revisions(self, proposal_id: int) -> list[ProposalRevision]:
        return self._revisions(schema.proposal_revisions.c.proposal_id == proposal_id)

    def _decide(self, held: KeptProposal, state: ProposalState, by: Person, at: int, **values: Any) -> None:
        proposals = schema.proposals
        decided = {"state": state.value, "decided_at": at, "decided_by_id": by.id, **values}
        self._connection.execute(proposals.update().where(proposals.c.id == held.id).values(decided))

    @override
    def approve(self, held: KeptProposal, by: Person, at: int) -> None:
        self._decide(held, ProposalState.APPROVED, by, at, approved_revision=held.revision)

    @override
    def decline(self, held: KeptProposal, by: Person, reason: str, at: int) -> None:
        self._decide(held, ProposalState.DECLINED, by, at, reason=reason)

    @override
    def page(self, scopes: Collection[str], space_id: int | None, before: int | None, size: int) -> list[KeptProposal]:
        proposals = schema.proposals.c
        wanted = sa.and_(
            in_scopes(proposals.space_id, scopes),
            sa.true() if space_id is None else proposals.space_id == space_id,
            sa.true() if before is None else proposals.id < before,
        )
        return [
            _kept(row) for row in self._connection.execute(self._select().where(wanted).order_by(proposals.id.desc()).limit(size))
        ]

    @override
    def undecided(self, scopes: Collection[str], workspace_id: int | None, size: int) -> list[KeptProposal]:
        proposals, spaces = schema.proposals.c, schema.spaces.c
        there = sa.select(spaces.id).where(
            spaces.removed_at.is_(None), sa.true() if workspace_id is None else spaces.workspace_id == workspace_id
        )
        wanted = sa.and_(schema.UNDECIDED, in_scopes(proposals.space_id, scopes), proposals.space_id.in_(there))
        return [
            _kept(row) for row in self._connection.execute(self._select().where(wanted).order_by(proposals.id.desc()).limit(size))
        ]
