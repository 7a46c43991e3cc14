"""Tokens of people: random texts that are shown once; only their SHA-256 is kept."""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "apt_"
"""How every token begins, so that scanners for leaked secrets find it."""


def new_token() -> str:
    """A token with 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def fingerprint(token: str) -> str:
    """SHA-256 in hexadecimal. A token has too many random bits to be guessed from it, so it needs no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()
