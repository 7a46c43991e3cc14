"""Spaces: the conversation, what its agents do just now, and the composer (U-4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from agentplat.domain.errors import Conflict, InvalidInput
from agentplat.domain.modes import CHOSEN, Mode
from agentplat.domain.pipelines import ProposalState
from agentplat.domain.proposals import KeptProposal
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Space
from agentplat.studio.live import LastId, answer_stream, person_id
from agentplat.studio.places import Id, Place
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import Page, part_of
from agentplat.studio.visitors import Actor, Reader, Visitor, go_to
from agentplat.studio.watching import Stream
from agentplat.studio.workspaces import place_of
from agentplat.usecases.converse import ShownMessage
from agentplat.usecases.manage_spaces import Participant
from agentplat.usecases.names import check_ref
from agentplat.usecases.read_orchestration import ShownPipeline

router = APIRouter()

_PAGE = 100
MESSAGES = 200
_PLANS = 5
After = Annotated[int, Query(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacesPage(Page):
    """The spaces of a workspace. refusal: why none was created."""

    template: ClassVar[str] = "spaces.html"
    place: Place
    spaces: tuple[Space, ...]
    modes: tuple[Mode, ...] = CHOSEN
    refusal: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacePage(Page):
    """One space. working: the runs there that have not ended. proposals: the newest that nobody decided. pipelines: the newest.

    candidates: agents that may be added. draft: what was not accepted.

    last: the last message shown. more: whether later ones follow.
    """

    template: ClassVar[str] = "space.html"
    place: Place
    space: Space
    participants: tuple[Participant, ...]
    candidates: tuple[Ref, ...]
    messages: tuple[ShownMessage, ...]
    working: tuple[Run, ...]
    proposals: tuple[KeptProposal, ...]
    pipelines: tuple[ShownPipeline, ...]
    last: int
    more: bool
    modes: tuple[Mode, ...] = CHOSEN
    draft: str = ""
    refusal: tuple[Told, ...] = ()


@router.get("/workspaces/{workspace_id}/spaces", response_model=None)
def spaces(found: Reader, workspace_id: Id) -> Response:
    """The list."""
    return found.show(_list(found, workspace_id), "workspaces")


def _list(found: Visitor, workspace_id: int, refusal: tuple[Told, ...] = ()) -> SpacesPage:
    listed = found.cases.together.spaces.page(found.person, workspace_id, 0, _PAGE)
    return SpacesPage(place=place_of(found, workspace_id), spaces=tuple(listed), refusal=refusal)


@router.post("/workspaces/{workspace_id}/spaces", response_model=None)
def create(found: Actor, workspace_id: Id) -> Response:
    """Create a space."""
    try:
        made = found.cases.together.spaces.create(found.person, workspace_id, found.form.get("name", "").strip(), _mode(found))
    except (InvalidInput, Conflict) as error:
        return found.show(_list(found, workspace_id, told(error)), "workspaces", status=422)
    return go_to(f"/workspaces/{workspace_id}/spaces/{made.id}")


@router.get("/workspaces/{workspace_id}/spaces/{space_id}", response_model=None)
def space(found: Reader, workspace_id: Id, space_id: Id, after: After = 0) -> Response:
    """The conversation, from behind a message on."""
    return found.show(_page(found, workspace_id, space_id, after), "workspaces")


@router.get("/workspaces/{workspace_id}/spaces/{space_id}/news", response_model=None)
def news(found: Reader, workspace_id: Id, space_id: Id, after: After = 0) -> Response:
    """What was said since a message, and what is done just now, for a page that is open."""
    page, frame = _page(found, workspace_id, space_id, after), found.frame("workspaces")
    parts = {name: part_of(frame, "space_parts.html", name, page=page) for name in ("messages", "activity")}
    return JSONResponse({**parts, "last": page.last, "more": page.more})


@router.get("/workspaces/{workspace_id}/spaces/{space_id}/events", response_model=None)
async def space_events(found: Reader, workspace_id: Id, space_id: Id, last_event_id: LastId = "") -> Response:
    """Tells whenever something is said, or done by the workspace's agents."""
    await asyncio.to_thread(found.cases.together.spaces.one, found.person, workspace_id, space_id)
    place = await asyncio.to_thread(place_of, found, workspace_id)
    loop = asyncio.get_running_loop()
    stream = Stream(person_id=person_id(found), loop=loop, scopes=(place.workspace.scope,), space_id=space_id)
    return answer_stream(found, stream, last_event_id)


@router.get("/workspaces/{workspace_id}/complete", response_model=None)
def complete(found: Reader, workspace_id: Id, text: Annotated[str, Query(max_length=200)] = "") -> Response:
    """What may follow @ or # and these first characters."""
    listed = found.cases.together.converse.complete(found.person, workspace_id, text)
    return JSONResponse([{"insert": one.insert, "label": one.label} for one in listed])


@router.post("/workspaces/{workspace_id}/spaces/{space_id}", response_model=None)
def say(found: Actor, workspace_id: Id, space_id: Id) -> Response:
    """Say something; a mode that was chosen with it counts for it."""
    text = found.form.get("body", "")
    try:
        _change_mode(found, workspace_id, space_id)
        found.cases.together.converse.post(found.person, workspace_id, space_id, text)
    except (InvalidInput, Conflict) as error:
        page = _page(found, workspace_id, space_id, _beginning(found, workspace_id, space_id), text, told(error))
        return found.show(page, "workspaces", status=422)
    return go_to(f"/workspaces/{workspace_id}/spaces/{space_id}#composer")


@router.post("/workspaces/{workspace_id}/spaces/{space_id}/participants", response_model=None)
def participants(found: Actor, workspace_id: Id, space_id: Id) -> Response:
    """Let an agent take part, or no longer."""
    ref, act = check_ref(found.form.get("agent", ""), "agent"), found.cases.together.spaces
    change = act.remove_participant if found.form.get("act") == "remove" else act.add_participant
    change(found.person, workspace_id, space_id, ref)
    return go_to(f"/workspaces/{workspace_id}/spaces/{space_id}")


def _mode(found: Visitor) -> Mode:
    chosen = found.form.get("mode", Mode.CHAT.value)
    return Mode(chosen) if chosen in set(Mode) else Mode.CHAT


def _change_mode(found: Visitor, workspace_id: int, space_id: int) -> None:
    shown = found.cases.together.spaces.one(found.person, workspace_id, space_id)
    if "mode" in found.form and shown.space.mode is not Mode.REVIEW and _mode(found) is not shown.space.mode:
        found.cases.together.spaces.set_mode(found.person, workspace_id, space_id, _mode(found))


def _beginning(found: Visitor, workspace_id: int, space_id: int) -> int:
    """Behind which message a page begins that shows the newest ones."""
    return found.cases.together.converse.before_newest(found.person, workspace_id, space_id, MESSAGES)


def _page(
    found: Visitor, workspace_id: int, space_id: int, after: int, draft: str = "", refusal: tuple[Told, ...] = ()
) -> SpacePage:
    shown = found.cases.together.spaces.one(found.person, workspace_id, space_id)
    workspace = found.cases.together.workspaces.one(found.person, workspace_id)
    begin = after or _beginning(found, workspace_id, space_id)
    messages = found.cases.together.converse.messages(found.person, workspace_id, space_id, begin, MESSAGES)
    plans = found.cases.orchestrating.read
    proposals = plans.proposals(found.person, space_id, None, _PLANS)
    there = {one.agent.ref for one in shown.participants}
    return SpacePage(
        place=place_of(found, workspace_id),
        space=shown.space,
        participants=shown.participants,
        candidates=tuple(agent.ref for agent in workspace.agents if agent.ref not in there),
        messages=tuple(messages),
        working=tuple(run for run in shown.runs if not run.ended),
        proposals=tuple(one for one in proposals if one.state is ProposalState.PROPOSED),
        pipelines=tuple(plans.pipelines(found.person, space_id, None, _PLANS)),
        last=messages[-1].id if messages else begin,
        more=len(messages) == MESSAGES,
        draft=draft,
        refusal=refusal,
    )
