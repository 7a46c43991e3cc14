"""What a model is told at the beginning of its run: what opened it and what it can read, never the content (A-4)."""

from __future__ import annotations

import json

from agentplat.domain.artifacts import Delivery
from agentplat.domain.steps import Opening


def prompt_of(opening: Opening, given: str | None) -> str:
    """The first message of a run. given: what its opener wrote, None for nothing."""
    parts = [] if opening.delivery is None else [_told(opening.delivery)]
    parts += [] if given is None else [given]
    return "\n\n".join(parts) or "Begin."


def _told(delivery: Delivery) -> str:
    told = {
        "event": delivery.event,
        "context": delivery.context,
        "source_agent": delivery.source_agent,
        "source_run": delivery.source_run,
        "artifacts": [
            {"name": entry.name, "missing": True}
            if entry.missing
            else {
                "name": entry.name,
                "ref": entry.ref,
                "digest": entry.digest,
                "source_run": entry.source_run,
                "labels": list(entry.labels),
            }
            for entry in delivery.artifacts
        ],
    }
    return f"This run was opened by an event. Its artifacts can be read by name:\n{json.dumps(told, indent=2, ensure_ascii=False)}"
