"""Holding a value against a schema: the validator of `jsonschema`, with its work counted.

Work is counted in looks, never in time, so that the same value gets the same answer on every machine. A keyword costs some looks
and one more for each entry of what it compares; whatever combinations a schema makes, a check ends when its looks are spent.
Keywords whose work the library does not bound, or where it takes numbers other than JSON does, are done here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from agentplat.domain.schemas.formats import conforms
from agentplat.domain.schemas.keywords import DRAFT
from agentplat.domain.schemas.patterns import Pattern
from agentplat.domain.schemas.values import key, size

MOST_LOOKS = 1_500_000
"""Looks that one check may take: well under a second."""

MOST_NESTED = 120
"""Keywords inside each other, counted along the schemas that a check goes through."""

_LOOKS = 20
"""What a keyword costs by itself."""

_COSTLY = {"$dynamicRef": 200, "$ref": 60, "format": 40}

_PASSING_ON = 40
"""What making a fault costs, or handing it up by one keyword."""

Errors = Iterator[ValidationError]
Keyword = Callable[[Any, Any, Any, Mapping[str, Any]], Errors]


class TooMuchWork(Exception):
    """The check was ended. The message says what there was too much of."""


class _Meter(FormatChecker):  # type: ignore[misc] # the library has no types
    """Counts. It is a format checker because that is what validators hand on to each other."""

    def __init__(self, looks: int) -> None:
        super().__init__(formats=())
        self._left, self._nested = looks, 0
        self._patterns: dict[str, Pattern] = {}
        self._sizes: dict[int, int] = {}

    def take(self, looks: int) -> None:
        self._left -= looks
        if self._left < 0:
            raise TooMuchWork("holding it against the schema takes too much work")

    def enter(self) -> None:
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise TooMuchWork(f"the schema leads through more than {MOST_NESTED} keywords inside each other")

    def leave(self) -> None:
        self._nested -= 1

    def size(self, inside: Any) -> int:
        """How many values lie in a part of the schema, which stays where it is during the check."""
        if id(inside) not in self._sizes:
            self._sizes[id(inside)] = size(inside)
        return self._sizes[id(inside)]

    def finds(self, pattern: str, text: str) -> bool:
        compiled = self._patterns.get(pattern)
        if compiled is None:
            compiled = self._patterns[pattern] = Pattern(pattern)
        self.take(compiled.looks(text))
        return compiled.found_in(text)


def _entries(value: Any) -> int:
    return len(value) if isinstance(value, (dict, list)) else 0


def _counted(name: str, judge: Keyword) -> Keyword:
    deep = name in {"const", "dependentRequired", "enum"}

    def keyword(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
        meter: _Meter = validator.format_checker
        meter.take(_COSTLY.get(name, _LOOKS) + (4 * meter.size(value) if deep else _entries(value)) + _entries(instance))
        meter.enter()
        try:
            for error in judge(validator, value, instance, schema):
                meter.take(_PASSING_ON)
                yield error
        finally:
            meter.leave()

    return keyword


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, str) and not validator.format_checker.finds(pattern, instance):
        yield ValidationError("pattern")


def _format(validator: Any, name: str, instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, str):
        validator.format_checker.take(len(instance) // 10)
        if not conforms(name, instance):
            yield ValidationError("format")


def _multiple_of(validator: Any, step: float, instance: Any, _schema: Mapping[str, Any]) -> Errors:
    # As decimals, which is what was written: in binary, 4.35 is no multiple of 0.01.
    if validator.is_type(instance, "number") and Fraction(repr(instance)) % Fraction(repr(step)):
        yield ValidationError("multipleOf")


def _unique_items(validator: Any, wanted: bool, instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if wanted and isinstance(instance, list):
        validator.format_checker.take(6 * size(instance))
        if len({key(item) for item in instance}) != len(instance):
            yield ValidationError("uniqueItems")


def _required(_validator: Any, names: list[str], instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, dict):
        yield from (ValidationError(name) for name in names if name not in instance)


def _dependent_required(_validator: Any, names: Mapping[str, list[str]], instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, dict):
        for name, wanted in names.items():
            if name in instance:
                yield from (ValidationError(other) for other in wanted if other not in instance)


def _property_names(validator: Any, subschema: Any, instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, dict):
        for name in instance:
            yield from validator.descend(name, subschema, path=name)


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if validator.format_checker.finds(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _is_extra(validator: Any, name: str, schema: Mapping[str, Any]) -> bool:
    """Whether an `additionalProperties` beside them would be about the property."""
    patterns = schema.get("patternProperties", {})
    return name not in schema.get("properties", {}) and not any(validator.format_checker.finds(p, name) for p in patterns)


def _additional_properties(validator: Any, subschema: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, dict):
        for name, value in instance.items():
            if _is_extra(validator, name, schema):
                yield from _unwanted(validator, value, subschema, name)


def _unwanted(validator: Any, value: Any, subschema: Any, part: str | int) -> Errors:
    """What is wrong with a property or an item that only a keyword for the rest is about."""
    if subschema is False:
        # At the entry itself, so that each has its own fault.
        yield ValidationError("unexpected", path=[part])
    else:
        yield from validator.descend(value, subschema, path=part)


def _unevaluated_properties(validator: Any, subschema: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, dict):
        seen = _evaluated(validator, instance, schema, _properties_here, frozenset({"unevaluatedProperties"}))
        for name, value in instance.items():
            if name not in seen:
                yield from _unwanted(validator, value, subschema, name)


def _unevaluated_items(validator: Any, subschema: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if isinstance(instance, list):
        seen = _evaluated(validator, instance, schema, _items_here, frozenset({"unevaluatedItems"}))
        for i, value in enumerate(instance):
            if i not in seen:
                yield from _unwanted(validator, value, subschema, i)


def _at(validator: Any, subschema: Any) -> Any:
    """The validator of a schema right inside, which may have an address of its own."""
    return validator.evolve(schema=subschema, _resolver=validator._resolver.in_subresource(DRAFT202012.create_resource(subschema)))


def _properties_here(validator: Any, instance: dict[str, Any], schema: Mapping[str, Any]) -> set[Any]:
    if "unevaluatedProperties" in schema or "additionalProperties" in schema:
        return set(instance)  # the keyword was about all of the rest, and the schema around it asks only where it passed
    return {name for name in instance if not _is_extra(validator, name, schema)}


def _items_here(validator: Any, instance: list[Any], schema: Mapping[str, Any]) -> set[Any]:
    if "items" in schema or "unevaluatedItems" in schema:
        return set(range(len(instance)))
    seen = set(range(min(len(instance), len(schema.get("prefixItems", ())))))
    if "contains" in schema:
        matching = _at(validator, schema["contains"])
        seen |= {i for i, item in enumerate(instance) if matching.is_valid(item)}
    return seen


def _evaluated(validator: Any, instance: Any, schema: Any, here: Any, without: frozenset[str] = frozenset()) -> set[Any]:
    """The properties or items that a schema which the instance fits has looked at, itself or by schemas about the same value."""
    if not isinstance(schema, Mapping):
        return set()
    meter: _Meter = validator.format_checker
    meter.take(_LOOKS + _entries(instance) + _entries(schema))
    meter.enter()
    seen: set[Any] = here(validator, instance, {word: value for word, value in schema.items() if word not in without})
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            found = validator._resolver.lookup(schema[keyword])
            there = validator.evolve(schema=found.contents, _resolver=found.resolver)
            seen |= _evaluated(there, instance, found.contents, here)
    for subschema in _passing(validator, instance, schema):
        seen |= _evaluated(_at(validator, subschema), instance, subschema, here)
    meter.leave()
    return seen


def _passing(validator: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas right inside that are about the same value and that it fits."""

    def fits(subschema: Any) -> bool:
        return next(validator.descend(instance, subschema), None) is None

    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from filter(fits, schema.get(keyword, ()))
    for name, subschema in schema.get("dependentSchemas", {}).items():
        if isinstance(instance, dict) and name in instance:
            yield subschema
    if "if" in schema:
        fitting = fits(schema["if"])
        if fitting:
            yield schema["if"]
        branch = "then" if fitting else "else"
        if branch in schema:
            yield schema[branch]


_OWN: Mapping[str, Keyword] = {
    "additionalProperties": _additional_properties,
    "dependentRequired": _dependent_required,
    "format": _format,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    "required": _required,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}

_Validator: Any = extend(
    Draft202012Validator,
    {name: _counted(name, _OWN.get(name, judge)) for name, judge in Draft202012Validator.VALIDATORS.items()},
)

_descend = _Validator.descend


def _placed(validator: Any, instance: Any, schema: Any, path: Any = None, schema_path: Any = None, resolver: Any = None) -> Errors:
    """Go down to a schema inside. The library leaves out where, if that schema is false."""
    if schema is False:
        at, told = ([] if part is None else [part] for part in (path, schema_path))
        yield ValidationError("nothing fits", validator=None, path=at, schema_path=told, instance=instance, schema=schema)
    else:
        yield from _descend(validator, instance, schema, path, schema_path, resolver)


_Validator.descend = _placed


def errors_of(schema: Mapping[str, Any], value: Any, looks: int = MOST_LOOKS) -> list[ValidationError]:
    """Every fault of a value, in the schema's order. The schema is one that was declared here, both are copies for checks.

    looks: the most that it may take.

    Raises TooMuchWork.
    """
    return list(_validator(schema, Registry(), looks).iter_errors(value))


def errors_of_schema(schema: Any) -> Iterator[ValidationError]:
    """Where a schema is not as the draft wants it. Raises TooMuchWork."""
    yield from _validator(_META[DRAFT].contents, _META, MOST_LOOKS).iter_errors(schema)


def _validator(schema: Mapping[str, Any], registry: Any, looks: int) -> Any:
    return _Validator(schema, registry=registry, format_checker=_Meter(looks))


def _metaschemas() -> Any:
    """The draft's own schemas without a `$schema`, for which a validator gives way to one that does not count."""
    ours = ((uri, found.contents) for uri, found in REGISTRY.items() if uri.startswith(DRAFT.removesuffix("schema")))
    plain = ((uri, {word: value for word, value in found.items() if word != "$schema"}) for uri, found in ours)
    return Registry().with_resources((uri, DRAFT202012.create_resource(found)) for uri, found in plain)


_META = _metaschemas()
