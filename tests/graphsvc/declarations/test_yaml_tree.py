from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.yaml_tree import documents, plain


def read(text):
    faults = Faults()
    [document] = documents(text, "any.yaml", faults)
    faults.raise_if_any()
    return plain(document)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("FALSE", False),
        ("12", 12),
        ("-012", -12),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-1e3", -1000.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("1e999", math.inf),
        ("'12'", "12"),
        ('"true"', "true"),
        ("yes", "yes"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ("a b", "a b"),
        ("9" * 200, "9" * 200),
        ("|\n  12\n  13\n", "12\n13\n"),
        (">-\n  a\n  b\n", "a b"),
    ],
)
def test_values_follow_the_core_schema_of_yaml_1_2(written, value):
    assert read(f"- {written}") == [value]


def test_not_a_number_is_a_number():
    assert math.isnan(read("[.nan]")[0])


_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_json_is_read_as_what_it_says(value):
    assert read(json.dumps(value)) == value
