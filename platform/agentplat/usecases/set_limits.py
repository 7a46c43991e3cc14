"""The limits of chains, which are kept in the database and nowhere else (R-7, R-12)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Role
from agentplat.domain.chains import ChainLimits
from agentplat.domain.scopes import INSTALLATION, Ref
from agentplat.domain.times import now_ms
from agentplat.store.port import Store

SUBJECT = Ref(INSTALLATION, "chain limits")
"""What the acts of setting them are recorded on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimits:
    """Reads and sets the limits."""

    store: Store

    def read(self) -> ChainLimits:
        """The limits in force, which are no secret. Raises StoreUnavailable."""
        with self.store.reading() as work:
            return work.chains.limits()

    def __call__(self, access: Access, hops: int | None, runs: int | None) -> ChainLimits:
        """Set the limits that are given; they hold for every worker from its next closing or opening of a run on.

        Raises AccessDenied unless the caller is admin of the installation, StoreUnavailable.
        """
        access.demand(Role.ADMIN, INSTALLATION)
        with self.store.writing() as work:
            before = work.chains.limits()
            then = ChainLimits(hops=before.hops if hops is None else hops, runs=before.runs if runs is None else runs)
            if then != before:
                work.chains.set_limits(then)
                details = {"hops": [before.hops, then.hops], "runs": [before.runs, then.runs]}
                work.acts.record(now_ms(), access.person, "set chain limits", SUBJECT, details)
            return then
