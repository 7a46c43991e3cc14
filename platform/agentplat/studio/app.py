"""The application of the pages: routes, security headers, and refusals as pages (U-10)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

import structlog
from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentplat.domain.errors import NotFound, Overloaded, PlatformError, Unauthenticated, phrase
from agentplat.studio import (
    agents,
    approvals,
    entrance,
    graph,
    inbox,
    live,
    monitoring,
    orchestration,
    publishing,
    runs,
    spaces,
    tickets,
    workspaces,
)
from agentplat.studio.faults import FaultPage
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import static_files
from agentplat.studio.visitors import NotOurForm, Platform, Reader, Visitor, go_to, sign_in_path, visitor

_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_SAFE = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

_PARTS = (
    entrance,
    agents,
    publishing,
    graph,
    live,
    runs,
    inbox,
    approvals,
    monitoring,
    workspaces,
    spaces,
    tickets,
    orchestration,
)

log = structlog.get_logger()


class SafeHeaders:
    """Adds to every answer what browsers are to keep to."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def guard(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_SAFE)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, guard)


def create_studio(platform: Platform) -> FastAPI:
    """The pages of a platform."""
    app = FastAPI(title="Studio", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.platform = platform
    for part in _PARTS:
        app.include_router(part.router)
    app.add_api_route("/", home, methods=["GET"], response_model=None)
    app.add_api_route("/static/{digest}/{name}", static_file, methods=["GET"], response_model=None)
    _install_refusals(app, platform.statuses)
    app.add_middleware(SafeHeaders)
    return app


def home(_: Reader) -> Response:
    """Where everybody begins."""
    return go_to("/agents")


def static_file(digest: str, name: Annotated[str, Path(max_length=100)]) -> Response:
    """A file that belongs to the pages. Its address changes with it, so that it is kept."""
    found = static_files().get(name)
    if found is None or found.digest != digest:
        raise NotFound
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.content, media_type=_KINDS[name.rpartition(".")[2]], headers=headers)


def _visitor(request: Request) -> Visitor:
    found: Visitor | None = getattr(request.state, "visitor", None)
    return visitor(request) if found is None else found


def _refuse(request: Request, status: HTTPStatus, lines: tuple[Told, ...], headers: dict[str, str] | None = None) -> Response:
    try:
        who = _visitor(request)
    except PlatformError:
        # Not even who asks can be told just now.
        return PlainTextResponse("\n".join(one.reason for one in lines), status_code=status, headers=headers)
    answer = who.show(FaultPage(status=int(status), lines=lines), status=int(status))
    answer.headers.update(headers or {})
    return answer


def _install_refusals(app: FastAPI, statuses: Mapping[type[PlatformError], HTTPStatus]) -> None:
    @app.exception_handler(PlatformError)
    def refused(request: Request, error: PlatformError) -> Response:
        if isinstance(error, Unauthenticated):
            return RedirectResponse(sign_in_path(request), status_code=303)
        status = HTTPStatus.FORBIDDEN if isinstance(error, NotOurForm) else statuses[type(error)]
        headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, Overloaded) else {}
        return _refuse(request, status, told(error), headers)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, _error: RequestValidationError) -> Response:
        return _refuse(request, HTTPStatus.NOT_FOUND, told(NotFound()))

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        if status is HTTPStatus.NOT_FOUND:
            return _refuse(request, status, told(NotFound()))
        return _refuse(request, status, (Told(reason="this can not be done here; go back, and use what the page offers"),))

    @app.exception_handler(Exception)
    def fault(request: Request, error: Exception) -> Response:
        incident = secrets.token_hex(8)
        log.error("fault", incident=incident, exc_info=error)
        reason = phrase("a fault of ours; the operator finds it in the log as incident %(incident)s", incident=incident)
        return _refuse(request, HTTPStatus.INTERNAL_SERVER_ERROR, (Told(reason=reason),))
