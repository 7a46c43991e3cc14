"""What callers write, checked by the graph service's own grammar before anything is done with it."""

from __future__ import annotations

from agentplat.domain.scopes import Ref
from agentplat.loop_check import check_name, check_ref, check_scope, hidden_agent, manifest_schema, read_manifests

__all__ = ["agents_of", "check_manifests", "check_name", "check_ref", "check_scope", "hidden_agent", "manifest_schema"]


def check_manifests(text: str, source: str) -> None:
    """Raises InvalidInput with every fault of the text."""
    read_manifests(text, source)


def agents_of(text: str, source: str) -> list[Ref]:
    """The agents that a text has manifests of, in their order. Raises InvalidInput with every fault of the text."""
    return [content.agent for content in read_manifests(text, source)]
