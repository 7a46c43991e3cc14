"""Carrying publications from the outbox to the graph service, each once and in the order of its agent (P-6)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

import structlog

from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.errors import GraphRefused, GraphUnavailable
from agentplat.domain.outbox import Backoff, Claim, Entry, EntryKind, EntryState
from agentplat.domain.registry import KeptReport, ReportState
from agentplat.domain.times import now_ms
from agentplat.loop_check import Delivered, LoopCheck
from agentplat.store.port import Store

_LOOK_AGAIN_S = 0.02
"""Pause before looking again at an entry that another deliverer holds."""

log = structlog.get_logger()


class Outcome(Enum):
    """What became of an attempt. DOWN: postponed, and nothing else would be answered either just now."""

    DELIVERED = auto()
    POSTPONED = auto()
    DOWN = auto()
    SET_ASIDE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverOutbox:
    """call_s: seconds that the graph service gets for one call. lease_s: seconds that an entry is held; more than a call takes."""

    store: Store
    graph: LoopCheck
    backoff: Backoff
    call_s: float
    lease_s: float
    chance: Callable[[], float] = field(default=random.random)

    def next_due(self, owner: str) -> Outcome | None:
        """Deliver one due entry of any agent; None when there is none. Raises StoreUnavailable."""
        with self.store.reading() as work:
            if not work.outbox.due():
                return None
        with self.store.writing() as work:
            claim = work.outbox.claim_due(owner, self.lease_s)
        return None if claim is None else self._attempt(claim, self.call_s, ReportState.LATE)

    def until_settled(self, entry: Entry, owner: str, seconds: float) -> None:
        """Deliver an agent's entries up to this one, for at most so many seconds; what is left is for the courier.

        The report of this entry counts as verified at once, those of entries before it as late. Raises StoreUnavailable.
        """
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        while (left := deadline - time.monotonic()) > 0:
            with self.store.writing() as work:
                claim = work.outbox.claim_head(entry.agent_id, owner, self.lease_s)
            if claim is None:
                if self._beyond_waiting(entry):
                    break
                pause.wait(min(_LOOK_AGAIN_S, left))
                continue
            own = claim.entry.id == entry.id
            outcome = self._attempt(claim, min(left, self.call_s), ReportState.VERIFIED if own else ReportState.LATE)
            if own and outcome is Outcome.DELIVERED:
                return
            if outcome is not Outcome.DELIVERED:
                break
        with self.store.writing() as work:
            work.outbox.release(entry.agent_id, owner)

    def hasten(self) -> None:
        """Make every waiting entry due, as the graph service answers again. Raises StoreUnavailable."""
        with self.store.writing() as work:
            work.outbox.hasten()

    def _beyond_waiting(self, entry: Entry) -> bool:
        """Whether the entry is settled, or held back by one that was set aside."""
        with self.store.reading() as work:
            head = work.outbox.unsettled([entry.agent_id]).get(entry.agent_id)
            return head is None or head.position > entry.position or head.state is EntryState.SET_ASIDE

    def _attempt(self, claim: Claim, seconds: float, state: ReportState) -> Outcome:
        try:
            delivered = self._call(claim.entry, seconds)
        except GraphUnavailable as error:
            return self._postpone(claim, error)
        except GraphRefused as error:
            return self._set_aside(claim, error)
        with self.store.writing() as work:
            settled = work.outbox.deliver(claim, delivered.revision)
            if settled and delivered.report is not None:
                kept = KeptReport(state=state, body=delivered.report, scopes=delivered.scopes)
                work.registry.keep_report(claim.entry.agent_id, claim.entry.number, kept)
        log.info("delivered", agent=claim.entry.agent.text, number=claim.entry.number, kind=claim.entry.kind, report=state)
        return Outcome.DELIVERED

    def _call(self, entry: Entry, seconds: float) -> Delivered:
        """Tell the graph service. The token carries the present grants of whoever acted, and author on just the agent's scope."""
        with self.store.reading() as work:
            person = work.people.by_id(entry.actor_id)
            grants = work.people.grants(person)
            version = work.registry.version(work.registry.by_id(entry.agent_id), entry.number)
        access = Access(person, grants | {Grant(Role.AUTHOR, entry.agent.scope)})
        if entry.kind is EntryKind.RETIRE or version is None:
            return self.graph.retire(access, entry.agent, entry.number, seconds)
        return self.graph.publish(access, version.content, entry.number, seconds)

    def _postpone(self, claim: Claim, error: GraphUnavailable) -> Outcome:
        wait_s = self.backoff.wait_s(claim.entry.attempts + 1, self.chance())
        with self.store.writing() as work:
            work.outbox.postpone(claim, wait_s, error.reason)
        log.warning("not delivered", agent=claim.entry.agent.text, number=claim.entry.number, reason=error.reason, again_s=wait_s)
        return Outcome.DOWN if error.down else Outcome.POSTPONED

    def _set_aside(self, claim: Claim, error: GraphRefused) -> Outcome:
        entry = claim.entry
        with self.store.writing() as work:
            if work.outbox.set_aside(claim, error.reason):
                details = {"kind": entry.kind.value, "number": entry.number, "reason": error.reason}
                work.acts.record(now_ms(), None, "set aside", entry.agent, details)
        log.error("set aside", agent=entry.agent.text, number=entry.number, kind=entry.kind, reason=error.reason)
        return Outcome.SET_ASIDE
