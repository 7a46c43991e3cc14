"""What a tool is to the use cases: what it declares, and what it does once the Gate has let a call through.

A tool is one of two. What a `Tool` does happens outside the database, and whether it happened may stay unknown after a crash. All
that a `WorkTool` does is in the database, in the transaction that keeps the call's answer: it happened if the answer is there.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from agentplat.domain.tools import Asked, Given, Move, ToolSpec
from agentplat.store.port import Work


class _Declared(Protocol):
    """What every tool says of itself and of a call. One serves many runs at once."""

    @property
    def spec(self) -> ToolSpec:
        """What it declares."""

    def fault(self, asked: Asked) -> str | None:
        """What is wrong with arguments that fit the schema; None where nothing is. Names nothing that the run may not know."""

    def artifact(self, asked: Asked) -> str | None:
        """The name of the contract that the call reads, where it reads one. The arguments may not fit the schema yet."""

    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        """The data that the call would move, for the barrier."""


class Tool(_Declared, Protocol):
    """A tool whose effect lies outside the database."""

    def __call__(self, asked: Asked) -> Given:
        """Carry an allowed call out. Raises ContentUnavailable and StoreUnavailable where trying again later may help."""


@runtime_checkable
class WorkTool(_Declared, Protocol):
    """A tool whose whole effect is in the database."""

    def within(self, work: Work, asked: Asked) -> Given:
        """Carry an allowed call out within a transaction, which is undone where anything is raised.

        Raises Refused, InvalidInput, NotFound, AccessDenied or Conflict, whose words then are the answer; ContentUnavailable and
        StoreUnavailable where trying again later may help.
        """


AnyTool = Tool | WorkTool
