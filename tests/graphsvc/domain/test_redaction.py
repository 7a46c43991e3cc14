"""Who may read which scope, and where the data barrier stands."""

from __future__ import annotations

from itertools import product

import pytest

from graphsvc.domain.names import Scope, parse_scope
from graphsvc.domain.redaction import EVERYTHING, barrier_stops, reader_of

SCOPES = [parse_scope(text) for text in ("*", "acme", "acme/platform", "acme/finance", "globex", "globex/platform")]


@pytest.mark.promise("G-13")
def test_a_reader_may_read_exactly_what_one_of_their_scopes_contains() -> None:
    for own, other, asked in product(SCOPES, SCOPES, SCOPES):
        assert reader_of([own, other]).may_read(asked) == (own.contains(asked) or other.contains(asked)), (own, other, asked)


@pytest.mark.promise("G-13")
def test_a_reader_without_scopes_may_read_nothing() -> None:
    assert not any(reader_of([]).may_read(scope) for scope in SCOPES)


@pytest.mark.promise("G-21")
def test_only_a_reader_of_the_installation_reads_everything() -> None:
    assert [scope.text for scope in SCOPES if reader_of([scope]).reads_everything] == ["*"]
    assert EVERYTHING.reads_everything
    assert not reader_of(SCOPES[1:]).reads_everything


@pytest.mark.promise("O-5")
@pytest.mark.parametrize(
    ("narrow", "wide", "within"),
    [
        (["acme/platform"], ["acme"], True),
        (["acme/platform", "globex"], ["*"], True),
        (["acme/platform", "acme/finance"], ["acme/platform", "acme"], True),
        (["acme"], ["acme/platform", "acme/finance"], False),
        (["acme/platform", "globex"], ["acme"], False),
        (["*"], ["acme", "globex"], False),
        ([], ["acme"], True),
    ],
)
def test_one_reader_is_within_another_who_may_read_all_of_their_scopes(narrow: list[str], wide: list[str], within: bool) -> None:
    assert reader_of(map(parse_scope, narrow)).within(reader_of(map(parse_scope, wide))) is within


@pytest.mark.promise("G-6")
@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("acme/platform", ["*", "acme", "acme/platform"]),
        ("acme", ["*", "acme", "acme/platform", "acme/finance"]),
        ("globex/platform", ["*", "globex", "globex/platform"]),
        ("*", [scope.text for scope in SCOPES]),
    ],
)
def test_labelled_data_may_go_up_to_its_company_and_the_installation_and_nowhere_else(source: str, allowed: list[str]) -> None:
    passed = [target.text for target in SCOPES if not barrier_stops(parse_scope(source), target)]
    assert passed == allowed


@pytest.mark.promise("G-6")
def test_areas_of_one_name_in_two_companies_are_not_one_place() -> None:
    assert barrier_stops(Scope("acme", "platform"), Scope("globex", "platform"))
