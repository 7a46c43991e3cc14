"""The keywords of draft 2020-12, by what stands behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"

SCHEMA_IN = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Behind these stands a schema."""

SCHEMAS_IN_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Behind these stands a list of schemas."""

SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Behind these stand schemas by name."""

SAME_PLACE = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Their schemas are held against the very value that the schema around them is held against."""

ANNOTATIONS = frozenset(
    {
        "$comment",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""They say something to people and refuse nothing."""

KEYWORDS = (
    SCHEMA_IN
    | SCHEMAS_IN_LIST
    | SCHEMAS_BY_NAME
    | ANNOTATIONS
    | {
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$ref",
        "$schema",
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    }
)
"""All that a schema may have; `$vocabulary` is for schemas of schemas."""

NEEDS: Mapping[str, str] = {"else": "if", "maxContains": "contains", "minContains": "contains", "then": "if"}
"""Keywords that say nothing without another one."""

OLD: Mapping[str, str] = {
    "$recursiveAnchor": "$dynamicAnchor",
    "$recursiveRef": "$dynamicRef",
    "additionalItems": "items, behind prefixItems",
    "dependencies": "dependentRequired or dependentSchemas",
    "id": "$id",
}
"""Keywords of older drafts, and what took their place."""


def inner(schema: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """The schemas right inside a schema: keyword, where from there, and the schema itself, which may be of any type."""
    for keyword, value in schema.items():
        if keyword in SCHEMA_IN:
            yield keyword, (), value
        elif keyword in SCHEMAS_IN_LIST and isinstance(value, list):
            yield from ((keyword, (str(i),), one) for i, one in enumerate(value))
        elif keyword in SCHEMAS_BY_NAME and isinstance(value, Mapping):
            yield from ((keyword, (name,), one) for name, one in value.items())
