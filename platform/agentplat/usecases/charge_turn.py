"""Paying for turns of a model: the worst case set aside before, what it took settled after (A-15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentplat.domain.budgets import Unit, first_stop
from agentplat.domain.errors import RunWaits
from agentplat.domain.runs import Run, WaitingFor
from agentplat.domain.steps import Body, BudgetReserved, BudgetSettled, ModelTurn, Waiting
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.charging import charged_to, own_ceilings
from agentplat.usecases.tell_space import let_wait


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeTurn:
    """Charges turns to the same budgets as calls of tools. Turns are numbered from 1 and kept below 0, apart from the calls."""

    store: Store

    def reserve(self, run: Run, turn: int, worst: Mapping[Unit, int]) -> Run:
        """Set the most that the turn can take aside; what is set aside for it already stays.

        Raises RunWaits where a ceiling leaves no room for it: the run waits from then on. Raises LeaseLost, StoreUnavailable.
        """
        amounts = {unit: amount for unit, amount in worst.items() if amount}
        with self.store.writing() as work:
            if -turn in work.budgets.open_calls(run.id):
                return run
            budgets = work.budgets.hold(charged_to(work, run), tuple(amounts), own_ceilings(work, run))
            stop = first_stop(budgets, amounts)
            if stop is None:
                work.budgets.reserve(run.id, -turn, amounts, budgets)
                step = BudgetReserved(call=-turn, amounts={unit.value: amount for unit, amount in amounts.items()})
                return work.runs.append(run, [step], now_ms())
            let_wait(work, run, Waiting(waiting_for=WaitingFor.BUDGET, ceiling=stop.words))
        raise RunWaits(run.id, stop.words)

    def settle(self, run: Run, turn: int, took: Mapping[Unit, int], said: ModelTurn) -> Run:
        """Keep the turn and what it really took. Raises LeaseLost, StoreUnavailable."""
        with self.store.writing() as work:
            settled = work.budgets.settle(run.id, -turn, took)
            steps: list[Body] = [said]
            if settled:
                steps.append(BudgetSettled(call=-turn, amounts={unit.value: amount for unit, amount in settled.items()}))
            return work.runs.append(run, steps, now_ms())
