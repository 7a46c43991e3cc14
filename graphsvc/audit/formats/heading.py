"""What stands over the findings of one audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphsvc.domain.audit import AuditLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """For whom and of what the audit was. reader, scopes: texts, sorted; none of the second means all that the first may read.

    revision: of the graph, None where it came from files. software: the version of this one.
    """

    reader: tuple[str, ...]
    scopes: tuple[str, ...]
    limits: AuditLimits
    revision: int | None
    software: str

    def as_json(self) -> dict[str, Any]:
        """The heading as JSON values; the software is left out, as equal findings are to give equal bytes."""
        return {
            "reader": list(self.reader),
            "scopes": list(self.scopes),
            "limits": self.limits.as_json(),
            "revision": self.revision,
        }
