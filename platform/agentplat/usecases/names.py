"""What callers write, checked by the graph service's own grammar before anything is done with it."""

from __future__ import annotations

from agentplat.loop_check import check_name, check_ref, check_scope, manifest_schema, read_manifests

__all__ = ["check_manifests", "check_name", "check_ref", "check_scope", "manifest_schema"]


def check_manifests(text: str, source: str) -> None:
    """Raises InvalidInput with every fault of the text."""
    read_manifests(text, source)
