"""The inbox: all that waits for a person, everywhere or in one workspace (U-7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query
from starlette.responses import Response

from agentplat.domain.scopes import INSTALLATION, Ref
from agentplat.domain.tickets import CLOSED, Status, Ticket
from agentplat.studio.places import Id, Place
from agentplat.studio.rendering import Page
from agentplat.studio.reports import LoopLine, report_view
from agentplat.studio.visitors import Reader, Visitor
from agentplat.studio.workspaces import place_of
from agentplat.usecases.converse import Notice
from agentplat.usecases.decide_approval import ShownApproval
from agentplat.usecases.read_inbox import Inbox, OpenProposal, StoppedRun

router = APIRouter()

_APPROVALS, _MENTIONS, _TICKETS = 50, 20, 100
Before = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LateWarning:
    """What a version of the person's own warns of, as its page has it."""

    agent: Ref
    number: int
    lines: tuple[LoopLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage(Page):
    """What waits for the person. place: the workspace that it is narrowed to, with the tickets that are open there.

    decided: whether approvals that were answered are shown too. earlier, before: where earlier approvals and mentions begin. cut:
    whether there may be more of the rest than is shown.
    """

    template: ClassVar[str] = "inbox.html"
    place: Place | None
    approvals: tuple[ShownApproval, ...]
    proposals: tuple[OpenProposal, ...]
    stopped: tuple[StoppedRun, ...]
    late: tuple[LateWarning, ...]
    mentions: tuple[Notice, ...]
    tickets: tuple[Ticket, ...]
    decided: bool
    earlier: int | None
    before: int | None
    cut: bool


@router.get("/inbox", response_model=None)
def inbox(found: Reader, decided: bool = False, before: Before = None, mentions: Before = None) -> Response:
    """Everything that waits, newest first. before, mentions: where approvals and mentions go on."""
    return found.show(_page(found, None, decided, before, mentions), "inbox")


@router.get("/workspaces/{workspace_id}/inbox", response_model=None)
def workspace_inbox(
    found: Reader, workspace_id: Id, decided: bool = False, before: Before = None, mentions: Before = None
) -> Response:
    """What waits in a workspace, and the tickets that are open there."""
    return found.show(_page(found, place_of(found, workspace_id), decided, before, mentions), "workspaces")


def _page(found: Visitor, place: Place | None, decided: bool, before: int | None, mentions: int | None) -> InboxPage:
    cases, person = found.cases, found.person
    workspace = None if place is None else place.workspace
    scope = INSTALLATION if workspace is None else workspace.scope
    approvals = cases.governing.approvals.page(person, not decided, before, _APPROVALS, scope)
    notices = cases.together.converse.notified(person, mentions, _MENTIONS, None if workspace is None else workspace.id)
    waiting = cases.read_inbox(person, workspace)
    return InboxPage(
        place=place,
        approvals=tuple(approvals),
        proposals=waiting.proposals,
        stopped=waiting.stopped,
        late=_late(found, waiting),
        mentions=tuple(notices),
        tickets=() if place is None else _open_tickets(found, place),
        decided=decided,
        earlier=approvals[-1].approval.id if len(approvals) == _APPROVALS else None,
        before=notices[-1].message.id if len(notices) == _MENTIONS else None,
        cut=waiting.cut,
    )


def _late(found: Visitor, waiting: Inbox) -> tuple[LateWarning, ...]:
    return tuple(
        LateWarning(agent=shown.agent, number=shown.number, lines=report_view(shown, found.language).lines)
        for shown in waiting.late
    )


def _open_tickets(found: Visitor, place: Place) -> tuple[Ticket, ...]:
    open_ones = [status for status in Status if status not in CLOSED]
    return tuple(found.cases.together.tickets.page(found.person, place.workspace.id, open_ones, None, _TICKETS))
