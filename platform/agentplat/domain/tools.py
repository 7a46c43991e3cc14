"""Tools: what a run may call. Each declares what it does to the world, what its arguments look like and what it may cost (A-13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentplat.domain.artifacts import Delivery
from agentplat.domain.budgets import Unit
from agentplat.domain.canonical import canonical_json, digest
from agentplat.domain.labels import Label, Labels, Mark
from agentplat.domain.runs import Run
from agentplat.domain.steps import ResultKind

UNTRUSTED: Labels = frozenset({Label(Mark.UNTRUSTED.value)})
"""What results of a tool carry that does not say where its data comes from: missing provenance counts as the worst."""


class Effect(StrEnum):
    """What a call does to the world."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    FINANCIAL = "financial"


IRREVERSIBLE = frozenset({Effect.DESTRUCTIVE, Effect.FINANCIAL})
"""Effects that nobody can take back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a tool declares.

    schema: JSON Schema 2020-12 of its arguments. effect: None where it declares none; it then does not run. longest_ms,
    money_microusd, tokens: the most that one call can take. labels: what every result carries.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    effect: Effect | None
    longest_ms: int
    money_microusd: int = 0
    tokens: int = 0
    labels: Labels = UNTRUSTED

    @property
    def worst(self) -> dict[Unit, int]:
        """What is set aside for one call, by unit."""
        most = {Unit.TOOL_CALLS: 1, Unit.TIME: self.longest_ms, Unit.MONEY: self.money_microusd, Unit.TOKENS: self.tokens}
        return {unit: amount for unit, amount in most.items() if amount}

    @property
    def digest(self) -> str:
        """SHA-256 over all of it, in hexadecimal."""
        whole = {
            "name": self.name,
            "description": self.description,
            "schema": dict(self.schema),
            "effect": None if self.effect is None else self.effect.value,
            "worst": {unit.value: amount for unit, amount in sorted(self.worst.items())},
            "labels": sorted(label.text for label in self.labels),
        }
        return digest(canonical_json(whole).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call as a tool gets it. delivery: the event that opened the run, with its contract; None where no event did."""

    run: Run
    call: int
    arguments: Mapping[str, Any]
    delivery: Delivery | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Data on its way. labels: what it carries. into: the scope that it would come to."""

    labels: Labels
    into: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a call gave. data: None where there is nothing to give. labels: of this result, beside those of all the tool's results.

    reason: why it failed, or what is worth knowing; it goes into the trail and so never holds content. took: what the call really
    took, by unit; a unit that is left out took its worst case.
    """

    result: ResultKind
    data: bytes | None = None
    labels: Labels = frozenset()
    reason: str | None = None
    took: Mapping[Unit, int] = field(default_factory=dict)


READ_ARTIFACT = "read_artifact"
"""The tool that reads an artifact by its name in the contract. Every run has it: what it may read is said by its opening step."""


def surface_of(manifest: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tools that a run of the version may call."""
    return frozenset(manifest.get("spec", {}).get("tools") or ()) | {READ_ARTIFACT}
