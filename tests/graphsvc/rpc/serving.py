"""A real server on loopback for the tests of this folder, and bounded waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import grpc
from opentelemetry.sdk.trace import TracerProvider

from graphsvc.client import ClientTls, GraphClient, Token
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.kernels import reference
from graphsvc.rpc.admission import RateLimit, StreamSlots
from graphsvc.rpc.auth import Anyone, Authenticator
from graphsvc.rpc.interceptor import Front
from graphsvc.rpc.requests import ImportLimits
from graphsvc.rpc.server import Bounds, GraphServer, TlsFiles
from graphsvc.rpc.servicer import GraphServicer
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore
from graphsvc.telemetry import Telemetry
from graphsvc.v1 import graph_pb2_grpc

PATIENCE_S = 60.0
"""How long a test waits for what must happen before it fails; far above what a busy machine needs."""

ANYONE = Anyone()
IMPORT_LIMITS = ImportLimits(messages=1_000, versions=10_000, events=100_000)
POLICY = LimitPolicy(default=Limits(), ceiling=Limits(max_loops=1_000, max_visits=10_000_000))


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Returns once the condition holds. Fails the test when it does not in time."""
    end = time.monotonic() + PATIENCE_S
    pause = Event()
    while not holds():
        assert time.monotonic() < end, f"in {PATIENCE_S:g} s it did not happen that {what}"
        pause.wait(0.02)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a server of a test differs from the usual one."""

    authenticator: Authenticator = ANYONE
    listen: str = "127.0.0.1:0"
    tls: TlsFiles | None = None
    threads: int = 8
    calls: int = 64
    message_bytes: int = 4 * 1024 * 1024
    rate: RateLimit | None = None
    streams: StreamSlots | None = None
    default_deadline_s: float = PATIENCE_S
    import_limits: ImportLimits = IMPORT_LIMITS
    tracing: TracerProvider | None = None
    versions: tuple[AgentVersion, ...] = ()
    ready: bool = True


@dataclass(frozen=True, kw_only=True)
class Running:
    """A server that answers, with what is behind it."""

    server: GraphServer
    service: GraphService
    store: MemoryStore
    telemetry: Telemetry

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.server.address

    def client(self, token: Token = None, tls: ClientTls | None = None) -> GraphClient:
        """A client of it; the address is a name when certificates are checked against names."""
        target = self.address if tls is None else self.address.replace("127.0.0.1", "localhost")
        return GraphClient(target, token=token, tls=tls, deadline_s=PATIENCE_S)

    @contextmanager
    def stub(self) -> Iterator[graph_pb2_grpc.GraphServiceStub]:
        """A bare stub of it."""
        with grpc.insecure_channel(self.address) as channel:
            yield graph_pb2_grpc.GraphServiceStub(channel)

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric, 0 where it was never counted."""
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0

    def wait_for_calls_in_flight(self, count: int) -> None:
        """Returns once so many calls are being answered."""
        wait_until(lambda: self.metric("graphsvc_requests_in_flight") == count, f"{count} calls are in flight")


@contextmanager
def serving(**changes: Any) -> Iterator[Running]:
    """A server that is ready, drained at the end. changes: fields of Options."""
    options = Options(**changes)
    telemetry = Telemetry(options.tracing)
    front = Front(
        authenticator=options.authenticator,
        telemetry=telemetry,
        rate=options.rate or RateLimit(1e6, 1_000_000),
        streams=options.streams or StreamSlots(6, 6),
        default_deadline_s=options.default_deadline_s,
    )
    bounds = Bounds(
        threads=options.threads,
        calls=options.calls,
        message_bytes=options.message_bytes,
        streams_per_connection=100,
        ping_interval_s=10,
    )
    store = MemoryStore(patience_s=PATIENCE_S)
    # The plain kernel answers the same and needs no compiling, for which no call of a test should wait.
    service = GraphService(store, POLICY, reference.search)
    service.import_versions(options.versions)
    server = GraphServer(front, bounds, options.listen, options.tls)
    server.start(GraphServicer(service=service, telemetry=telemetry, import_limits=options.import_limits, software_version="1.2.3"))
    if options.ready:
        server.ready()
    try:
        yield Running(server=server, service=service, store=store, telemetry=telemetry)
    finally:
        server.drain(0)
        service.close()


def version(agent: str, number: int, emits: Iterable[Any], listens: Iterable[str]) -> AgentVersion:
    """A version in short."""
    return AgentVersion(parse_agent(agent), number, declare(list(emits), list(listens)))
