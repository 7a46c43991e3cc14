"""Names and scopes: what is taken, what is refused, and in which order agents come."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.names import MAX_NAME_BYTES, AgentRef, Scope, normalise, parse_agent, parse_scope, scope_of


@pytest.mark.promise("G-24")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        (" ", "white space"),
        ("order ", "white space"),
        ("\u00a0order", "white space"),
        ("\u3000order", "white space"),
        ("or\x00der", "a control character (U+0000) at character 3"),
        ("or\nder", "a control character (U+000A) at character 3"),
        ("order\x7f!", "a control character (U+007F)"),
        ("order\x85!", "a control character (U+0085)"),
        ("or\u2028der", "a line separator (U+2028)"),
        ("or\u2029der", "a paragraph separator (U+2029)"),
        ("or\u202eder", "a bidirectional control (U+202E)"),
        ("or\u2066der", "a bidirectional control (U+2066)"),
        ("\u200forder", "a bidirectional control (U+200F) at character 1"),
        ("\u061corder", "a bidirectional control (U+061C)"),
        ("or\u0378der", "an unassigned character (U+0378)"),
        ("or\ud800der", "half of a surrogate pair (U+D800)"),
        ("x" * (MAX_NAME_BYTES + 1), "is 257 bytes long"),
        ("ש" * (MAX_NAME_BYTES // 2 + 1), "is 258 bytes long"),
        (None, "is of type NoneType"),
        (7, "is of type int"),
        (True, "is of type bool"),
        (b"order", "is of type bytes"),
        (["order"], "is of type list"),
    ],
)
def test_a_faulty_name_is_refused_with_field_place_reason_and_remedy(text: object, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        normalise(text, "emits[2].event", "agents.yaml:7:12")
    (violation,) = caught.value.violations
    assert (violation.field, violation.place) == ("emits[2].event", "agents.yaml:7:12")
    assert reason in violation.reason
    assert violation.remedy


@pytest.mark.promise("G-24")
@pytest.mark.parametrize(
    "text",
    [
        "order",
        "order placed",
        "pedido/criado:2",
        "*",
        "הזמנה",
        "zażółć",
        "x" * MAX_NAME_BYTES,
        "ש" * (MAX_NAME_BYTES // 2),
        "👩\u200d🚀",
    ],
)
def test_names_of_every_language_and_up_to_the_last_byte_are_taken_as_they_are(text: str) -> None:
    assert normalise(text, "agent") == text


@pytest.mark.promise("G-24")
def test_two_ways_to_write_one_name_are_one_name() -> None:
    decomposed = unicodedata.normalize("NFD", "révision")
    assert decomposed != "révision"
    assert normalise(decomposed, "agent") == normalise("révision", "agent") == "révision"


@pytest.mark.promise("G-24")
def test_length_is_measured_after_normalisation() -> None:
    decomposed = unicodedata.normalize("NFD", "é" * (MAX_NAME_BYTES // 2))
    assert len(decomposed.encode()) > MAX_NAME_BYTES
    assert normalise(decomposed, "agent") == "é" * (MAX_NAME_BYTES // 2)


@pytest.mark.promise("G-24")
@given(st.text(st.characters(codec=None), max_size=300))
def test_a_name_that_is_taken_obeys_every_rule_and_stays_what_it_is(text: str) -> None:
    try:
        name = normalise(text, "agent")
    except InvalidInput:
        return
    assert 0 < len(name.encode()) <= MAX_NAME_BYTES
    assert name == name.strip() == unicodedata.normalize("NFC", text)
    assert not {unicodedata.category(character) for character in name} & {"Cc", "Cs", "Cn", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(character) for character in name} & {
        "LRE",
        "RLE",
        "LRO",
        "RLO",
        "PDF",
        "LRI",
        "RLI",
        "FSI",
        "PDI",
    }
    assert normalise(name, "agent") == name


@pytest.mark.promise("G-24")
@pytest.mark.parametrize(
    ("company", "area", "field", "reason"),
    [
        ("ac/me", None, "company", "has a '/'"),
        ("ac:me", None, "company", "has a ':'"),
        ("acme", "plat/form", "area", "has a '/'"),
        ("acme", "plat:form", "area", "has a ':'"),
        ("*", None, "company", "stands for the whole installation"),
        ("acme", "*", "area", "stands for the whole installation"),
        ("", None, "company", "is empty"),
        ("acme", "", "area", "is empty"),
        (None, "platform", "area", "without a company"),
    ],
)
def test_a_faulty_scope_is_refused_at_its_part(company: str | None, area: str | None, field: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        scope_of(company, area, "metadata", "agents.yaml:3")
    (violation,) = caught.value.violations
    assert (violation.field, violation.place) == (f"metadata.{field}", "agents.yaml:3")
    assert reason in violation.reason


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("text", ["", "acme/", "/platform", "acme/platform/x", "*/platform", "acme:x", None, 3])
def test_a_text_that_is_no_scope_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput):
        parse_scope(text)


@pytest.mark.parametrize(
    ("text", "scope"),
    [("*", Scope()), ("acme", Scope("acme")), ("acme/platform", Scope("acme", "platform"))],
)
def test_a_scope_is_read_back_from_its_text(text: str, scope: Scope) -> None:
    assert parse_scope(text) == scope
    assert scope.text == str(scope) == text


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("acme/platform:developer", AgentRef(Scope("acme", "platform"), "developer")),
        ("acme:developer", AgentRef(Scope("acme"), "developer")),
        ("*:developer", AgentRef(Scope(), "developer")),
        ("acme:dev:2/a", AgentRef(Scope("acme"), "dev:2/a")),
    ],
)
def test_a_reference_is_split_at_its_first_colon_and_read_back_from_its_text(text: str, agent: AgentRef) -> None:
    assert parse_agent(text) == agent
    assert agent.text == str(agent) == text


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("text", ["developer", ":developer", "acme:", "acme/:developer", "a/b/c:developer", None, 5])
def test_a_text_that_is_no_reference_is_refused(text: object) -> None:
    with pytest.raises(InvalidInput):
        parse_agent(text)


@pytest.mark.promise("G-13")
@pytest.mark.parametrize(
    ("outer", "inner", "contains"),
    [
        ("*", "*", True),
        ("*", "acme", True),
        ("*", "acme/platform", True),
        ("acme", "acme", True),
        ("acme", "acme/platform", True),
        ("acme", "*", False),
        ("acme", "globex", False),
        ("acme", "globex/platform", False),
        ("acme/platform", "acme/platform", True),
        ("acme/platform", "acme", False),
        ("acme/platform", "acme/finance", False),
        ("acme/platform", "globex/platform", False),
    ],
)
def test_a_scope_contains_itself_and_what_lies_below_it(outer: str, inner: str, contains: bool) -> None:
    assert parse_scope(outer).contains(parse_scope(inner)) is contains


@pytest.mark.promise("G-5")
def test_agents_are_ordered_by_name_and_then_by_scope_text_both_by_code_point() -> None:
    beyond_latin = ["acme:😀", "acme:\ufb33"]
    written = [*beyond_latin, "acme/platform:alpha", "acme:zeta", "b:alpha", "acme-labs:alpha", "acme:Zeta", "acme:alpha", "*:Zeta"]
    latin = ["*:Zeta", "acme:Zeta", "acme:alpha", "acme-labs:alpha", "acme/platform:alpha", "b:alpha", "acme:zeta"]
    in_order = sorted(map(parse_agent, written), key=lambda agent: agent.order)
    assert [agent.text for agent in in_order] == [*latin, "acme:\u05d3\u05bc", "acme:😀"]
