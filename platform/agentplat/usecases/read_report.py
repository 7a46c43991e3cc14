"""Showing the report of a version: as its publisher saw it, or made anew for who may not read all of that (P-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.errors import GraphUnavailable
from agentplat.domain.registry import Content
from agentplat.domain.scopes import Ref
from agentplat.domain.shown import ShownReport, kept, named_agents
from agentplat.loop_check import LoopCheck
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import readable_version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """check_s: seconds that the graph service gets for a fresh check."""

    store: Store
    graph: LoopCheck
    check_s: float

    def __call__(self, access: Access, ref: Ref, number: int) -> ShownReport:
        """The report for this reader, without body where the graph service has not answered. Raises NotFound, StoreUnavailable."""
        with self.store.reading() as work:
            version = readable_version(work, access, ref, number)
            report = work.registry.report(version.agent, number)
            own = work.outbox.publication(version.agent.id, number)
            head = work.outbox.unsettled([version.agent.id]).get(version.agent.id)
            shown = kept(ref, number, report, own, head)
            if report.body is not None and access.covers(report.scopes):
                return replace(shown, paused=paused_agents(work, report.body))
        return shown if report.body is None else self._fresh(access, version.content, shown)

    def _fresh(self, access: Access, content: Content, shown: ShownReport) -> ShownReport:
        try:
            body = self.graph.check(access, content, self.check_s)
        except GraphUnavailable:
            return replace(shown, body=None, fresh=True)
        with self.store.reading() as work:
            return replace(shown, body=body, fresh=True, paused=paused_agents(work, body))


def paused_agents(work: Work, body: Mapping[str, Any]) -> tuple[Ref, ...]:
    """The agents named in a report that are paused, sorted; hidden ones have no name and get no mark (P-11)."""
    return tuple(sorted(work.registry.paused_among(named_agents(body)), key=lambda ref: (ref.name, ref.scope)))
