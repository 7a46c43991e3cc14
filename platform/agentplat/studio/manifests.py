"""Manifests as text that a person edits, and their faults beside the lines they are about."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from agentplat.domain.errors import Violation

SOURCE = "manifest"
"""What places call the text of the editor."""


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """A manifest from its JSON values, long texts as blocks."""
    writer = YAML()
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.width = 10_000
    written = io.StringIO()
    writer.dump(_blocks(manifest), written)
    return written.getvalue()


def _blocks(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _blocks(inner) for key, inner in value.items()}
    if isinstance(value, str):
        # A block keeps a text only when no line of it ends in white space and it has nothing that YAML escapes.
        plain = "\n" in value and value.isprintable() is False and all(line == line.rstrip() for line in value.split("\n"))
        return LiteralScalarString(value) if plain and value.replace("\n", "").isprintable() else value
    return [_blocks(inner) for inner in value] if isinstance(value, Sequence) else value


def new_manifest(scope: str) -> str:
    """What an author of a new agent starts from."""
    company, _, area = scope.partition("/")
    lines = ["apiVersion: agentplat/v1", "kind: Agent", "metadata:", "  name: "]
    lines += [f"  company: {company}"] if company not in ("", "*") else []
    lines += [f"  area: {area}"] if area else []
    lines += ["spec:", "  emits: []", "  listens: []", "  driver:", "    kind: scripted"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFault:
    """A fault. line, column: from 1, both 0 where it is about no place. text: the faulty line as it was typed."""

    line: int
    column: int
    text: str
    field: str
    reason: str
    remedy: str


def faults_of(violations: Iterable[Violation], manifest: str) -> tuple[ManifestFault, ...]:
    """The faults in the order of their lines."""
    lines = manifest.split("\n")
    return tuple(sorted((_fault(violation, lines) for violation in violations), key=lambda fault: (fault.line, fault.column)))


def _fault(violation: Violation, lines: Sequence[str]) -> ManifestFault:
    numbers = [int(part) for part in violation.place.removeprefix(SOURCE).strip(":").split(":") if part.isdecimal()]
    line, column = (*numbers, 0, 0)[:2]
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return ManifestFault(
        line=line, column=column, text=text, field=violation.field, reason=violation.reason, remedy=violation.remedy
    )
