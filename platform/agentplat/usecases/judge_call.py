"""The Gate, as far as it is there yet: a run calls the tools that are installed and that its version names (A-12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentplat.domain.runs import Run
from agentplat.domain.tools import surface_of
from agentplat.store.port import Work
from agentplat.usecases.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """tools: those installed here, by name."""

    tools: Mapping[str, Tool]

    def allowed(self, work: Work, run: Run, name: str) -> Tool | None:
        """The tool of this name, if the run may call it."""
        version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
        return self.tools.get(name) if version is not None and name in surface_of(version.content.manifest) else None
