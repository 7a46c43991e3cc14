"""Names and scopes: what is allowed, how they are normalised, and which scope contains which."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from graphsvc.domain.errors import InvalidInput, Violation, phrase

MAX_NAME_BYTES = 256
"""Longest name in bytes of UTF-8, after normalisation."""

INSTALLATION = "*"

_REFUSED = {
    "Cc": phrase("a control character"),
    "Cs": phrase("half of a surrogate pair"),
    "Cn": phrase("an unassigned character"),
    "Zl": phrase("a line separator"),
    "Zp": phrase("a paragraph separator"),
}
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def name_fault(text: str) -> tuple[str, str] | None:
    """Why a text cannot be a name, as (reason, remedy), or None. The text is taken as already normalised."""
    if not text:
        return phrase("is empty"), phrase("give it a name")
    if text != text.strip():
        return phrase("begins or ends with white space"), phrase("remove the white space")
    for position, character in enumerate(text, start=1):
        category = unicodedata.category(character)
        kind = phrase("a bidirectional control") if character in _BIDIRECTIONAL else _REFUSED.get(category)
        if kind:
            code = f"U+{ord(character):04X}"
            reason = phrase("has %(kind)s (%(code)s) at character %(position)s", kind=kind, code=code, position=position)
            return reason, phrase("remove that character")
    size = len(text.encode())
    if size > MAX_NAME_BYTES:
        return phrase("is %(size)s bytes long", size=size), phrase("use at most %(most)s bytes of UTF-8", most=MAX_NAME_BYTES)
    return None


def normalise(text: object, field: str, place: str = "") -> str:
    """A name in Unicode normal form C.

    Raises InvalidInput when it is not a text, is empty or too long, or has characters that names may not have.
    """
    if not isinstance(text, str):
        reason = phrase("is of type %(kind)s", kind=type(text).__name__)
        raise InvalidInput([Violation(field=field, place=place, reason=reason, remedy="write a text")])
    if text.isascii() and text.isprintable() and 0 < len(text) <= MAX_NAME_BYTES and text[0] != " " and text[-1] != " ":
        return text
    normal = unicodedata.normalize("NFC", text)
    fault = name_fault(normal)
    if fault:
        raise InvalidInput([Violation(field=field, place=place, reason=fault[0], remedy=fault[1])])
    return normal


def _scope_part(text: object, field: str, place: str) -> str:
    part = normalise(text, field, place)
    for mark in "/:":
        if mark in part:
            has, remedy = phrase("has a '%(mark)s'", mark=mark), "use a name without '/' and ':'"
            raise InvalidInput([Violation(field=field, place=place, reason=has, remedy=remedy)])
    if part == INSTALLATION:
        reason = "is '*', which stands for the whole installation"
        raise InvalidInput([Violation(field=field, place=place, reason=reason, remedy="leave it out, or name one")])
    return part


class Scope(NamedTuple):
    """The installation (both None), a company (area None) or an area of a company.

    A named tuple, like AgentRef, because graphs look millions of them up: a tuple's hash is several times as quick.
    """

    company: str | None = None
    area: str | None = None

    @property
    def text(self) -> str:
        """``*``, ``acme`` or ``acme/platform``."""
        if self.company is None:
            return INSTALLATION
        return self.company if self.area is None else f"{self.company}/{self.area}"

    def contains(self, other: Scope) -> bool:
        """Whether the other scope is this one or lies below it."""
        if self.company is None:
            return True
        return self.company == other.company and self.area in (None, other.area)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=65_536)
def scope_of(company: str | None, area: str | None, field: str = "", place: str = "") -> Scope:
    """A checked scope from its parts. Raises InvalidInput for an area without company or a bad name."""
    prefix = f"{field}." if field else ""
    if company is None:
        if area is not None:
            reason = "is given without a company"
            raise InvalidInput([Violation(field=f"{prefix}area", place=place, reason=reason, remedy="give the company too")])
        return Scope()
    name = _scope_part(company, f"{prefix}company", place)
    return Scope(name, None if area is None else _scope_part(area, f"{prefix}area", place))


def parse_scope(text: object, field: str = "scope", place: str = "") -> Scope:
    """``*``, ``acme`` or ``acme/platform`` as a scope. Raises InvalidInput."""
    if not isinstance(text, str):
        remedy = "write '*', 'acme' or 'acme/platform'"
        raise InvalidInput([Violation(field=field, place=place, reason="is not a text", remedy=remedy)])
    if text == INSTALLATION:
        return Scope()
    company, slash, area = text.partition("/")
    return scope_of(company, area if slash else None, field, place)


class AgentRef(NamedTuple):
    """One agent: a name within a scope. Ordered by name, then by the scope's text (G-5)."""

    scope: Scope
    name: str

    @property
    def text(self) -> str:
        """``acme/platform:developer``."""
        return f"{self.scope.text}:{self.name}"

    @property
    def order(self) -> tuple[str, str]:
        """The sort key of G-5: Python compares texts by code point."""
        return self.name, self.scope.text

    def __str__(self) -> str:
        return self.text


def parse_agent(text: object, field: str = "agent", place: str = "") -> AgentRef:
    """``acme/platform:developer`` as a reference, split at the first colon. Raises InvalidInput."""
    if not isinstance(text, str) or ":" not in text:
        remedy = "write 'SCOPE:NAME', such as 'acme/platform:developer'"
        raise InvalidInput([Violation(field=field, place=place, reason="names no scope", remedy=remedy)])
    scope, _, name = text.partition(":")
    return AgentRef(parse_scope(scope, f"{field}.scope", place), normalise(name, f"{field}.name", place))
