"""Looking at a version before it is published; nothing is stored (P-8, P-13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.diff import Diff, declared_changes, loop_change
from agentplat.domain.errors import GraphUnavailable
from agentplat.domain.registry import Content, Version
from agentplat.domain.scopes import Ref
from agentplat.loop_check import LoopCheck, read_manifests
from agentplat.store.port import Store, Work
from agentplat.usecases.read_report import paused_agents
from agentplat.usecases.suggest_instructions import Suggestion, suggestions


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What publishing would tell. body: the report as JSON values, None where the graph service did not answer.

    unchanged: whether the content is current already, so that publishing it would store nothing.
    """

    agent: Ref
    body: Mapping[str, Any] | None
    paused: tuple[Ref, ...]
    unchanged: bool
    diff: Diff
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewVersion:
    """check_s: seconds that the graph service gets for each check."""

    store: Store
    graph: LoopCheck
    check_s: float

    def __call__(self, access: Access, manifests: str, source: str) -> list[Preview]:
        """Preview every manifest of a text, each as if it alone were published.

        Raises InvalidInput, AccessDenied where the agent's scope may not be read, StoreUnavailable.
        """
        contents = read_manifests(manifests, source)
        for content in contents:
            access.demand_reading(content.agent.scope)
        return [self._preview(access, content) for content in contents]

    def _preview(self, access: Access, content: Content) -> Preview:
        with self.store.reading() as work:
            current = current_version(work, content.agent)
            suggested = suggestions(work, access, content)
        body, before = self._reports(access, current, content)
        with self.store.reading() as work:
            paused = () if body is None else paused_agents(work, body)
        events, triggers = declared_changes(None if current is None else current.content, content)
        return Preview(
            agent=content.agent,
            body=body,
            paused=paused,
            unchanged=current is not None and current.content.digest == content.digest,
            diff=Diff(
                against=None if current is None else current.number,
                events=events,
                triggers=triggers,
                loops=None if body is None else loop_change(before, body),
            ),
            suggestions=suggested,
        )

    def _reports(
        self, access: Access, current: Version | None, content: Content
    ) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
        """The reports on the content and on the current version."""
        try:
            body = self.graph.check(access, content, self.check_s)
            before = None if current is None else self.graph.check(access, current.content, self.check_s)
        except GraphUnavailable:
            return None, None
        return body, before


def current_version(work: Work, ref: Ref) -> Version | None:
    """The agent's published version, if it has one."""
    agent = work.registry.find(ref)
    return None if agent is None or agent.current is None else work.registry.version(agent, agent.current)
