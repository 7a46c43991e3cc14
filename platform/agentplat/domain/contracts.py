"""Output contracts: what the output of a run must look like (D-10 to D-12)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.artifacts import Blob


class ContractMode(StrEnum):
    """How a contract is held: strictly, or only recording what does not fit."""

    STRICT = "strict"
    PERMISSIVE = "permissive"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContract:
    """The contract of a run's output, and how far it was met.

    schema: JSON Schema 2020-12 as canonical JSON. rejections: how often an output did not fit. output: the accepted one.
    """

    schema: str
    mode: ContractMode
    rejections: int
    output: Blob | None
