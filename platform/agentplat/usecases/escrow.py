"""Budgets of delegated work: what it is charged to, and what its delegator sets aside for it (D-6).

A delegation takes what the delegate may spend out of the delegator's own budgets, those of its run and of its agent, and gives back
what is left when the delegate's run ends. The budgets of scopes are shared: what is delegated is charged to the delegator's as well
as to the delegate's, each once, at the moment that it is spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentplat.domain.budgets import (
    Budget,
    Holder,
    HolderKind,
    Unit,
    agent_holder,
    ceilings_of,
    holders,
    run_holder,
    scope_holder,
    scope_holders,
)
from agentplat.domain.chains import OpenedBy
from agentplat.domain.delegation import EXHAUSTED
from agentplat.domain.errors import Refused
from agentplat.domain.runs import Run
from agentplat.domain.scopes import INSTALLATION
from agentplat.store.port import Work


def charged_to(work: Work, run: Run) -> tuple[Holder, ...]:
    """All that what a run does is charged to, from the broadest: its own, and the scopes of those who delegated its work."""
    scopes: set[str] = set()
    above: Run | None = run
    while above is not None and above.opened_by is OpenedBy.DELEGATION and above.source_run_id is not None:
        above = work.runs.find(above.source_run_id)
        scopes.update(() if above is None else (holder.key for holder in scope_holders(above.agent.scope)))
    if not scopes:
        return holders(run.agent_id, run.agent, run.id)
    scopes.update(holder.key for holder in scope_holders(run.agent.scope))
    # The installation, then companies, then areas.
    broadest_first = sorted(scopes, key=lambda scope: (scope != INSTALLATION, scope.count("/"), scope))
    return (*map(scope_holder, broadest_first), agent_holder(run.agent_id, run.agent), run_holder(run.id))


def own_ceilings(work: Work, run: Run) -> dict[Unit, int]:
    """The ceilings that a run's version sets on it."""
    version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
    return ceilings_of({} if version is None else version.content.manifest)


def _used_up(budgets: Iterable[Budget]) -> bool:
    return any(budget.remainder == 0 for budget in budgets)


def has_something_left(work: Work, run: Run) -> bool:
    """Whether no budget that the run is charged to is used up. What has no ceiling never is."""
    return not _used_up(work.budgets.of(charged_to(work, run)))


def set_aside(work: Work, delegator: Run, delegate: Run, asked: Mapping[Unit, int]) -> dict[Unit, int]:
    """Set aside what a delegated run may spend, and make that its ceilings; the ceilings. asked: what the delegator lets it have.

    The smallest counts of what was asked, what the delegate's version sets, and what the delegator's run and agent have left. A
    unit of which nobody limits anything stays without ceiling. Raises Refused where the delegator has nothing left.
    """
    budgets = work.budgets.hold(charged_to(work, delegator), tuple(Unit), own_ceilings(work, delegator))
    if _used_up(budgets):
        raise Refused(EXHAUSTED)
    envelope = [budget for budget in budgets if budget.holder.kind is not HolderKind.SCOPE]
    left = {unit: min(found) for unit in Unit if (found := [b.remainder for b in envelope if b.unit is unit and b.remainder])}
    most = (asked, own_ceilings(work, delegate), left)
    ceilings = {unit: min(found) for unit in Unit if (found := [limit[unit] for limit in most if unit in limit])}
    work.budgets.hold((run_holder(delegate.id),), tuple(ceilings), ceilings)
    work.budgets.set_aside(delegate.id, delegator.id, {unit: ceilings[unit] for unit in left}, envelope)
    return ceilings
