"""Formats that are asserted, each by a library where there is a sound one for it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping

from fqdn import FQDN
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import FormatError

from agentplat.domain.schemas.patterns import Pattern, WrongPattern

MOST_CHARACTERS = 8_192
"""A longer text is of no format."""

_LIBRARY: FormatChecker = Draft202012Validator.FORMAT_CHECKER

_ASCII = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uri-reference", "uuid"})
"""Formats that have ASCII only. Digits of other scripts pass for digits in many a library."""

_OUTSIDE_ASCII = re.compile(
    "[\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(f"{chr(p << 16)}-{chr((p << 16) + 0xFFFD)}" for p in range(1, 15)) + "]"
)
"""What an IRI has beyond a URI (RFC 3987, ucschar); private characters are left out, as they mean nothing to anybody else."""

_ATOM = r"[\w!#$%&'*+/=?^`{|}~-]+"
_LOCAL = re.compile(rf'{_ATOM}(\.{_ATOM})*|"([^"\\\r\n]|\\[ -~])*"')


def _by_library(name: str) -> Callable[[str], bool]:
    def conforms(text: str) -> bool:
        return bool(_LIBRARY.conforms(text, name))

    return conforms


def _is_email(text: str) -> bool:
    local, _, host = text.rpartition("@")
    if len(local) > 64 or _LOCAL.fullmatch(local) is None:
        return False
    if not (host.startswith("[") and host.endswith("]")):
        conforms = _by_library("hostname" if host.isascii() else "idn-hostname")
        return bool(host) and conforms(host)
    literal = host[1:-1]
    if literal.startswith("IPv6:"):
        return bool(ipaddress.IPv6Address(literal.removeprefix("IPv6:")))
    return bool(ipaddress.IPv4Address(literal))


def _is_hostname(text: str) -> bool:
    return bool(text) and not text.endswith(".") and bool(FQDN(text, min_labels=1).is_valid)


def _is_uri_like(name: str) -> Callable[[str], bool]:
    """An IRI is a URI once what lies outside ASCII is percent-encoded (RFC 3987, 3.1)."""

    def conforms(text: str) -> bool:
        return bool(_LIBRARY.conforms(_OUTSIDE_ASCII.sub("%C2%A0", text), name))

    return conforms


def _is_regex(text: str) -> bool:
    try:
        Pattern(text)
    except WrongPattern:
        return False
    return True


def _is_relative_pointer(text: str) -> bool:
    found = re.fullmatch(r"(0|[1-9][0-9]*)(#|(/.*)?)", text, re.DOTALL)
    return found is not None and (found[2] == "#" or _LIBRARY.conforms(found[2], "json-pointer"))


_OWN: Mapping[str, Callable[[str], bool]] = {
    "email": _is_email,
    "hostname": _is_hostname,
    "idn-email": _is_email,
    "iri": _is_uri_like("uri"),
    "iri-reference": _is_uri_like("uri-reference"),
    "regex": _is_regex,
    "relative-json-pointer": _is_relative_pointer,
}

FORMATS = frozenset(_LIBRARY.checkers) | frozenset(_OWN)
"""The formats that are asserted: all of the draft."""


def conforms(name: str, text: str) -> bool:
    """Whether a text is of a format; one that is not asserted here fits everything."""
    if name not in FORMATS:
        return True
    if len(text) > MOST_CHARACTERS or (name in _ASCII and not text.isascii()):
        return False
    try:
        return _OWN.get(name, _by_library(name))(text)
    except (FormatError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError):
        # Libraries end in many ways over a text that they do not take.
        return False
