"""Showing people what exactly would run, and taking their answer (A-12, A-14)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access, Role
from agentplat.domain.approvals import Approval
from agentplat.domain.artifacts import Blob
from agentplat.domain.errors import Conflict, NotFound, Unauthenticated
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.scopes import INSTALLATION, Ref, within
from agentplat.domain.steps import ApprovalAsked, ApprovalGiven, Resumed, StepKind
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import readable_run
from agentplat.usecases.texts import check_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownApproval:
    """A question as an approver gets it. order: what exactly would run, None in lists. decided_by: None where not readable."""

    approval: Approval
    run: Run
    order: dict[str, Any] | None
    decided_by: Ref | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideApproval:
    """The questions of runs, and their answers."""

    store: Store
    content: ContentStore

    def page(
        self, access: Access, undecided: bool, before: int | None, size: int, scope: str = INSTALLATION
    ) -> list[ShownApproval]:
        """Questions in the scopes where the caller is an approver, newest first, without their orders. Raises StoreUnavailable.

        scope: only from within this one.
        """
        with self.store.reading() as work:
            found = work.approvals.page(within(access.scopes_with(Role.APPROVER), scope), undecided, before, size)
            # Only approvals of runs that the caller may read are found.
            runs = work.runs.some([approval.run_id for approval in found])
            return [self._shown(work, access, approval, runs[approval.run_id]) for approval in found]

    def one(self, access: Access, approval_id: int) -> ShownApproval:
        """One question, with what exactly would run.

        Raises NotFound where the run is not readable, AccessDenied where the caller is no approver of its scope, ContentDamaged,
        ContentUnavailable, StoreUnavailable.
        """
        with self.store.reading() as work:
            approval, run = self._found(work, access, approval_id)
            blob = _order(work, approval)
            return self._shown(work, access, approval, run, json.loads(self.content.get(blob)))

    def open_for(self, access: Access, run_id: int) -> Approval | None:
        """The question that a run waits for, where the caller may answer it. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            run = readable_run(work, access, run_id)
            if run.waiting_for is not WaitingFor.APPROVAL or not access.may(Role.APPROVER, run.agent.scope):
                return None
            last = work.runs.trail(run_id, kinds=[StepKind.APPROVAL_ASKED])[-1].read()
            return work.approvals.of_call(run_id, last.call) if isinstance(last, ApprovalAsked) else None

    def decide(self, access: Access, approval_id: int, digest: str, granted: bool, reason: str | None = None) -> Run:
        """Answer, and let the run go on. digest: over the order that the approver saw. The run as it is then.

        A block stays a block, whatever is answered: the Gate rules again when the call comes again. Raises Conflict where somebody
        answered before, the run no longer waits for this, or the digest is another one; else what `one` raises, and InvalidInput.
        """
        if access.person is None:
            raise Unauthenticated
        said = None if reason is None else check_reason(reason)
        with self.store.writing() as work:
            approval, run = self._found(work, access, approval_id)
            _demand_open(approval, run, digest)
            # What can not be shown any more was not seen.
            self.content.get(_order(work, approval))
            at = now_ms()
            if not work.approvals.decide(approval, granted, access.person, said, at):
                raise Conflict("somebody has answered already")
            given = ApprovalGiven(call=approval.call, digest=digest, by=access.person.ref.text, granted=granted, reason=said)
            run = work.runs.append(run, [given], at)
            details = {"run": run.id, "call": approval.call, "tool": approval.tool, "digest": digest, "reason": said}
            work.acts.record(at, access.person, "approve" if granted else "refuse", run.agent, details)
            return work.runs.resume(run, Resumed(waited_for=WaitingFor.APPROVAL), at)

    def _found(self, work: Work, access: Access, approval_id: int) -> tuple[Approval, Run]:
        approval = work.approvals.find(approval_id)
        if approval is None:
            raise NotFound
        run = readable_run(work, access, approval.run_id)
        access.demand(Role.APPROVER, run.agent.scope)
        return approval, run

    def _shown(
        self, work: Work, access: Access, approval: Approval, run: Run, order: dict[str, Any] | None = None
    ) -> ShownApproval:
        by = None if approval.decided_by_id is None else work.people.by_id(approval.decided_by_id).ref
        return ShownApproval(approval=approval, run=run, order=order, decided_by=access.visible(by))


def _order(work: Work, approval: Approval) -> Blob:
    """Where the order is kept, as the trail says."""
    for step in work.runs.trail(approval.run_id, kinds=[StepKind.APPROVAL_ASKED]):
        asked = step.read()
        if isinstance(asked, ApprovalAsked) and asked.order is not None and asked.order.digest == approval.digest:
            return asked.order
    raise AssertionError("a question has its step")


def _demand_open(approval: Approval, run: Run, digest: str) -> None:
    """Raises Conflict unless this very question can be answered now."""
    if approval.granted is not None:
        raise Conflict("somebody has answered already")
    if run.state is not RunState.WAITING or run.waiting_for is not WaitingFor.APPROVAL:
        raise Conflict("the run does not wait for this any more")
    if digest != approval.digest:
        raise Conflict("what you saw is not what would run; look at it again, then decide")
