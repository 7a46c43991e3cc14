"""Regular expressions of schemas. RE2 matches them in a time that grows evenly with the text, whatever they are."""

from __future__ import annotations

import re2

MOST_PATTERN_CHARACTERS = 1_000

_OPTIONS = re2.Options()
_OPTIONS.max_mem = 1 << 20
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True

_STEPS_A_LOOK = 50
"""Steps of RE2's slower way, a character in a state each, that take as long as one look."""


class WrongPattern(ValueError):
    """A text that is no regular expression here. The message says why."""


class Pattern:
    """A regular expression. Raises WrongPattern where RE2 does not take it: it has no look-around and no back-references."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_PATTERN_CHARACTERS:
            raise WrongPattern(f"is longer than {MOST_PATTERN_CHARACTERS} characters")
        try:
            self._compiled = re2.compile(text, _OPTIONS)
        except re2.error as error:
            [reason] = error.args
            told = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise WrongPattern(f"is no regular expression that RE2 takes: {told}") from None

    def looks(self, text: str) -> int:
        """The most that finding it in the text can take."""
        return 1 + len(text) * int(self._compiled.programsize) // _STEPS_A_LOOK

    def found_in(self, text: str) -> bool:
        """Whether it is found anywhere in the text."""
        return self._compiled.search(text) is not None
