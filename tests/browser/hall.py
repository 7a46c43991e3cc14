"""A workspace in use: a conversation, a ticket, a proposal, a pipeline that has run; a run at its ceiling, a late warning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.budgets import Unit
from agentplat.domain.modes import Mode
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Space

from tests.agentplat.offices import DIAMOND, ROLES, WORKER, WRITER, Office, finish, submit
from tests.agentplat.proposals import proposal
from tests.agentplat.world import manifest, manifests
from tests.browser.stage import Stage

SCOPE = "acme/platform"
SPENDER, BELATED = Ref(SCOPE, "spender"), Ref(SCOPE, "belated")


@dataclass(frozen=True, kw_only=True)
class Hall:
    """The ids of what is there. ticket: its number. office: proposes as the author, moves pipelines and carries their runs."""

    office: Office
    space: Space
    ticket: int
    proposal: int
    pipeline: int
    stopped: int

    @property
    def path(self) -> str:
        """Where the workspace's pages are."""
        return f"/workspaces/{self.office.workspace}"

    @property
    def pages(self) -> tuple[str, ...]:
        """Every page of the workspace."""
        parts = (
            "inbox",
            "spaces",
            f"spaces/{self.space.id}",
            "tickets",
            f"tickets/{self.ticket}",
            f"proposals/{self.proposal}",
            f"pipelines/{self.pipeline}",
            "observability",
            "observability/insights",
        )
        return tuple(f"{self.path}/{part}" for part in parts)

    def propose(self, **more: Any) -> int:
        """One more proposal."""
        return self.office.propose(wanted(**more)).kept.id


def wanted(**more: Any) -> Mapping[str, Any]:
    """A proposal in which two agents do four things."""
    return proposal(DIAMOND, ROLES, **more)


def furnish(stage: Stage) -> Hall:
    """Make all of it. What it publishes starts nothing else, and no run of it waits for a worker."""
    cases = stage.world.cases
    worker = manifest(WORKER, driver={"kind": "scripted", "actions": [finish("worked")]})
    writer = manifest(WRITER, driver={"kind": "scripted", "actions": [submit(), finish("written")]})
    cases.publish_version(stage.author, manifests(worker, writer), "hall.yaml")
    workspace = cases.together.workspaces.create(stage.author, SCOPE, "Delivery")
    space = cases.together.spaces.create(stage.author, workspace.id, "planning", Mode.ORCHESTRATE)
    office = Office(world=stage.world, folder=stage.folder, access=stage.author, workspace=workspace.id, space=space)
    ticket = cases.together.tickets.create(stage.author, workspace.id, "Ship the <b>report</b>", "By Friday.")
    cases.together.converse.post(stage.author, workspace.id, space.id, f"@reader please look at #{ticket.number}")
    cases.together.converse.post(stage.admin, workspace.id, space.id, "@author and @admin: the figures are there")
    pipeline = office.approve(office.propose(wanted(goal="Ship last week's report.")))
    office.rounds(pipeline)
    undecided = office.propose(wanted())
    return Hall(
        office=office,
        space=space,
        ticket=ticket.number,
        proposal=undecided.kept.id,
        pipeline=pipeline.id,
        stopped=_stopped(stage),
    )


def _stopped(stage: Stage) -> int:
    """A run that waits for a budget, and, beside it, a warning that came late."""
    stage.bench.settle()
    stage.shop.publish(SPENDER)
    stage.world.cases.governing.budgets.set(stage.admin, SPENDER, Unit.TOOL_CALLS, 0)
    run = stage.shop.waits(stage.shop.open(SPENDER), 1, "look", {"text": "1"})
    stage.world.publish(stage.author, f"{SCOPE}:punctual", ["late.asked"], ["late.answered"])
    stage.world.graph.stop()
    stage.world.publish(stage.author, BELATED.text, ["late.answered"], ["late.asked"])
    stage.world.graph_up()
    stage.world.deliver_all()
    return run.id
