"""The use cases by which work is proposed, decided about and followed."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.store.port import Store
from agentplat.usecases.cancel_pipeline import CancelPipeline
from agentplat.usecases.decide_proposal import DecideProposal
from agentplat.usecases.propose import Propose
from agentplat.usecases.publish_version import PublishVersion
from agentplat.usecases.read_orchestration import ReadOrchestration


@dataclass(frozen=True, slots=True, kw_only=True)
class Orchestrating:
    """What people do about proposals and pipelines."""

    propose: Propose
    decide: DecideProposal
    read: ReadOrchestration
    cancel: CancelPipeline


def build_orchestrating(store: Store, publish: PublishVersion) -> Orchestrating:
    """All of them on one store."""
    return Orchestrating(
        propose=Propose(store=store),
        decide=DecideProposal(store=store, publish=publish),
        read=ReadOrchestration(store=store),
        cancel=CancelPipeline(store=store),
    )
