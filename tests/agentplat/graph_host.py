"""A real graph service in this process that is stopped and started again on its address, with its log in a file."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from opentelemetry.sdk.trace import TracerProvider

from graphsvc.domain.grants import Caller
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, EntryKind
from graphsvc.rpc.admission import RateLimit, StreamSlots
from graphsvc.rpc.auth import BearerTokens
from graphsvc.rpc.interceptor import Front
from graphsvc.rpc.keys import key_source
from graphsvc.rpc.requests import ImportLimits
from graphsvc.rpc.server import Bounds, GraphServer, TlsFiles
from graphsvc.rpc.servicer import GraphServicer
from graphsvc.service import GraphService
from graphsvc.store.opening import open_store
from graphsvc.telemetry import Telemetry

ISSUER, AUDIENCE = "agentplat", "graphsvc"
_BOUNDS = Bounds(threads=8, calls=256, message_bytes=4 * 1024 * 1024, streams_per_connection=100, ping_interval_s=10)
_IMPORTS = ImportLimits(messages=1_000, versions=10_000, events=100_000)


@dataclass(frozen=True)
class Remembering:
    """The usual check of tokens, which remembers whom it let in."""

    tokens: BearerTokens
    callers: list[Caller] = field(default_factory=list)
    open: bool = False

    def caller(self, context: grpc.ServicerContext) -> Caller:
        found = self.tokens.caller(context)
        self.callers.append(found)
        return found


class GraphHost:
    """Starts and stops the service; what it published stays in its log."""

    def __init__(
        self,
        folder: Path,
        public_key: Path,
        limits: Limits,
        tracing: TracerProvider | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self.store_url = f"sqlite:///{folder / 'graphsvc.db'}"
        self.authenticator = Remembering(BearerTokens(key_source(str(public_key)), ISSUER, AUDIENCE))
        self._tracing, self._tls = tracing, tls
        self._policy = LimitPolicy(default=limits, ceiling=limits)
        self._running: tuple[GraphServer, GraphService] | None = None
        self.address = f"127.0.0.1:{_free_port()}"

    def start(self) -> None:
        """Answer again."""
        assert self._running is None
        telemetry = Telemetry(self._tracing)
        front = Front(
            authenticator=self.authenticator,
            telemetry=telemetry,
            rate=RateLimit(1e6, 1_000_000),
            streams=StreamSlots(6, 6),
            default_deadline_s=60,
        )
        server = GraphServer(front, _BOUNDS, self.address, self._tls)
        service = GraphService(open_store(self.store_url), self._policy)
        server.start(GraphServicer(service=service, telemetry=telemetry, import_limits=_IMPORTS, software_version="test"))
        server.ready()
        self._running = server, service

    def stop(self) -> None:
        """Answer no more; calls under way are cancelled."""
        if self._running is not None:
            server, service = self._running
            self._running = None
            server.drain(0)
            service.close()

    @property
    def service(self) -> GraphService:
        """What runs, for looking behind the wire."""
        assert self._running is not None
        return self._running[1]

    def put(self, *versions: AgentVersion) -> None:
        """Load versions past the platform."""
        self.service.import_versions(versions)

    def told(self) -> list[tuple[str, EntryKind, int]]:
        """Everything that the log has, in order, read past the service."""
        with closing(open_store(self.store_url)) as store:
            return [(entry.agent.text, entry.kind, entry.number) for entry in store.read(0)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def silent_address() -> Iterator[str]:
    """An address where connections are taken but nothing is ever answered."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(16)
        yield f"127.0.0.1:{deaf.getsockname()[1]}"
