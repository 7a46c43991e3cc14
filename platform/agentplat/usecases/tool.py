"""What a tool is to the use cases: what it declares, and what it does once the Gate has let a call through."""

from __future__ import annotations

from typing import Protocol

from agentplat.domain.tools import Asked, Given, Move, ToolSpec
from agentplat.store.port import Work


class Tool(Protocol):
    """A tool. One serves many runs at once."""

    @property
    def spec(self) -> ToolSpec:
        """What it declares."""

    def fault(self, asked: Asked) -> str | None:
        """What is wrong with arguments that fit the schema; None where nothing is. Names nothing that the run may not know."""

    def artifact(self, asked: Asked) -> str | None:
        """The name of the contract that the call reads, where it reads one. The arguments may not fit the schema yet."""

    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        """The data that the call would move, for the barrier."""

    def __call__(self, asked: Asked) -> Given:
        """Carry an allowed call out. Raises ContentUnavailable and StoreUnavailable where trying again later may help."""
