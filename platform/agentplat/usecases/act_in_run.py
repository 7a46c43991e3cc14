"""What a run's holder does in it, whatever does the thinking: nothing that the trail has already is done twice (R-4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.budgets import Unit
from agentplat.domain.contracts import MOST_TRIES
from agentplat.domain.errors import LeaseLost, RunCancelled
from agentplat.domain.hands import Called, Turn
from agentplat.domain.runs import Run
from agentplat.domain.steps import ModelTurn
from agentplat.domain.tools import SUBMIT_OUTPUT, ToolSpec, has_tool
from agentplat.store.port import Store
from agentplat.usecases.call_tool import CallTool
from agentplat.usecases.charge_turn import ChargeTurn
from agentplat.usecases.lease_run import Held


@dataclass(frozen=True, slots=True, kw_only=True)
class ActInRun:
    """Acts for the holder of a run. Each act gives the run as it is afterwards."""

    store: Store
    content: ContentStore
    tools: CallTool

    def offered(self, held: Held) -> list[ToolSpec]:
        """The tools that a held run has, by name; one that declares no effect never runs (A-13)."""
        specs = [tool.spec for _, tool in sorted(self.tools.gate.tools.items())]
        return [_told(spec, held) for spec in specs if spec.effect is not None and has_tool(spec, held.circumstances)]

    def call(
        self, run: Run, number: int, tool: str, arguments: Mapping[str, Any], request: str | None = None
    ) -> tuple[Run, Called]:
        """The call of this number in the run: made now, or gone on with, or as it was made already.

        request: as in `CallTool`. The run may have ended by the call. Raises RunCancelled, whatever the call of a tool raises, and
        ContentDamaged.
        """
        self.demand_going_on(run)
        run, result = self.tools(run, number, tool, arguments, request)
        text = result.reason or ""
        if result.content is not None:
            text = self.content.get(result.content).decode()
        return run, Called(result=result.result, text=text)

    def said(self, turn: ModelTurn) -> str:
        """What a model said in a turn of the trail. Raises ContentDamaged, ContentUnavailable."""
        return self.content.get(turn.content).decode()

    def expect_turn(self, run: Run, number: int, worst: Mapping[Unit, int]) -> Run:
        """Set aside the most that a model's next turn can take (A-15).

        Raises RunCancelled, RunWaits where a ceiling leaves no room, LeaseLost, StoreUnavailable.
        """
        self.demand_going_on(run)
        return ChargeTurn(store=self.store).reserve(run, number, worst)

    def turn(self, run: Run, number: int, turn: Turn) -> Run:
        """Put a model's turn into the trail, and settle what was set aside for it; a program pays for its own model itself.

        Raises RunCancelled, LeaseLost, ContentUnavailable, StoreUnavailable.
        """
        self.demand_going_on(run)
        said = ModelTurn(
            model=turn.model,
            content=self.content.put(turn.content.encode()),
            tokens_read=turn.tokens_read,
            tokens_written=turn.tokens_written,
        )
        took = {Unit.TOKENS: turn.tokens_read + turn.tokens_written}
        if turn.money_microusd is not None:
            took[Unit.MONEY] = turn.money_microusd
        return ChargeTurn(store=self.store).settle(run, number, took, said)

    def demand_going_on(self, run: Run) -> None:
        """Raises RunCancelled where somebody asked for that, LeaseLost where another holds the run, StoreUnavailable."""
        with self.store.reading() as work:
            now = work.runs.find(run.id)
        if now is not None and now.cancel_asked_at is not None:
            raise RunCancelled(run.id)
        if now is None or now.owner != run.owner:
            raise LeaseLost(run.id)


def _told(spec: ToolSpec, held: Held) -> ToolSpec:
    """A tool as whoever drives the run is told of it: with the contract that an output has to fit."""
    if spec.name != SUBMIT_OUTPUT or held.contract is None:
        return spec
    told = (
        f"{spec.description} Mode: {held.contract.mode}. Tries: {MOST_TRIES}. The contract, as JSON Schema: {held.contract.schema}"
    )
    return replace(spec, description=told)
