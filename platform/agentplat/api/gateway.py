"""What every request passes before it reaches a route: limits on size, time and number, then measuring (O-6, O-7)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog
from opentelemetry.trace import Span
from starlette.datastructures import Headers, MutableHeaders

from agentplat.api.problems import Problem, problem_for
from agentplat.domain.errors import TooLarge
from agentplat.telemetry import Telemetry

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_BODY_WAIT_S = 30.0
"""Seconds in which a request's body must have arrived."""

_ALWAYS = frozenset({"/healthz", "/readyz"})
"""Answered even when the server is full, so that nobody restarts it for being busy."""

_PRIVATE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Answers depend on who asks, so nothing in between may keep them."""

_STREAM = "text/event-stream"
"""What stays open to tell of changes waits for them without work; whoever serves it limits how many there are."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """max_bytes: of a request's body. max_requests: answered at the same time; more are told to come back."""

    max_bytes: int
    max_requests: int


class Gateway:
    """An ASGI application around another one."""

    def __init__(self, app: Application, limits: GatewayLimits, telemetry: Telemetry) -> None:
        self._app, self._limits, self._telemetry = app, limits, telemetry
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Routes match the path as it was sent: a reference holds '/' and ':', and a decoded '%2F' would cut it in two.
        scope["path"] = scope["raw_path"].decode("ascii", "replace")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status, began = 0, time.perf_counter()

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers_out = MutableHeaders(scope=message)
                for name, value in _PRIVATE.items():
                    headers_out.setdefault(name, value)
            await send(message)

        with self._telemetry.request(headers) as span:
            try:
                await self._admit(scope, receive, watch)
            finally:
                self._record(scope, status or 500, time.perf_counter() - began, span)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal: Problem | None = None
        body: bytes | None = None
        try:
            async with asyncio.timeout(_BODY_WAIT_S):
                body = await self._body(receive)
        except TimeoutError:
            refusal = Problem(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {_BODY_WAIT_S:.0f} s; send it again")
        except TooLarge as error:
            refusal = problem_for(error)
        if refusal is None and self._under_way >= self._limits.max_requests and scope["path"] not in _ALWAYS:
            detail = "the server is answering as many requests as it may; try again in 1 s"
            refusal = Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, {"Retry-After": "1"})
        if refusal is not None:
            await refusal(scope, receive, send)
        elif body is not None:
            await self._answer(scope, body, receive, send)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        rest = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(rest, None) or await receive()

        counted = True

        async def release(message: Message) -> None:
            nonlocal counted
            if counted and message["type"] == "http.response.start" and _is_stream(message):
                counted = False
                self._under_way -= 1
            await send(message)

        self._under_way += 1
        try:
            await self._app(scope, replay, release)
        finally:
            self._under_way -= counted

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None when the caller went away. Raises TooLarge."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.max_bytes:
                raise TooLarge(self._limits.max_bytes)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _record(self, scope: Scope, status: int, seconds: float, span: Span | None) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if route != "unknown" else "any"
        self._telemetry.answered(method, route, status, seconds, span)
        caller = scope.get("state", {}).get("caller")
        log.info("request", method=method, route=route, status=status, seconds=round(seconds, 4), caller=caller)


def _is_stream(message: Message) -> bool:
    return Headers(scope=message).get("content-type", "").startswith(_STREAM)
