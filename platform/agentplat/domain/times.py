"""Moments, in whole milliseconds since 1970, UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_ms() -> int:
    """The present moment."""
    return time.time_ns() // 1_000_000


def iso(moment_ms: int) -> str:
    """A moment as RFC 3339 text: ``2026-03-01T12:30:00.250Z``."""
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment_ms % 1000:03d}Z"
