"""Pausing an agent: it stays in the graph, but its triggers start nothing (P-11)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.finding import publishable_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseAgent:
    """Marks agents as paused and takes the mark away."""

    store: Store

    def __call__(self, access: Access, ref: Ref, paused: bool) -> bool:
        """Whether this changed anything. Raises NotFound, AccessDenied, StoreUnavailable."""
        with self.store.writing() as work:
            agent = publishable_agent(work, access, ref)
            if agent.paused == paused:
                return False
            work.registry.pause(agent, paused)
            work.acts.record(now_ms(), access.person, "pause" if paused else "resume", ref, {})
            return True
