"""Faults in words: what was expected, never what was given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

from agentplat.domain.schemas.values import pointer

_MOST_CHARACTERS = 200

_EXPECTED: Mapping[str, str] = {
    "const": "the value {}",
    "contains": "an item that fits the schema behind contains",
    "enum": "one of {}",
    "exclusiveMaximum": "a number below {}",
    "exclusiveMinimum": "a number above {}",
    "format": "a text of the format {}",
    "maxContains": "at most {} items that fit the schema behind contains",
    "maxItems": "at most {} items",
    "maxLength": "a text of at most {} characters",
    "maxProperties": "at most {} properties",
    "maximum": "a number of at most {}",
    "minContains": "at least {} items that fit the schema behind contains",
    "minItems": "at least {} items",
    "minLength": "a text of at least {} characters",
    "minProperties": "at least {} properties",
    "minimum": "a number of at least {}",
    "multipleOf": "a multiple of {}",
    "not": "a value that does not fit the schema behind not",
    "pattern": "a text in which {} is found",
    "unevaluatedItems": "no item here",
    "unevaluatedProperties": "no such property",
    "additionalProperties": "no such property",
    "uniqueItems": "items that all differ",
}


def in_json(value: Any) -> str:
    """A value as JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def expected(error: ValidationError) -> str:
    """What was expected where the fault is."""
    about = "a property name that is " if "propertyNames" in error.absolute_schema_path else ""
    return about + _expected(error)


def _expected(error: ValidationError) -> str:
    value = error.validator_value
    match error.validator:
        case "required" | "dependentRequired":
            return f"the property {in_json(error.message)}"
        case "type":
            return "a value of type " + " or ".join([value] if isinstance(value, str) else value)
        case "anyOf" | "oneOf":
            return _alternatives(error)
        case "items":
            return f"at most {len(error.schema.get('prefixItems', ()))} items"
        case str(keyword) if keyword in _EXPECTED:
            return _EXPECTED[keyword].format(in_json(value))
    return "no value here at all"


def _alternatives(error: ValidationError) -> str:
    """Says what the alternative wants that the value came closest to."""
    one = "exactly one" if error.validator == "oneOf" else "one"
    told = f"a value that fits {one} of {len(error.validator_value)} alternatives"
    by_alternative: dict[Any, list[ValidationError]] = {}
    for fault in error.context:
        by_alternative.setdefault(fault.schema_path[0], []).append(fault)
    if not by_alternative:
        return f"{told}, and it fits several"
    first = min(by_alternative.values(), key=_distance)[0]
    return f"{told}; the closest wants {expected(first)} at {pointer(first.path) or 'its place'}"


def _distance(faults: list[ValidationError]) -> tuple[bool, int]:
    """How far a value is from an alternative: one of another type is farther away than one with many small faults."""
    return any(fault.validator in (None, "type") and not fault.path for fault in faults), len(faults)
