"""Budgets: what is counted, and in which whole numbers (A-15, A-16)."""

from __future__ import annotations

from enum import StrEnum


class Unit(StrEnum):
    """What is counted. Money in millionths of a US dollar, time in milliseconds: whole numbers add up exactly."""

    MONEY = "money_microusd"
    TOKENS = "tokens"
    TOOL_CALLS = "tool_calls"
    TIME = "time_ms"


class HolderKind(StrEnum):
    """What a ceiling is set on: a scope (the installation, a company, an area), an agent or a run."""

    SCOPE = "scope"
    AGENT = "agent"
    RUN = "run"
