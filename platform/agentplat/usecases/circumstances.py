"""What decides which tools a run has, and how far its agent acts by itself there (W-7, D-9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentplat.domain.autonomy import Autonomy
from agentplat.domain.runs import Run
from agentplat.domain.tools import Circumstances, named_tools
from agentplat.store.port import Work

USUAL_AUTONOMY = Autonomy.ACT_WITH_APPROVAL
"""The level of an agent that nobody gave another one."""


def circumstances_of(work: Work, run: Run, manifest: Mapping[str, Any]) -> Circumstances:
    """The circumstances of a run. manifest: that of its version."""
    workplace = work.spaces.workplace(run.id)
    mode = None if workplace is None else workplace.mode
    return Circumstances(named=named_tools(manifest), mode=mode, contract=work.contracts.of_run(run.id) is not None)


def autonomy_in_run(work: Work, run: Run) -> Autonomy:
    """How far the run's agent acts by itself where the run works."""
    workplace = work.spaces.workplace(run.id)
    return USUAL_AUTONOMY if workplace is None else autonomy_in(work, workplace.space_id, run.agent_id)


def autonomy_in(work: Work, space_id: int, agent_id: int) -> Autonomy:
    """How far an agent acts by itself in a space."""
    level = work.spaces.autonomy(space_id, agent_id)
    return USUAL_AUTONOMY if level is None else level
