"""Canonical JSON is what the RFC says, for the values that reports have."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.domain.canonical import canonical_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.text(st.characters(codec="ascii"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@pytest.mark.promise("G-11")
@given(VALUES)
def test_the_bytes_are_those_of_a_library_for_the_whole_rfc(value: object) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)  # type: ignore[arg-type]
