"""The server around the methods: address, encryption, bounds, health, reflection, and how it ends."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_reflection.v1alpha import reflection  # type: ignore[import-untyped]

from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.rpc.interceptor import Front
from graphsvc.rpc.servicer import GraphServicer
from graphsvc.v1 import graph_pb2, graph_pb2_grpc

SERVICE_NAME = graph_pb2.DESCRIPTOR.services_by_name["GraphService"].full_name


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files. client_ca: issuers of client certificates, which every client must then show; None where clients need none."""

    certificate: Path
    key: Path
    client_ca: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """threads: calls answered side by side. calls: most calls accepted at once; more are refused at once.

    message_bytes: largest request. streams_per_connection: most open calls on one connection; clients wait with more.
    ping_interval_s: clients that ping more often are cut off.
    """

    threads: int
    calls: int
    message_bytes: int
    streams_per_connection: int
    ping_interval_s: int


def _refuse(field: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=field, reason=reason, remedy=remedy)])


def is_loopback(listen: str) -> bool:
    """Whether HOST:PORT can be reached from this machine only."""
    host = listen.rpartition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _credentials(files: TlsFiles) -> grpc.ServerCredentials:
    def content(path: Path, field: str) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise _refuse(field, f"can not be read: {error.strerror}", "name a PEM file") from error

    pair = content(files.key, "tls_key"), content(files.certificate, "tls_certificate")
    if files.client_ca is None:
        return grpc.ssl_server_credentials([pair])
    return grpc.ssl_server_credentials([pair], content(files.client_ca, "tls_client_ca"), require_client_auth=True)


def _options(bounds: Bounds) -> list[tuple[str, Any]]:
    return [
        ("grpc.so_reuseport", 0),  # two servers on one port would each get some of the calls
        ("grpc.max_receive_message_length", bounds.message_bytes),
        ("grpc.max_concurrent_streams", bounds.streams_per_connection),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", bounds.ping_interval_s * 1000),
        ("grpc.http2.max_ping_strikes", 2),
    ]


class _Watch:
    """One client that is told of every change. Nothing that gRPC's own thread needs is held while a message is under way."""

    def __init__(self, status: Callable[[], Any], send: Callable[[Any], None]) -> None:
        self._status, self._send = status, send
        self._turn, self._told, self._ended = threading.Lock(), None, False

    def tell(self) -> None:
        """Send the status as it is now, unless it was sent already."""
        with self._turn:
            status = self._status()
            if not self._ended and status != self._told:
                self._told = status
                self._send(health_pb2.HealthCheckResponse(status=status))

    def end(self) -> None:
        """Let the client go."""
        with self._turn:
            if not self._ended:
                self._ended = True
                self._send(None)


class _Watches(health.HealthServicer):  # type: ignore[misc]  # the library has no types
    """Health whose watchers are let go when the server drains; otherwise they would hold it until the drain's time is up.

    The library sends to watchers under the lock that it takes when one leaves, and a send waits for the very thread that would
    take it: a client that leaves while the status changes would then stop the server for good. So watches are kept here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._watches: set[_Watch] = set()

    def Watch(self, request: Any, context: Any, send_response_callback: Any = None) -> None:  # noqa: N802
        """Send the status now and at every change, until the client leaves or the server drains."""

        def status() -> Any:
            return self._server_status.get(request.service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)

        watch = _Watch(status, send_response_callback)
        self._watches.add(watch)
        context.add_callback(lambda: self._watches.discard(watch))
        watch.tell()

    def set(self, service: str, status: Any) -> None:
        """Change a service's status and tell those who watch."""
        super().set(service, status)
        for watch in list(self._watches):
            watch.tell()

    def end_all(self) -> None:
        """End every watch."""
        for watch in list(self._watches):
            watch.end()


class GraphServer:
    """A gRPC server with the graph service, health and reflection on one address.

    It answers from `start` on; its health is SERVING from `ready` until `drain`.
    """

    def __init__(self, front: Front, bounds: Bounds, listen: str, tls: TlsFiles | None) -> None:
        """Bind the address. Raises InvalidInput where it is not free, or not loopback although everybody would be let in."""
        if front.authenticator.open and not is_loopback(listen):
            reason = f"is {listen!r}, which others can reach, but neither tokens nor client certificates are set"
            raise _refuse("listen", reason, "listen on 127.0.0.1, or set jwt_keys, or tls_client_ca with grants_file")
        self._pool = ThreadPoolExecutor(bounds.threads, thread_name_prefix="call")
        self._server = grpc.server(self._pool, interceptors=[front], options=_options(bounds), maximum_concurrent_rpcs=bounds.calls)
        self._health = _Watches()
        self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection([SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        self.address = self._bind(listen, tls)

    def _bind(self, listen: str, tls: TlsFiles | None) -> str:
        try:
            if tls is None:
                port = self._server.add_insecure_port(listen)
            else:
                port = self._server.add_secure_port(listen, _credentials(tls))
        except RuntimeError as error:
            # The library says no more than that it failed; a bad certificate and a taken port look alike.
            remedy = "free the port or use another, and look whether certificate and key belong together"
            raise _refuse("listen", f"{listen!r} can not be listened on", remedy) from error
        return f"{listen.rpartition(':')[0]}:{port}"

    def _set_health(self, status: Any) -> None:
        for service in (health.OVERALL_HEALTH, SERVICE_NAME):
            self._health.set(service, status)

    def start(self, servicer: GraphServicer) -> None:
        """Begin to answer."""
        graph_pb2_grpc.add_GraphServiceServicer_to_server(servicer, self._server)
        self._server.start()

    def ready(self) -> None:
        """Tell health that calls are welcome."""
        self._set_health(health_pb2.HealthCheckResponse.SERVING)

    def drain(self, timeout_s: float) -> None:
        """Stop: health says NOT_SERVING, new calls are refused, accepted ones are finished; after timeout_s they are cancelled."""
        # In threads: a client that reads nothing can keep a message from being sent until its call is cancelled.
        telling = threading.Thread(target=self._health.enter_graceful_shutdown, daemon=True)
        telling.start()
        telling.join(timeout=min(1.0, timeout_s))
        stopped = self._server.stop(grace=timeout_s)
        threading.Thread(target=self._health.end_all, daemon=True).start()
        stopped.wait()
        self._pool.shutdown(wait=False)
