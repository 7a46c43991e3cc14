"""The ways a world is run: kernels, stores and transports, combined so that every world meets every value of the three."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from graphsvc.client import GraphClient
from graphsvc.domain.answers import Imported, Published, Retired
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, Declaration
from graphsvc.domain.names import AgentRef
from graphsvc.domain.redaction import Reader
from graphsvc.domain.report import Report
from graphsvc.graph import Kernel
from graphsvc.kernels import jit, reference
from graphsvc.rpc.admission import RateLimit, StreamSlots
from graphsvc.rpc.auth import Anyone
from graphsvc.rpc.interceptor import Front
from graphsvc.rpc.requests import ImportLimits
from graphsvc.rpc.server import Bounds, GraphServer
from graphsvc.rpc.servicer import GraphServicer
from graphsvc.service import GraphService
from graphsvc.store.port import Store
from graphsvc.telemetry import Telemetry

PATIENCE_S = 60.0
"""How long a call may take; far above what a busy machine needs."""

POLICY = LimitPolicy(default=Limits(), ceiling=Limits(max_loops=100, max_visits=2_000_000))
KERNELS: dict[str, Kernel] = {"reference": reference.search, "jit": jit.search}

_BOUNDS = Bounds(threads=2, calls=16, message_bytes=4 * 1024 * 1024, streams_per_connection=100, ping_interval_s=10)
_IMPORTS = ImportLimits(messages=1_000, versions=10_000, events=100_000)


class Graphs(Protocol):
    """What the service and its client have in common."""

    def check(
        self,
        agent: AgentRef,
        declaration: Declaration,
        reader: Reader,
        *,
        max_loops: int | None = None,
        max_visits: int | None = None,
        at_least_revision: int = 0,
    ) -> Report:
        """The report on a declaration."""

    def publish(self, version: AgentVersion, reader: Reader) -> Published:
        """Store a version and report on it."""

    def retire(self, agent: AgentRef) -> Retired:
        """Take an agent out."""

    def import_versions(self, versions: Iterable[AgentVersion]) -> Imported:
        """Store many versions."""


@contextmanager
def in_process(service: GraphService) -> Iterator[Graphs]:
    """The service itself."""
    yield service


@contextmanager
def over_grpc(service: GraphService) -> Iterator[Graphs]:
    """A client of a real server on loopback."""
    telemetry = Telemetry(None)
    front = Front(
        authenticator=Anyone(),
        telemetry=telemetry,
        rate=RateLimit(1e6, 1_000_000),
        streams=StreamSlots(2, 2),
        default_deadline_s=PATIENCE_S,
    )
    server = GraphServer(front, _BOUNDS, "127.0.0.1:0", None)
    server.start(GraphServicer(service=service, telemetry=telemetry, import_limits=_IMPORTS, software_version="1.2.3"))
    server.ready()
    try:
        with GraphClient(server.address, deadline_s=PATIENCE_S) as client:
            yield client
    finally:
        server.drain(0)


@dataclass(frozen=True, slots=True)
class Way:
    """One combination."""

    kernel: str
    store: str
    transport: str

    @property
    def text(self) -> str:
        """Its name among the tests."""
        return f"{self.kernel}-{self.store}-{self.transport}"

    @contextmanager
    def open(self, store: Store) -> Iterator[Graphs]:
        """A service on the store, reached by the transport."""
        service = GraphService(store, POLICY, KERNELS[self.kernel], patience_s=PATIENCE_S)
        with TRANSPORTS[self.transport](service) as graphs:
            yield graphs


TRANSPORTS: dict[str, Callable[[GraphService], AbstractContextManager[Graphs]]] = {"process": in_process, "grpc": over_grpc}

PLAINEST = Way("reference", "memory", "process")
WAYS = (
    PLAINEST,
    Way("jit", "sqlite", "grpc"),
    Way("jit", "postgres", "process"),
    Way("reference", "postgres", "grpc"),
)
