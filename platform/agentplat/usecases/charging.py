"""Which budgets a run is charged to (A-16, D-6, D-16)."""

from __future__ import annotations

from collections.abc import Collection

from agentplat.domain.budgets import Holder, Unit, ceilings_of, holders
from agentplat.domain.chains import OpenedBy
from agentplat.domain.runs import Run
from agentplat.store.port import Work


def charged_to(work: Work, run: Run) -> tuple[Holder, ...]:
    """All that what a run does is charged to, from the broadest; the scopes and the pipeline of those who delegated its work too.

    A budget that the run shares with its delegators is charged once, at the moment that something is spent.
    """
    return all_charged_to(work, [run])[run.id]


def all_charged_to(work: Work, runs: Collection[Run]) -> dict[int, tuple[Holder, ...]]:
    """The same for many runs at once, by id."""
    lines = _lines(work, runs)
    steps_of = work.pipelines.of_runs({one.id for line in lines.values() for one in line})

    def charged(run: Run) -> tuple[Holder, ...]:
        line = lines[run.id]
        pipeline_ids = dict.fromkeys(steps_of[one.id] for one in line if one.id in steps_of)
        scopes = [one.agent.scope for one in line]
        return holders(run.agent_id, run.agent, run.id, delegators=scopes, pipeline_ids=pipeline_ids)

    return {run.id: charged(run) for run in runs}


def _lines(work: Work, runs: Collection[Run]) -> dict[int, list[Run]]:
    """Each run, who delegated its work, who delegated theirs, and so on; one query for each step up, however many the runs."""
    lines = {run.id: [run] for run in runs}
    while above := {run_id: up for run_id, line in lines.items() if (up := _delegator(line[-1])) is not None}:
        found = work.runs.some(sorted(set(above.values())))
        for run_id, up in above.items():
            lines[run_id].append(found[up])
    return lines


def _delegator(run: Run) -> int | None:
    return run.source_run_id if run.opened_by is OpenedBy.DELEGATION else None


def own_ceilings(work: Work, run: Run) -> dict[Unit, int]:
    """The ceilings that a run's version sets on it."""
    version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
    return ceilings_of({} if version is None else version.content.manifest)
