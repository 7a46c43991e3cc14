"""The application: routes, refusals, the pages beside the API, and the gateway around all of it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from agentplat.api import (
    agents,
    delegation,
    dispatch,
    external,
    governing,
    orchestration,
    people,
    problems,
    runs,
    spaces,
    tickets,
    workspaces,
)
from agentplat.api.callers import Platform, Served
from agentplat.api.gateway import Application, Gateway, GatewayLimits, Receive, Scope, Send
from agentplat.api.models import HealthOut
from agentplat.telemetry import Telemetry
from agentplat.usecases.names import manifest_schema

_API_PATHS = ("/v1/", "/mcp", "/healthz", "/readyz", "/openapi.json")


class Beside:
    """Sends every path that is not the API's to the pages beside it."""

    def __init__(self, app: Application, pages: Application) -> None:
        self._app, self._pages = app, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the one or the other."""
        of_pages = scope["type"] == "http" and not scope["path"].startswith(_API_PATHS)
        await (self._pages if of_pages else self._app)(scope, receive, send)


def create_app(platform: Platform, limits: GatewayLimits, telemetry: Telemetry, pages: Application | None = None) -> FastAPI:
    """The HTTP API of a platform. pages: what answers all paths that are not the API's."""
    app = FastAPI(title="agentplat", version="1", docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.platform = platform
    problems.install(app)
    app.include_router(agents.router)
    app.include_router(people.router)
    app.include_router(governing.router)
    app.include_router(runs.router)
    app.include_router(external.router)
    app.include_router(external.mcp_router)
    app.include_router(dispatch.router)
    for together in (workspaces, tickets, spaces, delegation, orchestration):
        app.include_router(together.router)
    _add_open_routes(app)
    if pages is not None:
        app.add_middleware(Beside, pages=pages)
    app.add_middleware(Gateway, limits=limits, telemetry=telemetry)
    return app


def _add_open_routes(app: FastAPI) -> None:
    """Routes that need no token, as they tell nothing of anybody."""

    @app.get("/healthz", tags=["health"])
    def healthy() -> HealthOut:
        """The process answers."""
        return HealthOut()

    @app.get("/readyz", tags=["health"])
    def ready(served: Served) -> HealthOut:
        """The database answers and has the right schema. The graph service may be down: publishing goes on without it."""
        served.use_cases.check()
        return HealthOut()

    @app.get("/v1/schema/manifest", tags=["schema"])
    def schema() -> dict[str, Any]:
        """The JSON Schema of a manifest."""
        return dict(manifest_schema())
