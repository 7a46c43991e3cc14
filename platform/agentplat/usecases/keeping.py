"""Naming bytes in the database only while they are there (A-7)."""

from __future__ import annotations

from collections.abc import Mapping

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Blob
from agentplat.store.port import Work


def keep_named(work: Work, content: ContentStore, named: Mapping[Blob, bytes]) -> None:
    """Make sure that bytes which were put before this transaction are there when it ends, as it is going to name them.

    Equal bytes are kept once, so somebody may have erased them under another name since they were put. From here on nobody can.
    Raises ContentUnavailable.
    """
    work.artifacts.guard({blob.digest for blob in named})
    for blob, data in named.items():
        if not content.has(blob):
            content.put(data)
