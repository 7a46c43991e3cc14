"""Routes for programs that drive runs: one to take a run with a person's token, the others with the token of that run (R-5)."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from agentplat.api.callers import Caller, Served
from agentplat.api.run_models import (
    AnswerIn,
    CallIn,
    CallOut,
    EndedOut,
    FailureIn,
    LeasedOut,
    LeaseOut,
    TaskOut,
    ToolOut,
    ToolsOut,
    TurnIn,
)
from agentplat.domain.errors import Unauthenticated
from agentplat.usecases.drive_externally import Holding

router = APIRouter(prefix="/v1", tags=["external"])
mcp_router = APIRouter(tags=["external"])


def holding_in(request: Request, served: Served, authorization: Annotated[str | None, Header()] = None) -> Holding:
    """The run's token of a request, counted against its rate. Raises Unauthenticated, Overloaded."""
    scheme, _, token = (authorization or "").partition(" ")
    try:
        if scheme.lower() != "bearer":
            raise Unauthenticated
        holding = served.run_tokens.read(token.strip())
    except Unauthenticated:
        served.rates.take(f"address {request.client.host if request.client else ''}")
        raise
    request.state.caller = holding.person_id
    served.rates.take(f"run {holding.run_id}")
    return holding


Shown = Annotated[Holding, Depends(holding_in)]


@router.post("/external:lease", response_model=LeasedOut, responses={HTTPStatus.NO_CONTENT: {"description": "no run waits"}})
def lease(served: Served, access: Caller) -> LeasedOut | Response:
    """Take the oldest run of an agent with the driver `external` that the caller may publish; no content where none waits."""
    external = served.use_cases.drive_externally
    taken = external.take(access, f"external {secrets.token_hex(16)}")
    if taken is None:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    holding, held = taken
    return LeasedOut.given(held, served.run_tokens.sign(holding), external.lease.lease_s, external.tools(held))


@router.get("/external/run")
def read_task(served: Served, holding: Shown) -> TaskOut:
    """What the run is about, and what was done in it so far."""
    return TaskOut.of(served.use_cases.drive_externally.held(holding))


@router.get("/external/run/tools")
def list_tools(served: Served, holding: Shown) -> ToolsOut:
    """The tools that the run may call."""
    external = served.use_cases.drive_externally
    return ToolsOut(tools=[ToolOut.of(spec) for spec in external.tools(external.held(holding))])


@router.post("/external/run/heartbeat")
def heartbeat(served: Served, holding: Shown) -> LeaseOut:
    """Give a sign of life. Refused where the run was cancelled or is held by another."""
    return LeaseOut(lease_s=served.use_cases.drive_externally.heartbeat(holding))


@router.post("/external/run/calls")
def call_tool(served: Served, holding: Shown, given: CallIn) -> CallOut:
    """Call a tool. A refusal of the tool is an answer like any other."""
    called = served.use_cases.drive_externally.call(holding, given.call, given.tool, given.arguments)
    return CallOut.of(given.call, called)


@router.post("/external/run/turns", status_code=HTTPStatus.NO_CONTENT)
def report_turn(served: Served, holding: Shown, given: TurnIn) -> Response:
    """Report what a model said, for the trail."""
    served.use_cases.drive_externally.turn(holding, given.turn, given.value())
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post("/external/run/finish")
def finish(served: Served, holding: Shown, given: AnswerIn) -> EndedOut:
    """Finish the run with an answer and artifacts."""
    run = served.use_cases.drive_externally.finish(holding, given.value())
    return EndedOut(run=run.id, state=run.state.value)


@router.post("/external/run/fail")
def fail(served: Served, holding: Shown, given: FailureIn) -> EndedOut:
    """End the run as failed."""
    run = served.use_cases.drive_externally.fail(holding, given.reason)
    return EndedOut(run=run.id, state=run.state.value)


@router.post("/external/run/release", status_code=HTTPStatus.NO_CONTENT)
def release(served: Served, holding: Shown) -> Response:
    """Give the run back in order, for another program to go on with."""
    served.use_cases.drive_externally.release(holding)
    return Response(status_code=HTTPStatus.NO_CONTENT)


class _Passed(Response):
    """An answer that another application gives, to the request as it came."""

    def __init__(self, application: ASGIApp) -> None:
        super().__init__()
        self._application = application

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)


@mcp_router.post("/mcp", include_in_schema=False)
def tools_over_mcp(served: Served, holding: Shown) -> Response:
    """The tools of the run over MCP. No GET: it would keep a stream open on which nothing ever comes."""
    return _Passed(served.tool_server(holding))
