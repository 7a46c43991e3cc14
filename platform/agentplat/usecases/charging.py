"""Which budgets a run is charged to (A-16, D-6, D-16)."""

from __future__ import annotations

from collections.abc import Iterator

from agentplat.domain.budgets import Holder, Unit, ceilings_of, holders
from agentplat.domain.chains import OpenedBy
from agentplat.domain.runs import Run
from agentplat.store.port import Work


def charged_to(work: Work, run: Run) -> tuple[Holder, ...]:
    """All that what a run does is charged to, from the broadest; the scopes and the pipeline of those who delegated its work too.

    A budget that the run shares with its delegators is charged once, at the moment that something is spent.
    """
    line = list(_delegators(work, run))
    steps_of = dict.fromkeys(found for one in line if (found := work.pipelines.of_run(one.id)) is not None)
    scopes = [one.agent.scope for one in line]
    return holders(run.agent_id, run.agent, run.id, delegators=scopes, pipeline_ids=steps_of)


def _delegators(work: Work, run: Run) -> Iterator[Run]:
    """The run, who delegated its work, who delegated theirs, and so on."""
    above: Run | None = run
    while above is not None:
        yield above
        delegated = above.opened_by is OpenedBy.DELEGATION and above.source_run_id is not None
        above = work.runs.find(above.source_run_id) if delegated and above.source_run_id is not None else None


def own_ceilings(work: Work, run: Run) -> dict[Unit, int]:
    """The ceilings that a run's version sets on it."""
    version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
    return ceilings_of({} if version is None else version.content.manifest)
