"""The application: routes, refusals and the gateway around them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from agentplat.api import agents, dispatch, external, governing, people, problems, runs, spaces, tickets, workspaces
from agentplat.api.callers import Platform, Served
from agentplat.api.gateway import Gateway, GatewayLimits
from agentplat.api.models import HealthOut
from agentplat.telemetry import Telemetry
from agentplat.usecases.names import manifest_schema


def create_app(platform: Platform, limits: GatewayLimits, telemetry: Telemetry) -> FastAPI:
    """The HTTP API of a platform."""
    app = FastAPI(title="agentplat", version="1", docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.platform = platform
    problems.install(app)
    app.include_router(agents.router)
    app.include_router(people.router)
    app.include_router(governing.router)
    app.include_router(runs.router)
    app.include_router(external.router)
    app.include_router(dispatch.router)
    for router in (workspaces.router, workspaces.about_me, tickets.router, spaces.router):
        app.include_router(router)
    _add_open_routes(app)
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
