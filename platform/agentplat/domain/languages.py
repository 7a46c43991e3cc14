"""The languages that texts are made in."""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """English, Portuguese, Hebrew."""

    EN = "en"
    PT = "pt"
    HE = "he"
