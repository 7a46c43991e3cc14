"""Tools as a run is offered them: a name, what it is for, what it takes and what it may bring about (A-13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    """What a tool may bring about. Only a read can be repeated without asking what became of it the first time (R-4)."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    FINANCIAL = "financial"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool of a run's surface. description: for whoever is to call it. parameters: the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
