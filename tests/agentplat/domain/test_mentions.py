"""What counts as a mention or a reference, whom a name means, and how to write one that means nobody else."""

from __future__ import annotations

import unicodedata

import pytest
from agentplat.domain.errors import InvalidInput
from agentplat.domain.mentions import Parsed, matching, mention_of, parse, resolve
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Party, PartyKind
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.promise("W-8")


def _party(text: str, number: int = 0, kind: PartyKind = PartyKind.AGENT) -> Party:
    scope, _, name = text.partition(":")
    return Party(kind=kind, id=number, ref=Ref(scope, name))


def _parties(*texts: str) -> list[Party]:
    return [_party(text, number) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "mentions", "tickets", "alone"),
    [
        ("@dev mend #12, please", ("dev",), (12,), False),
        ("@dev", ("dev",), (), True),
        (" @dev, @ops!\n", ("dev", "ops"), (), True),
        ("@dev #12", ("dev",), (12,), False),
        ("@dev @dev @Dev", ("dev", "Dev"), (), True),
        ("ask (@dev): now", ("dev",), (), False),
        ("@dev. Then @acme/platform:ops:", ("dev", "acme/platform:ops"), (), False),
        ("@code-reviewer_2.0 go", ("code-reviewer_2.0",), (), False),
        ('@"a name" go', ("a name",), (), False),
        (r'@"say \"hi\" \\" go', (r'say "hi" \\'[:-1],), (), False),
        ("ana@acme.example and a+@b", (), (), False),
        ("@ alone, a# and # b and #x and #12th", (), (), False),
        ("&#39; x#3 #3#4 (#5)", (), (3, 5), False),
        ("`@dev` and ```\n@ops #1\n``` but @dev", ("dev",), (), False),
        ("a ` stray tick @dev", ("dev",), (), False),
        ("`` ` @no `` @yes", ("yes",), (), False),
        ("@מפתח תקן את #7", ("מפתח",), (7,), False),
        ("@हिन्दी go", ("हिन्दी",), (), False),
        ("@de\u0301v", ("d\u00e9v",), (), True),
        ("", (), (), True),
    ],
)
def test_a_text_is_read_for_mentions_and_references(
    text: str, mentions: tuple[str, ...], tickets: tuple[int, ...], alone: bool
) -> None:
    assert parse(text) == Parsed(mentions=mentions, tickets=tickets, alone=alone)


@pytest.mark.parametrize("text", ['@"dev', '@"dev\n"', '@""', '@" "', "#1234567890", " ".join(f"@a{i}" for i in range(21))])
def test_a_mention_without_an_end_and_too_many_are_errors(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse(text)
    assert [violation.field for violation in refusal.value.violations] == ["body"]


def test_long_hostile_texts_are_read_at_once() -> None:
    for text in ("`" * 60_000, "` `` ``` " * 7_000, "@" * 60_000, "#" * 60_000, '@"' + "\\" * 60_000):
        try:
            parse(text)
        except InvalidInput:
            continue


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("developer", "acme/platform:developer"),
        ("DEVELOPER", "acme/platform:developer"),
        ("dev", "acme/platform:developer"),
        ("Test", "acme/platform:Test"),
        ("test", "acme/platform:test"),
        ("tester", "acme/platform:tester"),
        ("acme/platform:rev", "acme/platform:reviewer"),
        ("ACME/finance:reviewer", "acme/finance:reviewer"),
        ("strasse", "acme/platform:Straße"),
    ],
)
def test_a_name_means_the_exact_one_then_the_same_in_another_case_then_the_one_it_begins(written: str, meant: str) -> None:
    names = ("developer", "Test", "test", "tester", "reviewer", "Straße")
    among = _parties(*(f"acme/platform:{name}" for name in names), "acme/finance:reviewer")
    assert resolve(written, among, "this workspace").ref.text == meant


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("TEST", "@TEST is ambiguous: it may mean acme/platform:Test, acme/platform:test"),
        ("reviewer", "@reviewer is ambiguous: it may mean acme/finance:reviewer, acme/platform:reviewer"),
        ("t", "@t is ambiguous: it may mean acme/platform:Test, acme/platform:test, acme/platform:tester"),
        ("nobody", "@nobody means nobody in this workspace"),
        ("acme", "@acme means nobody in this workspace"),
    ],
)
def test_an_ambiguous_name_and_one_of_nobody_are_errors_that_say_so(written: str, reason: str) -> None:
    among = _parties(*(f"acme/platform:{name}" for name in ("Test", "test", "tester", "reviewer")), "acme/finance:reviewer")
    with pytest.raises(InvalidInput) as refusal:
        resolve(written, among, "this workspace")
    assert [violation.reason for violation in refusal.value.violations] == [reason]


def test_an_error_lists_ten_candidates_at_most() -> None:
    with pytest.raises(InvalidInput, match="a:x09 and 5 more"):
        resolve("x", _parties(*(f"a:x{i:02}" for i in range(15))), "this workspace")


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    lambda name: name == name.strip()
)


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_what_completion_puts_in_means_whom_it_was_made_for(names: list[str]) -> None:
    normal = list(dict.fromkeys(unicodedata.normalize("NFC", name) for name in names))
    among = _parties(*(f"acme/{area}:{name}" for name in normal for area in ("one", "two")))
    for party in among:
        parsed = parse(f"please {mention_of(party, among)} go")
        assert len(parsed.mentions) == 1
        assert matching(parsed.mentions[0], among) == [party]
