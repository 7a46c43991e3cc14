"""Labels join, and the barrier lets data go where it may."""

from __future__ import annotations

from itertools import product

import pytest
from agentplat.domain.errors import InvalidInput
from agentplat.domain.labels import crossing, join, label_of, parse_label, parse_labels, texts

SCOPES = ["*", "acme", "acme/platform", "acme/finance", "acmeco", "globex", "globex/platform"]
MAY_GO = {
    "area:acme/platform": {"acme/platform", "acme", "*"},
    "company:acme": {"acme", "acme/platform", "acme/finance", "*"},
    "untrusted": set(SCOPES),
    "personal": set(SCOPES),
    "secret": set(SCOPES),
}


@pytest.mark.parametrize(("label", "scope"), list(product(MAY_GO, SCOPES)))
def test_data_stays_in_its_area_or_company_and_may_go_up(label: str, scope: str) -> None:
    found = crossing(parse_labels(["untrusted", label]), scope)
    assert (found is None) == (scope in MAY_GO[label])
    if found is not None:
        assert (found.label.text, found.into) == (label, scope)
        assert "stays in it" in found.rule


def test_labels_join_and_are_kept_sorted_and_once() -> None:
    parts = (parse_labels(["untrusted", "area:acme/platform"]), parse_labels(["untrusted"]), parse_labels([]))
    assert texts(join(*parts)) == ("area:acme/platform", "untrusted")


def test_what_an_agent_makes_begins_with_its_scopes_label() -> None:
    assert [texts(label_of(scope)) for scope in ("*", "acme", "acme/platform")] == [
        (),
        ("company:acme",),
        ("area:acme/platform",),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Untrusted",
        "trusted",
        "company:",
        "company:acme/platform",
        "area:acme",
        "area:/x",
        "area:a/",
        "area:a/b/c",
        "area:a:b/c",
    ],
)
def test_a_text_that_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no label"):
        parse_label(text)
