"""Output contracts: the JSON Schema that what a run comes to has to fit, and how strictly that is meant (D-10, D-12).

A contract is declared where work is given out and belongs to the run that was opened by that. Nothing here reads or writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jsonschema.exceptions import ValidationError

from agentplat.domain.artifacts import Blob
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.schemas.declaring import faults_of
from agentplat.domain.schemas.judging import MOST_LOOKS, TooMuchWork, errors_of
from agentplat.domain.schemas.keywords import DRAFT, inner
from agentplat.domain.schemas.values import pointer, taken_in
from agentplat.domain.schemas.wording import expected, in_json

MOST_TRIES = 3
"""Outputs that a run with a strict contract may submit: with the last one that is refused, it fails."""

MOST_SCHEMA_BYTES = 64 * 1024
MOST_OUTPUT_BYTES = 256 * 1024
MOST_FAULTS = 100
"""Faults that are told of one output; of more, only how many there are."""

MOST_SHOWN_PATHS = 20
"""Paths of faults that a trail has of one output."""

SCHEMA_FIELD = "expected_output_schema"
MODE_FIELD = "output_contract_mode"
OUTPUT_FIELD = "output"

_UNNAMED = "…"
"""Stands in a trail for what no schema names: a name that a run made up is content, which a trail never holds."""


class ContractMode(StrEnum):
    """STRICT: an output that does not fit is refused. PERMISSIVE: it is kept, and its faults are recorded."""

    STRICT = "strict"
    PERMISSIVE = "permissive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What does not fit. path: a JSON Pointer into the output, empty for the whole. shown_path: the same for a trail."""

    path: str
    shown_path: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path or 'the output'}: expected {self.expected}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What became of an output. data: its canonical JSON, empty where it is none. faults: the first `MOST_FAULTS`, more: how many
    follow them. hint: what may have gone wrong.
    """

    data: bytes
    faults: tuple[Fault, ...] = ()
    more: int = 0
    hint: str | None = None

    @property
    def count(self) -> int:
        """How many faults there are."""
        return len(self.faults) + self.more

    @property
    def shown_paths(self) -> tuple[str, ...]:
        """Where the first faults are, for a trail."""
        return tuple(dict.fromkeys(fault.shown_path for fault in self.faults))[:MOST_SHOWN_PATHS]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContract:
    """A declared contract; `declare` makes it. schema: its canonical JSON."""

    schema: str
    mode: ContractMode

    def check(self, output: Any) -> Checked:
        """Hold an output against the contract. It always ends in well under a second."""
        try:
            value, data = taken_in(output, OUTPUT_FIELD, MOST_OUTPUT_BYTES)
        except InvalidInput as error:
            return Checked(data=b"", faults=tuple(_whole(f"{v.remedy} ({v.reason})") for v in error.violations))
        schema, _ = taken_in(json.loads(self.schema), SCHEMA_FIELD, MOST_SCHEMA_BYTES)
        try:
            errors = errors_of(schema, value)
        except TooMuchWork as much:
            return Checked(data=data, faults=(_whole(f"an output that is simple enough to be checked: {much}"),))
        faults, more = _faults(schema, errors), max(0, len(errors) - MOST_FAULTS)
        wrapped = _wrapped(schema, value, fits=not errors)
        if wrapped is None:
            return Checked(data=data, faults=faults, more=more)
        hint = f"the output is wrapped once too often: submit what stands under {in_json(wrapped)} itself"
        return Checked(data=data, faults=faults or (_whole("an output without a wrapping of its own"),), more=more, hint=hint)


class ContractState(StrEnum):
    """How far a contract was met. MISSING: nothing was submitted. REJECTED: what was submitted did not fit."""

    MISSING = "missing"
    REJECTED = "rejected"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContract:
    """The contract of a run's output, and how far it was met.

    schema: JSON Schema 2020-12 as canonical JSON. rejections: how often an output did not fit. output: the accepted one.
    """

    schema: str
    mode: ContractMode
    rejections: int
    output: Blob | None

    @property
    def declared(self) -> OutputContract:
        """The contract as it was declared."""
        return OutputContract(schema=self.schema, mode=self.mode)

    @property
    def state(self) -> ContractState:
        """How far it was met."""
        if self.output is not None:
            return ContractState.ACCEPTED
        return ContractState.REJECTED if self.rejections else ContractState.MISSING

    @property
    def tries_left(self) -> int:
        """How many outputs may still be submitted."""
        return 0 if self.output is not None else max(0, MOST_TRIES - self.rejections)

    @property
    def hindrance(self) -> str | None:
        """Why the run may not finish yet, and what would let it; None where it may."""
        if self.mode is ContractMode.PERMISSIVE or self.output is not None:
            return None
        told = f"{self.rejections} rejected and none accepted" if self.rejections else "none submitted"
        return f"this run has a contract for its output and {told}: submit one that fits with submit_output, then finish"


def declare(schema: Any, mode: Any = ContractMode.STRICT.value) -> OutputContract:
    """The contract of a schema and a mode. Raises InvalidInput with every fault of the two."""
    faults: list[Violation] = []
    if mode not in list(ContractMode):
        faults.append(Violation(field=MODE_FIELD, reason="is not known", remedy="write strict or permissive"))
    found = "{}"
    try:
        found = _checked(schema, strict=mode != ContractMode.PERMISSIVE)
    except InvalidInput as refused:
        faults.extend(refused.violations)
    if faults:
        raise InvalidInput(faults)
    return OutputContract(schema=found, mode=ContractMode(mode))


def declared(schema: Any, mode: Any) -> OutputContract | None:
    """The contract of what a dispatch says, None where it says nothing of one. Raises InvalidInput."""
    if schema is None and mode is None:
        return None
    return declare(schema, ContractMode.STRICT.value if mode is None else mode)


def contract_words(checked: Checked, told: str) -> str:
    """What is told of an output: what became of it, every fault, and the hint."""
    lines = [told, *(f"- {fault}" for fault in checked.faults)]
    if checked.more:
        lines.append(f"- and {checked.more} more")
    return "\n".join([*lines, *([checked.hint] if checked.hint else [])])


def _checked(schema: Any, *, strict: bool) -> str:
    if not isinstance(schema, Mapping):
        raise InvalidInput([Violation(field=SCHEMA_FIELD, reason="is no JSON object", remedy="write a JSON Schema as an object")])
    taken_in(schema, SCHEMA_FIELD, MOST_SCHEMA_BYTES)
    if schema.get("$schema", DRAFT) not in (DRAFT, f"{DRAFT}#"):
        remedy = f"write it in draft 2020-12 ({DRAFT}), or leave $schema out"
        raise InvalidInput([Violation(field=f"{SCHEMA_FIELD}/$schema", reason="is another draft", remedy=remedy)])
    kept, data = taken_in({word: value for word, value in schema.items() if word != "$schema"}, SCHEMA_FIELD, MOST_SCHEMA_BYTES)
    faults = faults_of(kept, SCHEMA_FIELD, strict=strict)
    if faults:
        raise InvalidInput(faults)
    return data.decode()


def _whole(wanted: str) -> Fault:
    return Fault(path="", shown_path="", expected=wanted)


def _faults(schema: Mapping[str, Any], errors: Sequence[ValidationError]) -> tuple[Fault, ...]:
    """The first of them in words."""
    named = set(_names(schema))
    found = []
    for error in errors[:MOST_FAULTS]:
        path = list(error.absolute_path)
        shown = [part if isinstance(part, int) or part in named else _UNNAMED for part in path]
        found.append(Fault(path=pointer(path), shown_path=pointer(shown), expected=expected(error)))
    return tuple(dict.fromkeys(found))


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    """The property names that a schema has anywhere."""
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            yield from one.get("properties", ())
            yield from one.get("required", ())
            waiting.extend(found for _, _, found in inner(one))


def _wrapped(schema: Mapping[str, Any], value: Any, *, fits: bool) -> str | None:
    """The only property of an output in which something stands that looks more like what the contract wants than the whole."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(name, inside)] = value.items()
    names = set(_names(schema))
    # Where objects are open the wrapping fits too; then what is inside has to have a property that the schema names.
    if name in names or (fits and not (isinstance(inside, dict) and not names.isdisjoint(inside))):
        return None
    try:
        return None if errors_of(schema, inside, MOST_LOOKS // 4) else str(name)
    except TooMuchWork:
        return None
