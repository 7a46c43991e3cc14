"""Canonical JSON (RFC 8785), for the values that this service has: no floating-point numbers, keys in ASCII."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_text(value: Any) -> str:
    """The canonical JSON of texts, whole numbers below 2⁵³, booleans, None, and lists and mappings of them.

    The standard library's encoder writes these as the RFC wants them: keys sorted, no white space, the shortest escapes. Floating
    point, where it does not, must not be in the value. A library for the whole RFC took several times as long for the same bytes.
    """
    return _ENCODER.encode(value)


def canonical_json(value: Any) -> bytes:
    """The same in UTF-8."""
    return canonical_text(value).encode()


def digest_of(value: Any) -> str:
    """SHA-256 in hexadecimal over the canonical JSON."""
    return digest_of_text(canonical_text(value))


def digest_of_text(text: str) -> str:
    """SHA-256 in hexadecimal over a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()
