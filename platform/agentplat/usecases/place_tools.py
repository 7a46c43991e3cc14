"""What the tools of spaces and tickets have in common: where a run works, and the labels of what it reads there (W-7)."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from agentplat.domain.autonomy import Autonomy
from agentplat.domain.errors import Refused
from agentplat.domain.labels import Labels
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref, contains
from agentplat.domain.spaces import Space, Workplace
from agentplat.domain.steps import ResultKind
from agentplat.domain.tools import Asked, Effect, Given, Move, Place, ToolSpec
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Work
from agentplat.usecases.tool import WorkTool

LONGEST_MS = 10_000
MOST_SHOWN_BYTES = 16 * 1024
"""Bytes of one text in what a tool gives, at most."""

EVERY_MODE = frozenset(Mode)
CHAT = frozenset({Mode.CHAT})
TICKET: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1, "description": "the number behind the #"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a run works, with all that it is made of. The space is held where the tool writes to it."""

    run: Run
    workspace: Workspace
    space: Space
    workplace: Workplace

    def name(self, ref: Ref) -> str | None:
        """A name as agents of the workspace may know it."""
        return ref.text if contains(self.workspace.scope, ref.scope) else None


def where_of(work: Work, run: Run, hold: bool = False) -> Where:
    """Where the run works. hold: keep the space from others who write to it. Raises Refused where it works in no space."""
    workplace = work.spaces.workplace(run.id)
    workspace = None if workplace is None else work.workspaces.find(workplace.workspace_id)
    if workplace is None or workspace is None:
        raise Refused("this run works in no space")
    space = work.spaces.hold(workplace.space_id) if hold else work.spaces.find(workplace.space_id)
    if space is None or space.removed_at is not None:
        raise Refused("the space of this run was removed")
    return Where(run=run, workspace=workspace, space=space, workplace=workplace)


def declared(
    name: str, description: str, properties: Mapping[str, Any], required: tuple[str, ...], place: Place, effect: Effect, **more: Any
) -> ToolSpec:
    """What a tool of a space declares."""
    schema = {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}
    usual: dict[str, Any] = {"longest_ms": LONGEST_MS, "labels": frozenset(), "free_from": Autonomy.PROPOSE_ONLY}
    return ToolSpec(name=name, description=description, schema=schema, effect=effect, place=place, **{**usual, **more})


def told(values: Mapping[str, Any], labels: Labels = frozenset()) -> Given:
    """What a call gave, as JSON."""
    return Given(result=ResultKind.DONE, data=json.dumps(values, ensure_ascii=False).encode(), labels=labels)


@dataclass(frozen=True, kw_only=True)
class PlaceTool(WorkTool):
    """A tool of runs that work in a space."""

    @property
    @abstractmethod
    @override
    def spec(self) -> ToolSpec: ...

    @override
    def fault(self, asked: Asked) -> str | None:
        return None

    @override
    def artifact(self, asked: Asked) -> str | None:
        return None

    @override
    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        if self.spec.effect is Effect.READ:
            # What it reads has labels of its own, which the run takes on, or which keep the result away from it.
            return ()
        return (Move(labels=asked.run.labels, into=where_of(work, asked.run).workspace.scope),)

    @override
    def within(self, work: Work, asked: Asked) -> Given:
        return self.act(work, where_of(work, asked.run, hold=self.spec.effect is not Effect.READ), asked.arguments)

    @abstractmethod
    def act(self, work: Work, where: Where, arguments: Mapping[str, Any]) -> Given:
        """Carry the call out where the run works. Raises what `within` may."""
