"""Budgets of delegated work: what its delegator sets aside for it (D-6).

A delegation takes what the delegate may spend out of the delegator's own budgets, those of its run and of its agent, and gives back
what is left when the delegate's run ends. The budgets of scopes are shared: what is delegated is charged to the delegator's as well
as to the delegate's, each once, at the moment that it is spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentplat.domain.budgets import Budget, HolderKind, Unit, run_holder
from agentplat.domain.delegation import EXHAUSTED
from agentplat.domain.errors import Refused
from agentplat.domain.runs import Run
from agentplat.store.port import Work
from agentplat.usecases.charging import charged_to, own_ceilings

_ENVELOPE = (HolderKind.AGENT, HolderKind.RUN)
"""What is the delegator's alone. Scopes and pipelines are charged with what the delegate does, as it does it."""


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
    envelope = [budget for budget in budgets if budget.holder.kind in _ENVELOPE]
    left = {unit: min(found) for unit in Unit if (found := [b.remainder for b in envelope if b.unit is unit and b.remainder])}
    most = (asked, own_ceilings(work, delegate), left)
    ceilings = {unit: min(found) for unit in Unit if (found := [limit[unit] for limit in most if unit in limit])}
    work.budgets.hold((run_holder(delegate.id),), tuple(ceilings), ceilings)
    work.budgets.set_aside(delegate.id, delegator.id, {unit: ceilings[unit] for unit in left}, envelope)
    return ceilings
