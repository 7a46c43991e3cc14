"""Reasons that people give for what they do."""

from __future__ import annotations

from agentplat.domain.errors import InvalidInput, Violation

MOST_CHARACTERS = 1_000


def check_reason(text: str, field: str = "reason") -> str:
    """The reason without space around it. Raises InvalidInput where it says nothing or too much, or is no text in UTF-8."""
    said = text.strip()
    try:
        said.encode()
    except UnicodeEncodeError:
        said = ""
    if not said or len(said) > MOST_CHARACTERS:
        remedy = f"say why in 1 to {MOST_CHARACTERS} characters"
        raise InvalidInput([Violation(field=field, reason="is missing, too long or no text", remedy=remedy)])
    return said
