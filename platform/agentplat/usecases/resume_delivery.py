"""Letting an agent's publications go on after the graph service refused one for good (P-6)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Role
from agentplat.domain.errors import Conflict
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.finding import readable_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeDelivery:
    """For admins of the agent's scope, once they have looked at why it was refused."""

    store: Store

    def __call__(self, access: Access, ref: Ref, skip: bool) -> None:
        """Try the refused entry again, or skip it for good so that later ones are delivered.

        Raises NotFound, AccessDenied, Conflict where nothing was refused, StoreUnavailable.
        """
        with self.store.writing() as work:
            agent = readable_agent(work, access, ref)
            access.demand(Role.ADMIN, ref.scope)
            entry = work.outbox.resume(agent.id, skip)
            if entry is None:
                raise Conflict("the graph service has refused no publication of this agent; there is nothing to resume")
            details = {"kind": entry.kind.value, "number": entry.number, "skip": skip}
            work.acts.record(now_ms(), access.person, "resume delivery", ref, details)
