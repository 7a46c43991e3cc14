"""Output contracts beside the library that they are made with: what is our own in them must not judge otherwise than the draft."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from agentplat.domain.contracts import SCHEMA_FIELD, ContractMode, OutputContract
from agentplat.domain.schemas.judging import TooMuchWork, errors_of
from agentplat.domain.schemas.values import taken_in
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

NAMES = st.sampled_from(["a", "b", "ab", "c"])
LEAVES: st.SearchStrategy[Any] = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2, 2.5, "a", "ab", ""])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8)
PATTERNS = st.sampled_from(["a", "^b", "c$"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "additionalProperties": inner,
            "allOf": several,
            "anyOf": several,
            "contains": inner,
            "const": LEAVES,
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=2), max_size=2),
            "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
            "else": inner,
            "if": inner,
            "items": inner,
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "not": inner,
            "oneOf": several,
            "pattern": PATTERNS,
            "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
            "prefixItems": several,
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "propertyNames": inner,
            "required": st.lists(NAMES, unique=True, max_size=2),
            "then": inner,
            "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"]),
            "unevaluatedItems": inner,
            "unevaluatedProperties": inner,
            "uniqueItems": st.booleans(),
        },
    )


SCHEMAS = st.recursive(st.booleans() | st.just({}), _schemas, max_leaves=6).filter(lambda schema: isinstance(schema, dict))


@pytest.mark.promise("D-12")
@given(SCHEMAS, VALUES)
def test_a_value_fits_a_schema_here_if_it_fits_it_by_the_library(schema: Any, value: Any) -> None:
    contract, _ = taken_in(schema, SCHEMA_FIELD, 10**6)
    output, _ = taken_in(value, "output", 10**6)
    try:
        errors = errors_of(contract, output)
    except TooMuchWork:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (not errors) is Draft202012Validator(schema).is_valid(value)


@given(SCHEMAS, VALUES)
def test_every_fault_can_be_put_in_words(schema: Any, value: Any) -> None:
    contract = OutputContract(schema=taken_in(schema, SCHEMA_FIELD, 10**6)[1].decode(), mode=ContractMode.STRICT)
    found = contract.check(value)
    assert all(fault.expected for fault in found.faults)
