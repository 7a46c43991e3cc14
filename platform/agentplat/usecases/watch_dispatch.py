"""What the dispatcher has done and has not: its backlog, what it set aside, and the account over any period (R-16, R-17)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Role
from agentplat.domain.deliveries import Backlog, Reconciliation, SetAside
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound, Violation
from agentplat.domain.scopes import INSTALLATION
from agentplat.domain.times import now_ms
from agentplat.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDispatch:
    """For auditors: runs of agents of the scopes that they audit. For admins: letting what was set aside be tried again."""

    store: Store

    def status(self, access: Access, after: int, size: int) -> tuple[Backlog, list[SetAside]]:
        """What waits, and runs that were set aside with an id over `after`. Raises AccessDenied, StoreUnavailable."""
        scopes = _audited(access)
        with self.store.reading() as work:
            return work.deliveries.backlog(scopes), work.deliveries.set_aside(scopes, after, size)

    def reconcile(self, access: Access, since: int, until: int) -> Reconciliation:
        """The account over all runs that finished from `since` until just before `until`, in milliseconds since 1970.

        Raises AccessDenied, InvalidInput for a period that ends before it begins, StoreUnavailable.
        """
        scopes = _audited(access)
        if until <= since:
            raise InvalidInput([Violation(field="until", reason="is not after since", remedy="give a later moment")])
        with self.store.reading() as work:
            return work.deliveries.reconcile(scopes, since, until)

    def resume(self, access: Access, run_id: int) -> None:
        """Let a run that was set aside be tried again. Raises NotFound, AccessDenied, Conflict, StoreUnavailable."""
        with self.store.writing() as work:
            run = work.runs.find(run_id)
            if run is None or not access.may_read(run.agent.scope):
                raise NotFound
            access.demand(Role.ADMIN, run.agent.scope)
            if not work.deliveries.resume(run_id):
                raise Conflict("this run is not set aside; there is nothing to resume")
            work.acts.record(now_ms(), access.person, "resume dispatch", run.agent, {"run": run_id})


def _audited(access: Access) -> tuple[str, ...]:
    """The scopes that the caller audits. An answer about no scope at all would look as if all were well."""
    scopes = access.scopes_with(Role.AUDITOR)
    if not scopes:
        raise AccessDenied(Role.AUDITOR.value, INSTALLATION)
    return scopes
