"""Proposals for tests: as JSON values, and any that hypothesis can think of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

RESULT = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
"""What a synthesis has to come to."""

TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=20)


def sub_ticket(key: str, role: str = "worker", needs: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A sub-ticket."""
    values = {"key": key, "title": f"Part {key}", "description": f"Do {key}.", "role": role, "depends_on": list(needs)}
    return {**values, **more}


def proposal(
    sub_tickets: Sequence[Mapping[str, Any]], roles: Mapping[str, Any], research: str | None = None, **more: Any
) -> dict[str, Any]:
    """A proposal. roles: by name, an agent's reference as text or a manifest. research: the role that does it."""
    named = [{"name": name, "agent" if isinstance(who, str) else "hire": who} for name, who in roles.items()]
    values: dict[str, Any] = {
        "goal": "Ship the report.",
        "roles": named,
        "sub_tickets": list(sub_tickets),
        "synthesis": {"description": "Put it together.", "role": next(iter(roles)), "output_schema": RESULT},
        "budget": {"tool_calls": 1_000},
    }
    if research is not None:
        values["research"] = {"description": "Look around.", "role": research}
    return {**values, **more}


@st.composite
def proposals(draw: st.DrawFn) -> dict[str, Any]:
    """Any proposal without a fault."""
    roles = draw(st.lists(TEXTS, min_size=1, max_size=8, unique=True))
    keys = draw(st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,9}", fullmatch=True), min_size=1, max_size=16, unique=True))
    keys = [f"k{key}" for key in keys]
    found = []
    for i, key in enumerate(keys):
        needs = draw(st.lists(st.sampled_from(keys[:i]), unique=True, max_size=4)) if i else []
        more: dict[str, Any] = {"retries": draw(st.integers(0, 3))}
        if draw(st.booleans()):
            more["output_schema"] = RESULT
        found.append(sub_ticket(key, draw(st.sampled_from(roles)), needs, **more))
    shuffled = draw(st.permutations(found))
    research = draw(st.none() | st.sampled_from(roles))
    return proposal(shuffled, dict.fromkeys(roles, "acme/platform:worker"), research, goal=draw(TEXTS))
