"""What stands over the findings of one audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphsvc.domain.audit import AuditLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """For whom and of what the audit was. reader, scopes: texts, sorted. reader: None for whatever the caller may read.

    scopes: none for all that the reader may read. revision: of the graph, None where it came from files.
    """

    reader: tuple[str, ...] | None
    scopes: tuple[str, ...]
    limits: AuditLimits
    revision: int | None

    def as_json(self) -> dict[str, Any]:
        """The heading as JSON values."""
        return {
            "reader": None if self.reader is None else list(self.reader),
            "scopes": list(self.scopes),
            "limits": self.limits.as_json(),
            "revision": self.revision,
        }
