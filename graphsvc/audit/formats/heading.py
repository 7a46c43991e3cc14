"""What stands over the findings of one audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from graphsvc.domain.audit import AuditLimits
from graphsvc.domain.names import AgentRef

Place = tuple[str, int | None]
"""The path of a file, and a line of it from 1; None in a file without lines."""

PlaceOf = Callable[[AgentRef], Place | None]
"""Where an agent is declared, None where that is no file."""


def nowhere(_: AgentRef) -> Place | None:
    """For graphs that do not come from files."""
    return None


def uri_of(path: str) -> str:
    """A path as a URI, relative where the path is."""
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """For whom and of what the audit was. reader, scopes: texts, sorted. reader: None for whatever the caller may read.

    scopes: none for all that the reader may read. revision: of the graph, None where it came from files. place_of: where agents are
    declared, for the forms that show it.
    """

    reader: tuple[str, ...] | None
    scopes: tuple[str, ...]
    limits: AuditLimits
    revision: int | None
    place_of: PlaceOf = nowhere

    def as_json(self) -> dict[str, Any]:
        """The heading as JSON values."""
        return {
            "reader": None if self.reader is None else list(self.reader),
            "scopes": list(self.scopes),
            "limits": self.limits.as_json(),
            "revision": self.revision,
        }
