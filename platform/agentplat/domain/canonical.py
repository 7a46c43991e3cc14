"""Canonical JSON (RFC 8785) and digests: equal values, equal bytes."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785


def canonical_json(value: Any) -> str:
    """The canonical text of JSON values. Raises ValueError for what JSON does not have, such as NaN or a lone surrogate."""
    return rfc8785.dumps(value).decode()


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
