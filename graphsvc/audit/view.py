"""One auditor's view of a graph: its numbers, what the auditor may read of it, and what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphsvc.audit.components import Core
from graphsvc.audit.tenant import Flags, Ints, Tenant
from graphsvc.domain.audit import AuditLimits
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """tenant, core: the whole graph and its loop components. limits: of the audit.

    readable, asked: per agent of the tenant, whether the auditor may read it, and whether it was also asked for.
    readable_inside: per agent of the core, whether the auditor may read it.
    """

    tenant: Tenant
    core: Core
    limits: AuditLimits
    readable: Flags
    asked: Flags
    readable_inside: Flags

    def agent(self, number: int) -> AgentRef:
        """The reference of an agent of the core."""
        return self.tenant.agents[int(self.core.agents[number])]

    def agents(self, numbers: Iterable[int]) -> tuple[AgentRef, ...]:
        """The references of agents of the core."""
        return tuple([self.agent(number) for number in numbers])

    def event(self, node: int) -> str:
        """The name of an event node of the core."""
        return self.tenant.events[int(self.core.events[node - len(self.core.agents)])]

    def searched(self) -> Ints:
        """The agents of the core whose shortest loops were asked for, in order."""
        return np.flatnonzero(self.asked[self.core.agents]).astype(np.int32)

    def reported(self) -> Ints:
        """The components that have an agent asked for."""
        component = np.repeat(np.arange(self.core.components, dtype=np.int32), np.diff(self.core.starts))
        return np.unique(component[self.searched()])


def view_of(tenant: Tenant, core: Core, reader: Reader, scopes: Sequence[Scope], limits: AuditLimits) -> View:
    """The view of a reader on the agents of these scopes, on all that they may read where none is named."""
    readable = tenant.readable_by(reader)
    return View(
        tenant=tenant,
        core=core,
        limits=limits,
        readable=readable,
        asked=readable & tenant.within(scopes) if scopes else readable,
        readable_inside=readable[core.agents],
    )
