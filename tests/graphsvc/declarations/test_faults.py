from __future__ import annotations

import pytest

from graphsvc.declarations.faults import MAX_LISTED, Faults
from graphsvc.domain.errors import InvalidInput


def found(count: int) -> Faults:
    faults = Faults()
    for i in range(count):
        faults.refuse(f"field {i}", "file:1", "is wrong", "right it")
    return faults


def told(faults: Faults) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        faults.raise_if_any()
    return [str(violation) for violation in caught.value.violations]


def test_nothing_wrong_raises_nothing():
    Faults().raise_if_any()


@pytest.mark.promise("G-24")
def test_as_many_as_are_listed_are_listed_alone():
    assert told(found(MAX_LISTED))[-1] == f"file:1: field {MAX_LISTED - 1}: is wrong; right it"


@pytest.mark.promise("G-24")
def test_the_rest_is_counted_over_several_collections():
    both = found(MAX_LISTED + 3)
    both.extend(found(MAX_LISTED + 4))
    assert len(both) == 2 * MAX_LISTED + 7
    assert len(told(both)) == MAX_LISTED + 1
    assert told(both)[-1] == f"input: and {MAX_LISTED + 7} more faults; mend those listed, then look again"
