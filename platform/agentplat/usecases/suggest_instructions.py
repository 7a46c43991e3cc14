"""What to write in a listener: which artifacts its triggers bring, as far as its author may know (P-13)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access
from agentplat.domain.registry import Content, Source
from agentplat.store.port import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A trigger with the artifacts that its published sources expose; `wording` makes a text to start from.

    artifacts: every name once, sorted. sources: the agents that expose them, as far as the author may read them.
    """

    trigger: str
    artifacts: tuple[str, ...]
    sources: tuple[Source, ...]


def suggestions(work: Work, access: Access, content: Content) -> tuple[Suggestion, ...]:
    """One for each trigger, in the order of their names. The agent itself is no source: its own event never starts it."""
    found = [s for s in work.registry.sources(content.listens, access.scopes) if s.agent != content.agent]
    return tuple(_suggestion(trigger, [s for s in found if s.event == trigger]) for trigger in sorted(content.listens))


def _suggestion(trigger: str, sources: list[Source]) -> Suggestion:
    names = sorted({name for source in sources for name in source.artifacts})
    return Suggestion(trigger=trigger, artifacts=tuple(names), sources=tuple(sources))
