"""Limits of a search: defaults, least values and the server's ceilings."""

from __future__ import annotations

import pytest

from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.limits import LimitPolicy, Limits

POLICY = LimitPolicy(default=Limits(max_loops=20, max_visits=5_000, chain_limit=6), ceiling=Limits(max_loops=50, max_visits=9_000))


@pytest.mark.promise("G-7", "G-6")
def test_limits_that_nobody_names_are_those_of_the_specification() -> None:
    assert Limits().as_json() == {"max_loops": 10, "max_visits": 1_000_000, "chain_limit": 8}


@pytest.mark.promise("G-7")
@pytest.mark.parametrize(
    ("asked", "applied"),
    [
        ((None, None), (20, 5_000)),
        ((3, None), (3, 5_000)),
        ((None, 7), (20, 7)),
        ((50, 9_000), (50, 9_000)),
        ((51, 9_001), (50, 9_000)),
        ((10**12, 10**12), (50, 9_000)),
        ((1, 0), (1, 0)),
    ],
)
def test_a_request_gets_what_it_asks_for_up_to_the_ceiling(asked: tuple[int | None, int | None], applied: tuple[int, int]) -> None:
    limits = POLICY.apply(*asked)
    assert (limits.max_loops, limits.max_visits) == applied
    assert limits.chain_limit == 6


@pytest.mark.promise("G-7")
def test_a_default_above_the_ceiling_is_capped_too() -> None:
    policy = LimitPolicy(default=Limits(), ceiling=Limits(max_loops=4, max_visits=100))
    assert policy.apply(None, None) == Limits(max_loops=4, max_visits=100)


@pytest.mark.promise("G-7", "G-24")
@pytest.mark.parametrize(("field", "value"), [("max_loops", 0), ("max_loops", -3), ("max_visits", -1)])
def test_a_limit_below_its_least_is_refused_by_name(field: str, value: int) -> None:
    asked = {"max_loops": None, "max_visits": None, field: value}
    with pytest.raises(InvalidInput) as caught:
        POLICY.apply(**asked)
    (violation,) = caught.value.violations
    assert (violation.field, violation.reason) == (f"limits.{field}", f"is {value}")
    assert "at least" in violation.remedy
