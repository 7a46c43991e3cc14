"""The streams that open pages listen to (U-9)."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response, StreamingResponse

from agentplat.studio.runs import After, RunId
from agentplat.studio.visitors import Reader
from agentplat.studio.watching import Stream, events
from agentplat.usecases.names import check_scope

router = APIRouter()

LastId = Annotated[str, Header(alias="last-event-id", max_length=100)]


def answer_stream(found: Reader, stream: Stream, known: str) -> Response:
    """A stream as the answer. known: the last event that the page has had. Raises Overloaded."""
    watcher = found.platform.watcher
    watcher.open(stream)
    return StreamingResponse(events(watcher, stream, known), media_type="text/event-stream")


def person_id(found: Reader) -> int:
    """Whose stream it is."""
    return 0 if found.person.person is None else found.person.person.id


@router.get("/runs/{run_id}/events", response_model=None)
async def run_events(found: Reader, run_id: RunId, after: After = 0, last_event_id: LastId = "") -> Response:
    """Tells whenever a run has more steps than the page knows."""
    loop = asyncio.get_running_loop()
    # Whether the run may be read at all is asked like everywhere, in a thread: the database may be slow.
    await asyncio.to_thread(found.cases.read_runs.one, found.person, run_id)
    return answer_stream(found, Stream(person_id=person_id(found), loop=loop, run_id=run_id), last_event_id or str(after))


@router.get("/monitoring/live/events", response_model=None)
async def live_events(found: Reader, scope: str = "", last_event_id: LastId = "") -> Response:
    """Tells whenever something changes about the runs that are under way in a scope."""
    scopes = found.person.scopes_in(check_scope(scope, "scope")) if scope else found.person.scopes
    stream = Stream(person_id=person_id(found), loop=asyncio.get_running_loop(), scopes=scopes)
    return answer_stream(found, stream, last_event_id)
