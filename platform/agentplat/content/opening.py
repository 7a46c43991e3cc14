"""A content store from its address."""

from __future__ import annotations

from pathlib import Path

from agentplat.content.folder import FolderContent
from agentplat.content.port import ContentStore
from agentplat.domain.errors import InvalidInput, Violation


def open_content(address: str) -> ContentStore:
    """The content store in a folder. Raises InvalidInput for any other address."""
    if not address or "://" in address:
        remedy = "name a folder"
        raise InvalidInput([Violation(field="content", reason="is no folder", remedy=remedy)])
    return FolderContent(Path(address))
