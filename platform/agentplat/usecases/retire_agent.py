"""Taking an agent out of service and out of the graph (P-11)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.errors import Unauthenticated
from agentplat.domain.outbox import EntryKind, EntryState
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.deliver_outbox import DeliverOutbox
from agentplat.usecases.finding import publishable_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """created: False where the agent was retired already. delivered: whether the graph service knows; otherwise it will."""

    created: bool
    delivered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireAgent:
    """verify_s: seconds that the caller waits for the graph service."""

    store: Store
    deliver: DeliverOutbox
    verify_s: float

    def __call__(self, access: Access, ref: Ref) -> Retirement:
        """Leave the agent without a published version. Its versions and reports stay, and a new version brings it back.

        Raises NotFound, AccessDenied, StoreUnavailable.
        """
        if access.person is None:
            raise Unauthenticated
        owner = secrets.token_hex(16)
        with self.store.writing() as work:
            agent = publishable_agent(work, access, ref)
            if agent.current is None:
                return Retirement(created=False, delivered=agent.id not in work.outbox.unsettled([agent.id]))
            work.registry.retire(agent)
            lease_s = self.verify_s + self.deliver.lease_s
            entry = work.outbox.append(agent, EntryKind.RETIRE, agent.current, access.person, owner, lease_s)
            work.acts.record(now_ms(), access.person, "retire", ref, {"number": agent.current})
        self.deliver.until_settled(entry, owner, self.verify_s)
        with self.store.reading() as work:
            return Retirement(created=True, delivered=work.outbox.entry(entry.id).state is EntryState.DELIVERED)
