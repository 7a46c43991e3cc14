"""The record of who did what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.scopes import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One recorded act. actor: None for the operator at the host and for the platform itself. details: JSON values."""

    id: int
    at: int
    actor: Ref | None
    act: str
    scope: str
    subject: str
    details: Mapping[str, Any]
