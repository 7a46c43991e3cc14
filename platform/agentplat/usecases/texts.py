"""Texts that people and agents write: reasons, titles, messages."""

from __future__ import annotations

import unicodedata

from agentplat.domain.errors import InvalidInput, Violation, phrase

MOST_CHARACTERS = 1_000


def check_reason(text: str, field: str = "reason") -> str:
    """The reason without space around it. Raises InvalidInput where it says nothing or too much, or is no text in UTF-8."""
    said = text.strip()
    try:
        said.encode()
    except UnicodeEncodeError:
        said = ""
    if not said or len(said) > MOST_CHARACTERS:
        remedy = phrase("say why in 1 to %(most)s characters", most=MOST_CHARACTERS)
        raise InvalidInput([Violation(field=field, reason="is missing, too long or no text", remedy=remedy)])
    return said


MOST_TEXT_BYTES = 64 * 1024
MOST_TITLE_CHARACTERS = 300
_LAYOUT = frozenset("\n\r\t")


def check_text(text: str, field: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """A text of several lines without space around it. Raises InvalidInput where it is empty, too long or no text."""
    said = text.strip()
    try:
        size = len(said.encode())
    except UnicodeEncodeError:
        size = 0
    odd = any(unicodedata.category(character) == "Cc" and character not in _LAYOUT for character in said)
    if not size or size > most_bytes or odd:
        remedy = phrase("write 1 to %(most)s bytes of UTF-8 without control characters", most=most_bytes)
        raise InvalidInput([Violation(field=field, reason="is missing, too long or no text", remedy=remedy)])
    return said


def check_title(text: str, field: str = "title") -> str:
    """A text of one line. Raises InvalidInput."""
    said = check_text(text, field)
    if len(said) > MOST_TITLE_CHARACTERS or not _LAYOUT.isdisjoint(said):
        remedy = phrase("write one line of at most %(most)s characters", most=MOST_TITLE_CHARACTERS)
        raise InvalidInput([Violation(field=field, reason="is too long, or more than one line", remedy=remedy)])
    return said


def check_description(text: str, field: str = "description") -> str:
    """A text that may be empty. Raises InvalidInput."""
    return check_text(text, field) if text.strip() else ""


def clipped(text: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """What can be shown of a text that the platform did not ask for: cut where it is too long, without what cannot be kept."""
    data = text.replace("\x00", "\ufffd").encode(errors="replace")
    if len(data) <= most_bytes:
        return data.decode()
    return f"{data[:most_bytes].decode(errors='ignore')}\n… cut here: the whole has {len(data)} bytes"
