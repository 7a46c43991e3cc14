"""Each format that is asserted, with values that are of it and values that are not."""

from __future__ import annotations

import pytest
from agentplat.domain.contracts import declare
from agentplat.domain.schemas.formats import FORMATS, MOST_CHARACTERS, conforms

VALUES: dict[str, tuple[list[str], list[str]]] = {
    "date": (["2024-02-29"], ["2023-02-29", "2024-2-9", "29.02.2024", "２024-02-29", ""]),
    "date-time": (
        ["2024-02-29T23:59:59Z", "2024-01-01t00:00:00.25+01:00"],
        ["not a date", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01T25:00:00Z"],
    ),
    "duration": (["P1Y2M3DT4H", "PT0S"], ["1Y", "P", "PT", "P1Y2W"]),
    "email": (
        ["a.b@example.org", '"a b"@example.org', "a@[127.0.0.1]"],
        ["a", "@", "a@", "@b.org", "a..b@c.org", "a@b@c", "a b@c.org", "a@[1.2.3.400]"],
    ),
    "hostname": (["example.org", "a-b", "x"], ["-a", "a_b", "", "a..b", "a" * 64, "ä.org"]),
    "idn-email": (["ö@exämple.org"], ["ö", "ö@", "ö@-"]),
    "idn-hostname": (["exämple.org"], ["", "a..b", "-ä"]),
    "ipv4": (["127.0.0.1"], ["127.0.0.256", "127.1", "01.2.3.4", "::1"]),
    "ipv6": (["::1", "2001:db8::7"], ["1.2.3.4", ":::", "fe80::1%eth0"]),
    "iri": (["https://exämple.org/ä?ö#ü", "urn:x:y"], ["/ä", "https://a b", "ä", ""]),
    "iri-reference": (["/ä", "ä#ö", ""], ["a b", "\\ä", "%zz"]),
    "json-pointer": (["", "/a/0", "/a~1b"], ["a", "/a~2", "#/a"]),
    "regex": (["^a+$", "[a-z]{3}"], ["(", "[", "(?=a)", "*"]),
    "relative-json-pointer": (["0", "1/a", "0#"], ["", "/a", "01", "-1", "²", "0##"]),
    "time": (["12:00:00Z", "23:59:59.5+02:00"], ["12:00", "24:00:00Z", "noon"]),
    "uri": (["https://example.org/a?b#c", "urn:x:y"], ["/a", "a b", "https://exämple.org", "//a", ""]),
    "uri-reference": (["/a", "../b", "#c", ""], ["a b", "\\", "ä"]),
    "uri-template": (["/a/{b}{?c,d}", ""], ["{", "/{a", "{b}}"]),
    "uuid": (
        ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa", "x", "２eb8aa08-aa98-11ea-b4aa-73b441d16380"],
    ),
}


def test_these_are_all_formats_of_the_draft() -> None:
    assert frozenset(VALUES) == FORMATS


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_format_is_asserted(name: str) -> None:
    right, wrong = VALUES[name]
    contract = declare({"type": "string", "format": name})
    assert [value for value in right if contract.check(value).faults] == []
    assert [value for value in wrong if not contract.check(value).faults] == []
    assert str(contract.check(wrong[0]).faults[0]).endswith(f'expected a text of the format "{name}"')


@pytest.mark.parametrize("name", sorted(VALUES))
@pytest.mark.parametrize(
    "text",
    ["a" * (MOST_CHARACTERS + 1), "(" * 5_000, "1." * 4_000, "/" * 8_000, "é." * 4_000, "{" * 8_000, "٣", "\0", "\ud83d\ude00"],
)
def test_no_text_is_too_odd_to_be_told_of_a_format_or_not(name: str, text: str) -> None:
    assert conforms(name, text) in (True, False)


def test_a_format_is_about_texts_alone() -> None:
    assert not declare({"format": "date"}).check(7).faults
