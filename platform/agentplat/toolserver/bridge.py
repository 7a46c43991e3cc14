"""From standard streams to a server: MCP for programs that start a command instead of opening a connection."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from agentplat.toolserver.serving import INSTRUCTIONS, NAME

_ANSWER_WAIT_S = 300.0
"""Seconds that a call may take: the tool's own time, and that of calls before it."""

_AGAIN_S = 5.0
"""Seconds between two signs of life where the server did not answer the last one."""


def bridge(server_url: str, token: str) -> None:
    """Serve the run of a token on the standard streams until they are closed, and hold the run meanwhile."""
    anyio.run(_bridge, server_url.rstrip("/"), token)


async def _bridge(server_url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_ANSWER_WAIT_S) as http,
        Client(streamable_http_client(f"{server_url}/mcp", http_client=http)) as upstream,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_hold, http, server_url)
        server = _server(upstream)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


def _server(upstream: Client) -> Server[Any]:
    async def list_tools(_context: ServerRequestContext[Any], _page: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await upstream.list_tools(cache_mode="bypass")

    async def call_tool(_context: ServerRequestContext[Any], asked: types.CallToolRequestParams) -> types.CallToolResult:
        return await upstream.call_tool(asked.name, asked.arguments or {})

    return Server(NAME, version="1", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


async def _hold(http: httpx2.AsyncClient, server_url: str) -> None:
    """Give signs of life for as long as the run is held; once it is lost, its calls say so."""
    while True:
        wait_s = _AGAIN_S
        try:
            answer = await http.post(f"{server_url}/v1/external/run/heartbeat")
        except httpx2.HTTPError:
            await anyio.sleep(wait_s)
            continue
        if answer.is_success:
            wait_s = float(answer.json()["lease_s"]) / 3
        elif answer.is_client_error and answer.status_code != httpx2.codes.TOO_MANY_REQUESTS:
            return
        await anyio.sleep(wait_s)
