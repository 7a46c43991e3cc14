"""The HTTP API of a world on a real socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
from agentplat.api.app import create_app
from agentplat.api.callers import Platform
from agentplat.api.gateway import GatewayLimits
from agentplat.api.problems import STATUS_OF
from agentplat.api.rates import RateLimit
from agentplat.api.server import HttpServer, address_of, open_socket
from agentplat.domain.access import Access
from agentplat.run_tokens import RunTokens
from agentplat.studio.app import create_studio
from agentplat.studio.sessions import Sessions
from agentplat.studio.visitors import Platform as Pages
from agentplat.studio.watching import Watcher
from agentplat.telemetry import Telemetry
from agentplat.toolserver.serving import ToolServer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import FastAPI

from tests.agentplat.world import PATIENCE_S, World

LIMITS = GatewayLimits(max_bytes=64 * 1024, max_requests=16)


@dataclass(frozen=True, kw_only=True)
class Api:
    """A server, and clients of it."""

    world: World
    app: FastAPI
    address: str
    telemetry: Telemetry
    server: HttpServer

    def client(self, access: Access | None = None, token: str | None = None) -> httpx.Client:
        """A client with a person's token, or with any text as token, or without."""
        shown = self.world.token(access) if access is not None else token
        headers = {} if shown is None else {"Authorization": f"Bearer {shown}"}
        return httpx.Client(base_url=f"http://{self.address}", headers=headers, timeout=PATIENCE_S)

    def reached(self) -> bool:
        """Whether new connections are taken."""
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
        except ConnectionRefusedError:
            return False
        return True

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric, 0 where it was never counted."""
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


@contextmanager
def api(
    world: World,
    limits: GatewayLimits = LIMITS,
    rates: RateLimit | None = None,
    telemetry: Telemetry | None = None,
    address: str = "127.0.0.1:0",
    key: Ed25519PrivateKey | None = None,
) -> Iterator[Api]:
    """A server that answers until the block ends. key: the platform's, a new one where none is given."""
    measured = telemetry or Telemetry()
    key = key or Ed25519PrivateKey.generate()
    counted = rates or RateLimit(1e9, 1_000_000)
    platform = Platform(
        use_cases=world.cases,
        rates=counted,
        run_tokens=RunTokens(key=key),
        tool_server=ToolServer(world.cases.drive_externally),
    )
    watcher = Watcher(world.cases.monitor_runs, 0.02)
    pages = create_studio(
        Pages(use_cases=world.cases, rates=counted, sessions=Sessions(key=key), watcher=watcher, statuses=STATUS_OF)
    )
    app = create_app(platform, limits, measured, pages)
    opened = open_socket(address, "listen", encrypted=False)
    server = HttpServer(app, opened, None, drain_s=PATIENCE_S, most_connections=64)
    server.start()
    try:
        yield Api(world=world, app=app, address=address_of(opened), telemetry=measured, server=server)
    finally:
        assert watcher.close(PATIENCE_S)
        assert server.stop(PATIENCE_S)
        opened.close()


def path(*parts: Any) -> str:
    """A path whose parts may hold any character."""
    return "/" + "/".join(
        quote(str(part), safe=":") if str(part).startswith(("agents:", "tickets:")) else quote(str(part), safe="") for part in parts
    )
