"""Tools: what a run may call. Each declares what it does to the world, what its arguments look like and what it may cost (A-13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentplat.domain.artifacts import Artifact, Delivery
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.budgets import Unit
from agentplat.domain.canonical import canonical_json, digest
from agentplat.domain.labels import Label, Labels, Mark
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.steps import Body, ResultKind

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
class Place:
    """Where a tool of the platform exists (W-7). modes: in spaces of these modes; None in every run, in a space or not.

    named: whether the version has to name it besides. contract: whether it exists only for runs whose output has a contract.
    """

    modes: frozenset[Mode] | None
    named: bool = False
    contract: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a tool declares.

    schema: JSON Schema 2020-12 of its arguments. effect: None where it declares none; it then does not run. longest_ms,
    money_microusd, tokens: the most that one call can take. labels: what every result carries. free_from: the level of autonomy
    from which it runs unasked although it writes; lower than usual for what stays inside the platform and has guards of its own.
    place: where a tool of the platform exists; None for tools of a manifest.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    effect: Effect | None
    longest_ms: int
    money_microusd: int = 0
    tokens: int = 0
    labels: Labels = UNTRUSTED
    free_from: Autonomy = Autonomy.ACT_FREELY
    place: Place | None = None

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
            "free_from": self.free_from.value,
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
    took, by unit; a unit that is left out took its worst case. copy_of: the artifact whose content the data is, where it is one.
    steps: what the trail says besides, before the result. ends: why the run has failed by this, for tools within the database.
    """

    result: ResultKind
    data: bytes | None = None
    labels: Labels = frozenset()
    reason: str | None = None
    took: Mapping[Unit, int] = field(default_factory=dict)
    copy_of: Artifact | None = None
    steps: tuple[Body, ...] = ()
    ends: str | None = None


READ_ARTIFACT = "read_artifact"
"""The tool that reads an artifact by its name in the contract. Every run has it: what it may read is said by its opening step."""

SUBMIT_OUTPUT = "submit_output"
"""The tool by which a run meets its output contract. Every run that has one has the tool."""

DELEGATE_TASK = "delegate_task"
"""The tool that hands work on to another agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What decides which tools a run has, beside what each declares.

    named: the tools that its version names. mode: that of the space it works in, None where it works in none. contract: whether its
    output has a contract.
    """

    named: frozenset[str]
    mode: Mode | None = None
    contract: bool = False


def named_tools(manifest: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tools that a version names."""
    return frozenset(manifest.get("spec", {}).get("tools") or ())


def has_tool(spec: ToolSpec, circumstances: Circumstances) -> bool:
    """Whether a run has the tool. What its mode does not give does not exist for it (W-7)."""
    place, mode = spec.place, circumstances.mode
    if place is None:
        acts_freely = mode in (None, Mode.CHAT)
        return spec.name in circumstances.named and (acts_freely or spec.effect is Effect.READ)
    if place.modes is not None and mode not in place.modes:
        return False
    return (spec.name in circumstances.named or not place.named) and (circumstances.contract or not place.contract)
