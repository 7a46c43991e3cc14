from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.columns import columns_of
from graphsvc.declarations.portions import portions
from tests.graphsvc.declarations.worlds import versions


@given(versions(st.just(0)), st.integers(1, 5), st.integers(1, 6), st.lists(st.integers(0, 8), max_size=4))
def test_portions_are_the_same_versions_cut_alike_however_they_come(catalogue, most, most_events, cuts):
    whole = columns_of(catalogue)
    ends = sorted({0, len(catalogue), *(cut for cut in cuts if cut < len(catalogue))})
    parts = [whole.taken(np.arange(first, end)) for first, end in pairwise(ends)]
    found = [portion.versions() for portion in portions(parts, most, most_events)]
    assert [version for portion in found for version in portion] == catalogue
    assert found == [portion.versions() for portion in portions([whole], most, most_events)]
    for portion in found:
        events = sum(len(version.declaration.emits) + len(version.declaration.listens) for version in portion)
        assert len(portion) == 1 or (len(portion) <= most and events <= most_events) or not catalogue


def test_no_versions_are_one_empty_portion():
    assert [portion.size for portion in portions([], 10)] == [0]
