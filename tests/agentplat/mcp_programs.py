"""Programs that drive runs over MCP, with the SDK's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.agentplat.world import PATIENCE_S

Found = TypeVar("Found")


@asynccontextmanager
async def over_http(url: str, token: str | None, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of the tools of the run that the token belongs to. mode: how old a protocol it speaks."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, read_timeout_seconds=PATIENCE_S) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(command: StdioServerParameters, mode: str = "auto") -> AsyncIterator[Client]:
    """A client that starts a command and speaks with it over its standard streams."""
    async with Client(command, mode=mode, read_timeout_seconds=PATIENCE_S) as client:
        yield client


def text_of(result: CallToolResult) -> str:
    """All that a call gave."""
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


class Program:
    """A program that opens a connection for each thing it does. token: of its run."""

    def __init__(self, url: str, token: str | None, mode: str = "auto") -> None:
        self._url, self._token, self._mode = url, token, mode

    def do(self, act: Callable[[Client], Awaitable[Found]]) -> Found:
        """Do something with a connected client."""

        async def connected() -> Found:
            async with over_http(self._url, self._token, self._mode) as client:
                return await act(client)

        return asyncio.run(connected())

    def tools(self) -> dict[str, Any]:
        """The tools that are listed, with their schemas."""
        return {tool.name: tool.input_schema for tool in self.do(lambda client: client.list_tools()).tools}

    def call(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether the call went well, and what it gave."""
        result = self.do(lambda client: client.call_tool(tool, arguments))
        return not result.is_error, text_of(result)
