"""Listing agents and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.outbox import Entry
from agentplat.domain.registry import Agent, Version
from agentplat.domain.scopes import Ref
from agentplat.store.port import Store
from agentplat.usecases.finding import readable_agent, readable_version, redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAgent:
    """An agent. unsettled: the first entry that the graph service does not know yet, None where it knows all."""

    agent: Agent
    unsettled: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAgents:
    """Reads the registry."""

    store: Store

    def __call__(self, access: Access, after: Ref | None, size: int, within: str | None = None) -> list[ListedAgent]:
        """Readable agents, retired ones too, by scope, then name, from behind `after`. within: of this scope and below only.

        Raises StoreUnavailable.
        """
        scopes = access.scopes if within is None else access.scopes_in(within)
        with self.store.reading() as work:
            agents = work.registry.page(scopes, after, size)
            return _listed(agents, work.outbox.unsettled([agent.id for agent in agents]))

    def one(self, access: Access, ref: Ref) -> tuple[ListedAgent, Version | None]:
        """One agent and its published version. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            agent = readable_agent(work, access, ref)
            current = None if agent.current is None else readable_version(work, access, ref, agent.current)
            return _listed([agent], work.outbox.unsettled([agent.id]))[0], current

    def versions(self, access: Access, ref: Ref, below: int | None, size: int) -> list[Version]:
        """An agent's versions with a number under `below`, newest first. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            found = work.registry.versions(readable_agent(work, access, ref), below, size)
            return [redacted(access, version) for version in found]

    def version(self, access: Access, ref: Ref, number: int) -> Version:
        """One version. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            return readable_version(work, access, ref, number)


def _listed(agents: list[Agent], unsettled: Mapping[int, Entry]) -> list[ListedAgent]:
    return [ListedAgent(agent=agent, unsettled=unsettled.get(agent.id)) for agent in agents]
