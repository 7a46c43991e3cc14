"""An MCP server for the run that a request's token belongs to (R-5).

The server keeps nothing between requests: who calls is said by the token, what was called before by the run's trail. Each request
gets a server of its own, which knows its run and no other.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.types import ASGIApp, Receive, Scope, Send

from agentplat.domain.errors import (
    AccessDenied,
    Conflict,
    ContentDamaged,
    ContractUnmet,
    InvalidInput,
    LeaseLost,
    PlatformError,
    RunCancelled,
    RunWaits,
)
from agentplat.domain.steps import ResultKind
from agentplat.domain.tools import ToolSpec
from agentplat.toolserver.finishing import FINISH, answer_in
from agentplat.usecases.drive_externally import DriveExternally, Holding

NAME = "agentplat"
INSTRUCTIONS = "The tools of one run. A refusal is final as it stands; finish ends the run."

REASON = "agentplat/reason"
"""Under this name a list without tools says why it has none."""

_FOR_THE_AGENT = (AccessDenied, Conflict, ContentDamaged, ContractUnmet, InvalidInput, LeaseLost, RunCancelled, RunWaits)
"""What an agent is told as the result of its call, word for word; with anything else the caller may try again."""

# What it says of itself at this level is of no use to an operator, who sees each request in the log already.
logging.getLogger("mcp").setLevel(logging.WARNING)


class ToolServer:
    """Gives an ASGI application for a run."""

    def __init__(self, external: DriveExternally) -> None:
        self._external = external
        # Clients call tools side by side, and a run does one thing after the other.
        self._turns: WeakValueDictionary[int, anyio.Lock] = WeakValueDictionary()

    def __call__(self, holding: Holding) -> ASGIApp:
        """The application for whoever holds the run."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            # Without sessions or streams: each request is one exchange, as nothing is ever told unasked.
            manager = StreamableHTTPSessionManager(self._server(holding), stateless=True, json_response=True)
            async with manager.run():
                await manager.handle_request(scope, receive, send)

        return answer

    def _server(self, holding: Holding) -> Server[Any]:
        return Server(
            NAME,
            version="1",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda _name: None,  # no argument is wanted as a header besides
            on_list_tools=partial(self._list, holding),
            on_call_tool=partial(self._call, holding),
            on_ping=partial(self._ping, holding),
        )

    async def _list(
        self, holding: Holding, _context: ServerRequestContext[Any], _page: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            specs = await run_sync(self._offered, holding)
        except _FOR_THE_AGENT as refusal:
            # An empty list and no error: clients ask for it behind a call, when the run may have ended by that call.
            return types.ListToolsResult(tools=[], _meta={REASON: str(refusal)})
        except PlatformError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        return types.ListToolsResult(tools=[*map(_shown, specs), FINISH])

    def _offered(self, holding: Holding) -> list[ToolSpec]:
        self._external.heartbeat(holding)
        return self._external.tools(self._external.held(holding))

    async def _ping(
        self, holding: Holding, _context: ServerRequestContext[Any], _params: types.RequestParams | None
    ) -> types.EmptyResult:
        try:
            await run_sync(self._external.heartbeat, holding)
        except PlatformError as error:
            raise MCPError(INVALID_REQUEST, str(error)) from error
        return types.EmptyResult()

    async def _call(
        self, holding: Holding, context: ServerRequestContext[Any], asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        turn = self._turns.setdefault(holding.run_id, anyio.Lock())
        async with turn, self._kept_alive(holding):
            outcome = await run_sync(self._outcome, holding, repr(context.request_id), asked)
        if isinstance(outcome, PlatformError):
            raise MCPError(INTERNAL_ERROR, str(outcome)) from outcome
        return outcome

    def _outcome(self, holding: Holding, request: str, asked: types.CallToolRequestParams) -> types.CallToolResult | PlatformError:
        """What the agent is told, or what keeps it from being told anything."""
        arguments = dict(asked.arguments or {})
        try:
            if asked.name == FINISH.name:
                run = self._external.finish(holding, answer_in(arguments))
                return _result(f"run {run.id} is {run.state.value}", failed=False)
            called = self._external.call_next(holding, request, asked.name, arguments)
        except _FOR_THE_AGENT as refusal:
            return _result(str(refusal), failed=True)
        except PlatformError as error:
            return error
        return _result(called.text, failed=called.result is not ResultKind.DONE)

    @asynccontextmanager
    async def _kept_alive(self, holding: Holding) -> AsyncIterator[None]:
        """Hold the run for as long as the call takes: its program may have no other way of giving a sign of life."""

        async def renew() -> None:
            while True:
                try:
                    lease_s = await run_sync(self._external.heartbeat, holding)
                except PlatformError:
                    return  # the call itself says why
                await anyio.sleep(lease_s / 3)

        async with anyio.create_task_group() as group:
            group.start_soon(renew)
            yield
            group.cancel_scope.cancel()


def _shown(spec: ToolSpec) -> types.Tool:
    return types.Tool(name=spec.name, description=spec.description, input_schema=dict(spec.schema))


def _result(text: str, *, failed: bool) -> types.CallToolResult:
    # Not by an exception, to which the library would add words of its own.
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)
