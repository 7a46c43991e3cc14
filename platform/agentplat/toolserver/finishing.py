"""The tool `finish`, by which a program ends its run well over MCP. It is no call of the run: it closes the trail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import InvalidInput, Violation


class _Finish(BaseModel):
    """Ends the run: says what it came to, and publishes artifacts by name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    summary: str = Field(description="what the run came to; others may read it as final_answer")
    artifacts: dict[str, str] = Field(default_factory=dict, description="texts to publish, by artifact name")


FINISH = types.Tool(name="finish", description=_Finish.__doc__, input_schema=_Finish.model_json_schema())
"""The tool as it is listed."""


def answer_in(arguments: Mapping[str, Any]) -> Answer:
    """The answer of the tool's arguments. Raises InvalidInput with every fault."""
    try:
        found = _Finish.model_validate(arguments)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise InvalidInput(
            Violation(field=".".join(map(str, fault["loc"])), reason="is not accepted", remedy=fault["msg"]) for fault in faults
        ) from None
    return Answer(summary=found.summary, artifacts=found.artifacts)
