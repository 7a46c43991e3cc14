"""The use cases by which people govern runs: approvals, ceilings, declassification, erasure."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.store.port import Store
from agentplat.usecases.decide_approval import DecideApproval
from agentplat.usecases.declassify_artifact import DeclassifyArtifact
from agentplat.usecases.erase_artifact import EraseArtifact
from agentplat.usecases.manage_budgets import ManageBudgets


@dataclass(frozen=True, slots=True, kw_only=True)
class Governing:
    """What people do about runs."""

    approvals: DecideApproval
    budgets: ManageBudgets
    declassify: DeclassifyArtifact
    erase: EraseArtifact


def build_governing(store: Store, content: ContentStore) -> Governing:
    """All of them on one store and one content store."""
    return Governing(
        approvals=DecideApproval(store=store, content=content),
        budgets=ManageBudgets(store=store),
        declassify=DeclassifyArtifact(store=store),
        erase=EraseArtifact(store=store, content=content),
    )
