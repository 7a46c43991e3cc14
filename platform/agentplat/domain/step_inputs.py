"""What a step of a pipeline is given to work on: the goal, its part, and what the steps before it came to (D-16)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentplat.domain.artifacts import Blob
from agentplat.domain.pipeline_templates import Template, TemplateStep

MOST_INPUT_BYTES = 256 * 1024
"""Largest input of a step, as of any run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """What a finished step came to, by reference: the output that met its contract, or its final answer where it has none.

    blob: None where the content was taken away on purpose since.
    """

    key: str
    run_id: int
    blob: Blob | None


def input_text(template: Template, step: TemplateStep, outputs: Sequence[StepOutput], texts: Mapping[str, str]) -> str:
    """The input as JSON: nothing that stands in an output can pass for another part of it. texts: of the outputs, by key."""
    whole = {
        "goal": template.goal,
        "step": {"key": step.key, "kind": step.kind.value, "title": step.title, "description": step.description},
        "outputs": [
            {
                "step": output.key,
                "run": output.run_id,
                "digest": None if output.blob is None else output.blob.digest,
                "text": texts[output.key],
            }
            for output in outputs
        ],
    }
    return json.dumps(whole, ensure_ascii=False, indent=1)
