"""Checking a schema when it is declared, so that nothing of it is passed over later (D-12)."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any

from referencing import Registry
from referencing.exceptions import NoSuchAnchor, PointerToNowhere, Unresolvable
from referencing.jsonschema import DRAFT202012

from agentplat.domain.errors import Violation
from agentplat.domain.schemas.formats import FORMATS
from agentplat.domain.schemas.judging import TooMuchWork, errors_of_schema
from agentplat.domain.schemas.keywords import ANNOTATIONS, KEYWORDS, NEEDS, OLD, SAME_PLACE, inner
from agentplat.domain.schemas.patterns import Pattern, WrongPattern
from agentplat.domain.schemas.values import pointer
from agentplat.domain.schemas.wording import expected, in_json

MOST_SCHEMAS = 1_000
MOST_PATTERNS = 64
_MOST_FAULTS = 50

_FOR_THE_REST = ("additionalProperties", "unevaluatedProperties")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A schema inside the declared one. path: from the root. resolver: of references in it."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    resolver: Any


@dataclass(slots=True)
class _Walk:
    """What was found on the way through a schema. leads: which schema holds its value against which others, by id."""

    strict: bool
    field: str
    faults: list[Violation] = dataclasses.field(default_factory=list)
    places: dict[int, _Place] = dataclasses.field(default_factory=dict)
    leads: dict[int, set[int]] = dataclasses.field(default_factory=dict)
    patterns: int = 0

    def fault(self, path: tuple[str, ...], reason: str, remedy: str) -> None:
        self.faults.append(Violation(field=f"{self.field}{pointer(path)}", reason=reason, remedy=remedy))


def faults_of(schema: Mapping[str, Any], field: str, *, strict: bool) -> list[Violation]:
    """What is wrong with a schema; it is a copy for checks, without a `$schema`. field: what its author calls it."""
    walk = _Walk(strict, field)
    try:
        for error in islice(errors_of_schema(schema), _MOST_FAULTS):
            walk.fault(tuple(map(str, error.absolute_path)), "is not as the draft wants it", f"write {expected(error)}")
    except TooMuchWork as much:
        walk.fault((), f"cannot be checked: {much}", "write a simpler schema")
    if not walk.faults:
        _go_through(walk, schema)
    if not walk.faults:
        _follow_references(walk)
    return list(dict.fromkeys(walk.faults))[:_MOST_FAULTS]


def _go_through(walk: _Walk, schema: Mapping[str, Any]) -> None:
    try:
        resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    except ValueError:
        walk.fault(("$id",), "is no address", "leave it out")
        return
    waiting = [_Place(path=(), schema=schema, resolver=resolver)]
    while waiting:
        place = waiting.pop()
        walk.places[id(place.schema)] = place
        if len(walk.places) > MOST_SCHEMAS:
            walk.fault((), "has too many schemas inside", f"use at most {MOST_SCHEMAS}")
            return
        _look_at(walk, place)
        waiting.extend(_inside(place))
    if walk.patterns > MOST_PATTERNS:
        walk.fault((), f"has {walk.patterns} regular expressions", f"use at most {MOST_PATTERNS}")


def _inside(place: _Place) -> Iterator[_Place]:
    for keyword, where, schema in inner(place.schema):
        if isinstance(schema, Mapping):
            resolver = place.resolver.in_subresource(DRAFT202012.create_resource(schema))
            yield _Place(path=(*place.path, keyword, *where), schema=schema, resolver=resolver)


def _look_at(walk: _Walk, place: _Place) -> None:
    schema, path = place.schema, place.path
    if "$schema" in schema:
        walk.fault((*path, "$schema"), "stands inside", "say the draft once, at the root")
    if "pattern" in schema:
        _look_at_pattern(walk, (*path, "pattern"), schema["pattern"])
    for pattern in schema.get("patternProperties", ()):
        _look_at_pattern(walk, (*path, "patternProperties", pattern), pattern)
    if walk.strict:
        _look_closer(walk, place)


def _look_at_pattern(walk: _Walk, path: tuple[str, ...], pattern: str) -> None:
    walk.patterns += 1
    try:
        Pattern(pattern)
    except WrongPattern as error:
        walk.fault(path, str(error), "write it in the syntax of RE2, without look-around and back-references")


def _look_closer(walk: _Walk, place: _Place) -> None:
    """What only strict mode refuses: whatever would be passed over when a value is held against the schema."""
    schema, path = place.schema, place.path
    for word in schema:
        if word not in KEYWORDS:
            walk.fault((*path, word), "is no keyword of draft 2020-12, so nothing would be checked by it", _instead(word))
        elif word in NEEDS and NEEDS[word] not in schema:
            walk.fault((*path, word), f"says nothing without {NEEDS[word]}", f"add {NEEDS[word]}, or leave it out")
    name = schema.get("format")
    if name is not None and name not in FORMATS:
        near = difflib.get_close_matches(name, sorted(FORMATS), n=1)
        remedy = f"did you mean {near[0]}?" if near else f"use one of {', '.join(sorted(FORMATS))}"
        walk.fault((*path, "format"), f"{in_json(name)} is no format that is asserted here", remedy)
    for word in _FOR_THE_REST:
        # An empty mapping lets everything in as `true` does, although Python counts it as false.
        if word in schema and _lets_everything_in(schema[word]):
            remedy = "write false to close the object, or a schema that the values have to fit"
            walk.fault((*path, word), "lets everything in", remedy)


def _lets_everything_in(schema: Any) -> bool:
    return schema is True or (isinstance(schema, Mapping) and set(schema) <= ANNOTATIONS)


def _instead(word: str) -> str:
    if word in OLD:
        return f"use {OLD[word]}"
    near = difflib.get_close_matches(word, sorted(KEYWORDS), n=1)
    return f"did you mean {near[0]}?" if near else "leave it out, or say it in description"


def _follow_references(walk: _Walk) -> None:
    for place in walk.places.values():
        leads = walk.leads[id(place.schema)] = set()
        for word in ("$ref", "$dynamicRef"):
            if word in place.schema:
                leads.update(_targets(walk, place, word))
        for keyword, _, schema in inner(place.schema):
            if keyword in SAME_PLACE and isinstance(schema, Mapping):
                leads.add(id(schema))
    if walk.faults:
        return
    try:
        TopologicalSorter(walk.leads).prepare()
    except CycleError as error:
        names = [pointer(walk.places[found].path) or "the root" for found in error.args[1]]
        remedy = "let the reference stand behind a keyword that takes the value apart, such as properties or items"
        walk.fault((), f"leads round without an end: {' ← '.join(names)}", remedy)


def _targets(walk: _Walk, place: _Place, word: str) -> Iterator[int]:
    path, reference = (*place.path, word), place.schema[word]
    try:
        found = place.resolver.lookup(reference).contents
    except (NoSuchAnchor, PointerToNowhere):
        walk.fault(path, "cannot be resolved: it leads nowhere in this schema", "name a schema that is there, such as #/$defs/NAME")
        return
    except (Unresolvable, ValueError, LookupError, TypeError):
        remedy = "put the schema under $defs and refer to it by #/$defs/NAME"
        walk.fault(path, "cannot be resolved: it leads outside of this schema, and nothing is ever fetched", remedy)
        return
    if id(found) in walk.places:
        yield id(found)
    elif not isinstance(found, bool):
        walk.fault(path, "cannot be resolved: it leads to something that is no schema here", "name a schema, such as #/$defs/NAME")
    if word == "$dynamicRef":
        anchor = reference.rpartition("#")[2]
        yield from (known for known, other in walk.places.items() if other.schema.get("$dynamicAnchor") == anchor)
