"""Which budgets a run is charged to (A-16, D-16)."""

from __future__ import annotations

from agentplat.domain.budgets import Holder, holders
from agentplat.domain.runs import Run
from agentplat.store.port import Work


def charged_to(work: Work, run: Run) -> tuple[Holder, ...]:
    """All whose ceilings a call or turn of the run has to stay within, from the broadest; its pipeline among them."""
    return holders(run.agent_id, run.agent, run.id, work.pipelines.of_run(run.id))
