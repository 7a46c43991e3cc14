"""agentplat mcp: the tools of a run over MCP on the standard streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

import typer

from agentplat.cli.publishing import Server
from agentplat.cli.remote import Remote
from agentplat.domain.errors import InvalidInput, Violation

Bridge = Callable[[str, str], None]
"""Serves the run of a token until the streams are closed. Takes the server's address and the token."""

ServerUrl = Callable[[str | None], str]
"""The address of the server, from the flag or the settings."""


def register(app: typer.Typer, server_url: ServerUrl, bridge: Bridge) -> None:
    """Add the command to an app."""

    @app.command("mcp")
    def mcp(
        token_env: Annotated[
            str, typer.Option(help="Variable that holds the run's token; on a command line others could read it.")
        ] = "AGENTPLAT_RUN_TOKEN",
        server: Server = None,
    ) -> None:
        """Offer the tools of a run that a program took, over MCP on standard input and output, and hold the run meanwhile.

        Example: AGENTPLAT_RUN_TOKEN=apr_... agentplat mcp --server http://127.0.0.1:8400
        """
        token = os.environ.get(token_env, "").strip()
        if not token or not token.isascii() or not token.isprintable():
            remedy = "put the token there that POST /v1/external:lease gave for the run"
            raise InvalidInput([Violation(field="token-env", reason=f"names {token_env}, which holds no token", remedy=remedy)])
        url = server_url(server)
        with Remote(url, token) as remote:
            # Before MCP begins, a refusal has an exit status.
            remote.post("/v1/external/run/heartbeat")
        bridge(url, token)
