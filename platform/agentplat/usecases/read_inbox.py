"""What waits for a person beside approvals: proposals, runs at a ceiling, and warnings that came late (U-7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentplat.domain.access import PUBLISHING, Access, Role
from agentplat.domain.budgets import Budget, Holder, HolderKind
from agentplat.domain.insights import LoggedRun
from agentplat.domain.languages import Language
from agentplat.domain.proposals import KeptProposal
from agentplat.domain.registry import KeptReport
from agentplat.domain.scopes import outermost, within
from agentplat.domain.shown import ShownReport, kept
from agentplat.domain.spaces import Space
from agentplat.domain.steps import Waiting
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Store, Work
from agentplat.usecases.charging import all_charged_to
from agentplat.usecases.read_report import paused_agents
from agentplat.usecases.tell import body_warning
from agentplat.usecases.workrooms import room_of

MOST = 50
"""Entries of one kind, and runs at a ceiling that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProposal:
    """A proposal that its reader may decide about. goal, digest: of its newest revision."""

    kept: KeptProposal
    space: Space
    goal: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedRun:
    """A run that waits for a budget whose ceiling its reader may set."""

    logged: LoggedRun
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """What waits: proposals newest first, runs from the one that waits longest, reports newest first.

    cut: whether there may be more than is shown.
    """

    proposals: tuple[OpenProposal, ...]
    stopped: tuple[StoppedRun, ...]
    late: tuple[ShownReport, ...]
    cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInbox:
    """Reads what waits for one person."""

    store: Store

    def __call__(self, access: Access, workspace: Workspace | None = None) -> Inbox:
        """What waits; of one readable workspace and its agents where that is given. Raises StoreUnavailable."""
        deciding = _narrow(tuple(scope for role in PUBLISHING for scope in access.scopes_with(role)), workspace)
        with self.store.reading() as work:
            proposals = work.proposals.undecided(deciding, None if workspace is None else workspace.id, MOST)
            stopped = work.insights.stopped(_narrow(_read_by_admin(access), workspace), MOST)
            late = _late(work, access, workspace)
            return Inbox(
                proposals=tuple(_open_proposal(work, one) for one in proposals),
                stopped=tuple(_at_ceilings(work, access, stopped)),
                late=tuple(late),
                cut=MOST in (len(proposals), len(stopped), len(late)),
            )


def _narrow(scopes: tuple[str, ...], workspace: Workspace | None) -> tuple[str, ...]:
    return outermost(scopes) if workspace is None else within(scopes, workspace.scope)


def _read_by_admin(access: Access) -> tuple[str, ...]:
    # Work that was delegated is charged to its delegator too, so that a run elsewhere may wait for a ceiling of one's own.
    return access.scopes if access.scopes_with(Role.ADMIN) else ()


def _open_proposal(work: Work, found: KeptProposal) -> OpenProposal:
    room, revision = room_of(work, found.space_id), work.proposals.revision(found.id, found.revision)
    assert room is not None  # a proposal is made in a space
    assert revision is not None  # and has the revision that it says
    return OpenProposal(kept=found, space=room.space, goal=json.loads(revision.body)["goal"], digest=revision.digest)


def _at_ceilings(work: Work, access: Access, stopped: Sequence[LoggedRun]) -> Iterator[StoppedRun]:
    """The runs with the ceilings that they wait at, without those that their reader may not set."""
    runs = {one.run.id: one.run for one in stopped}
    last, charged = work.runs.last_steps(runs), all_charged_to(work, runs.values())
    of_holder: dict[Holder, list[Budget]] = {}
    for budget in work.budgets.of(list(dict.fromkeys(holder for found in charged.values() for holder in found))):
        of_holder.setdefault(budget.holder, []).append(budget)
    for one in stopped:
        waiting, budgets = last[one.run.id].read(), [b for holder in charged[one.run.id] for b in of_holder.get(holder, ())]
        found = next((b for b in budgets if isinstance(waiting, Waiting) and b.words == waiting.ceiling), None)
        if found is not None and access.may(Role.ADMIN, _place_of(work, found, one)):
            yield StoppedRun(logged=one, budget=found)


def _place_of(work: Work, budget: Budget, logged: LoggedRun) -> str:
    """The scope whose admins set a ceiling."""
    if budget.holder.kind is HolderKind.SCOPE:
        return budget.holder.key
    pipeline = work.pipelines.find(int(budget.holder.key)) if budget.holder.kind is HolderKind.PIPELINE else None
    room = None if pipeline is None else room_of(work, pipeline.space_id)
    return logged.run.agent.scope if room is None else room.workspace.scope


def _late(work: Work, access: Access, workspace: Workspace | None) -> list[ShownReport]:
    """Published versions of the person's own that were verified late and warn of something.

    Whoever may no longer read all that a report was made for is not told of it here: only the page of the version makes it anew.
    """
    if access.person is None:
        return []
    late = work.registry.late(access.person, _narrow(access.scopes, workspace), MOST)
    warned = [(agent, number, report) for agent, number, report in late if access.covers(report.scopes) and _warns(report)]
    heads = work.outbox.unsettled([agent.id for agent, _, _ in warned])
    shown = [
        kept(agent.ref, number, report, work.outbox.publication(agent.id, number), heads.get(agent.id))
        for agent, number, report in warned
    ]
    return [one if one.body is None else replace(one, paused=paused_agents(work, one.body)) for one in shown]


def _warns(report: KeptReport) -> bool:
    return report.body is not None and bool(body_warning(report.body, Language.EN))
