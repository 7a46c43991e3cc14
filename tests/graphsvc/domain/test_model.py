"""Declarations: what they take and refuse, and that their content alone counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import MAX_EVENTS, MAX_VERSION_NUMBER, Declaration, Emit, check_number, declare

EVENTS = [f"event {i}" for i in range(MAX_EVENTS + 1)]


@pytest.mark.promise("G-24")
@pytest.mark.parametrize(
    ("emits", "listens", "faults"),
    [
        ("order", None, ["emits is not a list"]),
        (None, "order", ["listens is not a list"]),
        ({"event": "order"}, 5, ["emits is not a list", "listens is not a list"]),
        ([7], None, ["emits[0] is of type int"]),
        ([None], None, ["emits[0] is of type NoneType"]),
        ([["order"]], None, ["emits[0] is of type list"]),
        ([{"context": "order"}], None, ["emits[0].event is missing"]),
        ([{"event": "a", "artefacts": []}], None, ["emits[0].artefacts is not a field of an emitted event"]),
        ([{"event": "a", "artifacts": "plan"}], None, ["emits[0].artifacts is not a list"]),
        ([{"event": "a", "artifacts": ["plan", 3]}], None, ["emits[0].artifacts[1] is of type int"]),
        ([{"event": "a", "artifacts": ["plan", "risk", "plan"]}], None, ["emits[0].artifacts[2] repeats emits[0].artifacts[0]"]),
        ([{"event": "a", "artifacts": EVENTS}], None, ["emits[0].artifacts has 1001 names"]),
        ([{"event": "a", "context": ""}], None, ["emits[0].context is empty"]),
        ([{"event": "a"}, "b", "a"], None, ["emits[2] repeats emits[0]"]),
        (["e\u0301"], ["b", "\u00e9", "e\u0301"], ["listens[2] repeats listens[1]"]),
        (None, [{"event": "a"}], ["listens[0] is of type dict"]),
        (
            ["ok", ""],
            ["a\x00", "ok", " b"],
            ["emits[1] is empty", "listens[0] has a control character", "listens[2] begins or ends"],
        ),
        (EVENTS, None, ["emits has 1001 events"]),
        (None, EVENTS, ["listens has 1001 events"]),
        (EVENTS[:501], EVENTS[:500], ["emits and listens have 1001 events together"]),
    ],
)
def test_a_faulty_declaration_is_refused_whole_with_each_of_its_faults(emits: object, listens: object, faults: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        declare(emits, listens, "agents.jsonl:4")
    found = [f"{violation.field} {violation.reason}" for violation in caught.value.violations]
    assert len(found) == len(faults)
    assert [text for text, fault in zip(found, faults, strict=True) if not text.startswith(fault)] == []
    assert {violation.place for violation in caught.value.violations} == {"agents.jsonl:4"}
    assert all(violation.remedy for violation in caught.value.violations)


@pytest.mark.promise("G-24")
def test_a_thousand_events_are_taken() -> None:
    declaration = declare(EVENTS[:500], EVENTS[:500])
    assert (len(declaration.emits), len(declaration.listens)) == (500, 500)


def test_nothing_declared_is_an_empty_declaration() -> None:
    assert declare(None, None) == declare([], []) == Declaration()


def test_an_artifact_contract_is_kept_with_its_event() -> None:
    triaged = {"event": "incident.triaged", "context": "incident", "artifacts": ["triage_summary", "suspected_cause"]}
    declaration = declare([triaged, "incident.closed"], None)
    kept = Emit("incident.triaged", "incident", ("suspected_cause", "triage_summary"))
    assert declaration.emits == (Emit("incident.closed"), kept)
    assert declaration.as_json()["emits"] == [
        "incident.closed",
        {"event": "incident.triaged", "context": "incident", "artifacts": ["suspected_cause", "triage_summary"]},
    ]


@pytest.mark.promise("G-11")
@given(
    st.lists(st.text("abé", min_size=1, max_size=3), unique=True),
    st.lists(st.text("abé", min_size=1, max_size=3), unique=True),
    st.randoms(),
)
def test_the_order_in_which_events_are_written_changes_nothing(emits: list[str], listens: list[str], shuffle: object) -> None:
    again = [emits.copy(), listens.copy()]
    for events in again:
        shuffle.shuffle(events)
    as_mappings = [{"event": event, "artifacts": None} for event in again[0]]
    first = declare(emits, listens)
    assert first == declare(*again) == declare(as_mappings, tuple(again[1]))


@pytest.mark.promise("G-22")
def test_versions_with_other_contracts_have_other_content() -> None:
    assert declare(["b", "a"], ["c"]) != declare(["a", {"event": "b", "artifacts": ["plan"]}], ["c"])


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("number", [0, -1, MAX_VERSION_NUMBER + 1, 1.0, "1", True, None])
def test_a_number_that_is_no_version_is_refused(number: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_number(number, "version", "agents.jsonl:9")
    (violation,) = caught.value.violations
    assert (violation.field, violation.place) == ("version", "agents.jsonl:9")


def test_the_least_and_the_greatest_version_number_are_taken() -> None:
    assert (check_number(1), check_number(MAX_VERSION_NUMBER)) == (1, 2_147_483_647)
