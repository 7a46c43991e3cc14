"""Composition root of the graph service: the only place where settings, stores, use cases and the gRPC server meet."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
import typer
from typer.core import TyperGroup

from graphsvc.cli import serve
from graphsvc.cli.context import Composition
from graphsvc.cli.output import end
from graphsvc.domain.errors import InvalidInput, LogDamaged, Overloaded, StoreUnavailable, Violation
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import Declaration
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.rpc.admission import RateLimit, StreamSlots
from graphsvc.rpc.auth import Anyone, Authenticator, BearerTokens, read_grants_file
from graphsvc.rpc.interceptor import Front
from graphsvc.rpc.keys import key_source
from graphsvc.rpc.requests import ImportLimits
from graphsvc.rpc.server import Bounds, GraphServer, TlsFiles
from graphsvc.rpc.servicer import GraphServicer
from graphsvc.settings import FIELDS, Settings, load, unit_of
from graphsvc.store.port import SnapshotState
from graphsvc.store.snapshot import FileSnapshot, SnapshotDamaged
from graphsvc.telemetry import Telemetry, configure_logging, otlp_tracing

if TYPE_CHECKING:
    from graphsvc.graph import Kernel
    from graphsvc.service import GraphService


def _authenticator(settings: Settings) -> tuple[Authenticator, str]:
    """Who tells callers apart, and that in words for the ready line."""
    if settings.jwt_keys is not None and settings.jwt_issuer is not None:
        tokens = BearerTokens(key_source(settings.jwt_keys), settings.jwt_issuer, settings.jwt_audience)
        return tokens, "callers show bearer tokens"
    if settings.grants_file is not None:
        return read_grants_file(settings.grants_file), "callers show client certificates"
    return (
        Anyone(),
        "this machine only, where every caller may do everything: neither tokens nor client certificates are set",
    )


def _policy(settings: Settings) -> LimitPolicy:
    chain_limit = settings.chain_limit
    return LimitPolicy(
        default=Limits(max_loops=settings.max_loops, max_visits=settings.max_visits, chain_limit=chain_limit),
        ceiling=Limits(max_loops=settings.max_loops_ceiling, max_visits=settings.max_visits_ceiling, chain_limit=chain_limit),
    )


def _front(settings: Settings, authenticator: Authenticator, telemetry: Telemetry) -> Front:
    return Front(
        authenticator=authenticator,
        telemetry=telemetry,
        rate=RateLimit(settings.calls_per_s, settings.calls_burst),
        streams=StreamSlots(settings.max_streams, settings.max_streams_per_caller),
        default_deadline_s=settings.default_deadline_s,
    )


def _server(settings: Settings, front: Front) -> GraphServer:
    bounds = Bounds(
        threads=settings.threads,
        calls=settings.max_calls,
        message_bytes=settings.max_message_bytes,
        streams_per_connection=settings.max_calls_per_connection,
        ping_interval_s=settings.min_ping_interval_s,
    )
    tls = None
    if settings.tls_certificate and settings.tls_key:
        tls = TlsFiles(certificate=settings.tls_certificate, key=settings.tls_key, client_ca=settings.tls_client_ca)
    return GraphServer(front, bounds, settings.listen, tls)


def _servicer(settings: Settings, service: GraphService, telemetry: Telemetry) -> GraphServicer:
    limits = ImportLimits(
        messages=settings.import_max_messages, versions=settings.import_max_versions, events=settings.import_max_events
    )
    return GraphServicer(service=service, telemetry=telemetry, import_limits=limits, software_version=_software_version())


def _software_version() -> str:
    try:
        return version("loopwarden")
    except PackageNotFoundError:
        return "not installed"


@contextmanager
def _service(settings: Settings) -> Iterator[GraphService]:
    if settings.kernel_cache_dir is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(settings.kernel_cache_dir)
    # numba looks for a folder it may write to while the kernels are imported, and fails where there is none. So they are
    # imported only now that the setting is known.
    from graphsvc.service import GraphService  # noqa: PLC0415
    from graphsvc.store.opening import open_store  # noqa: PLC0415

    snapshot = FileSnapshot(settings.snapshot) if settings.snapshot else None
    store = open_store(settings.store_url, patience_s=settings.write_patience_s)
    service = GraphService(store, _policy(settings), snapshot=_loaded(snapshot))
    try:
        if snapshot and service.revision - service.loaded_from >= _WORTH_KEEPING:
            _keep(service, snapshot)
        yield service
        if snapshot:
            _keep(service, snapshot)
    finally:
        service.close()


def _loaded(snapshot: FileSnapshot | None) -> SnapshotState | None:
    try:
        return snapshot.load() if snapshot else None
    except SnapshotDamaged as error:
        structlog.get_logger().error("snapshot left aside", reason=f"it {error}", remedy="none needed: the log is read instead")
        return None


def _keep(service: GraphService, snapshot: FileSnapshot) -> None:
    try:
        service.state(snapshot.save)
    except OSError as error:
        structlog.get_logger().error("snapshot not kept", reason=str(error))


_LOOK_UP_S = 0.25
_WORTH_KEEPING = 10_000
"""Entries read at a start after which the snapshot is made anew at once."""


def _warm(service: GraphService) -> None:
    # The first search loads the compiled kernels, or compiles them, which takes seconds that no caller should wait.
    service.check(AgentRef(Scope(), "graphsvc"), Declaration(), EVERYTHING)


@contextmanager
def _open_service(url: str, *, create: bool) -> Iterator[GraphService]:
    """The use cases on the store behind a URL, for commands that work without a server."""
    from graphsvc.service import GraphService  # noqa: PLC0415
    from graphsvc.store.opening import open_store  # noqa: PLC0415

    file = url.removeprefix("sqlite:///")
    if not create and file != url and not Path(file).is_file():
        raise InvalidInput([Violation(field="store", reason="is a file that does not exist", remedy="name the file of a store")])
    # Importing and exporting search nothing, so the limits are never looked at.
    service = GraphService(open_store(url), LimitPolicy(default=Limits(), ceiling=Limits()))
    try:
        yield service
    finally:
        service.close()


def _kernel(name: str) -> Kernel:
    kernel: Kernel = import_module(f"graphsvc.kernels.{name}").search
    return kernel


@contextmanager
def _following(settings: Settings, service: GraphService) -> Iterator[None]:
    """Keeps the graph up with other replicas on the same store. A caller that has seen a revision need not wait for this (G-27)."""
    over = threading.Event()

    def follow() -> None:
        while not over.wait(settings.follow_interval_s):
            try:
                service.catch_up()
            except Overloaded:
                # Whoever has the turn folds the same log; this one looks again.
                continue
            except (StoreUnavailable, LogDamaged) as error:
                structlog.get_logger().error("not followed", exc_info=error)

    thread = threading.Thread(target=follow, name="follow")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _metrics(settings: Settings, telemetry: Telemetry) -> Iterator[str | None]:
    if settings.metrics_listen is None:
        yield None
        return
    host, _, port = settings.metrics_listen.rpartition(":")
    server = telemetry.serve_metrics(host.strip("[]"), int(port))
    try:
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _told_to_stop() -> threading.Event:
    """Set by the first SIGTERM or SIGINT. A second one finds the default action again and ends the process at once."""
    stop = threading.Event()

    def told(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    return stop


def run_server(flags: Mapping[str, str], config: Path | None, announce: Callable[[serve.Ready], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was accepted.

    Raises InvalidInput for wrong settings, StoreUnavailable, LogDamaged.
    """
    settings = load(flags, config)
    configure_logging(settings.log_level, settings.log_format)
    stop = _told_to_stop()
    log = structlog.get_logger()
    with ExitStack() as stack:
        tracing = otlp_tracing(settings.otlp_endpoint) if settings.otlp_endpoint else None
        if tracing:
            stack.callback(tracing.shutdown)
        telemetry = Telemetry(tracing)
        authenticator, access = _authenticator(settings)
        server = _server(settings, _front(settings, authenticator, telemetry))
        service = stack.enter_context(_service(settings))
        metrics = stack.enter_context(_metrics(settings, telemetry))
        stack.enter_context(_following(settings, service))
        server.start(_servicer(settings, service, telemetry))
        stack.callback(server.drain, settings.drain_timeout_s)
        _warm(service)
        gc.freeze()  # the graph lives as long as the process; scans for garbage would walk all of it and find none
        server.ready()
        announce(
            serve.Ready(
                address=server.address,
                access=access,
                encrypted=settings.tls_certificate is not None,
                revision=service.revision,
                metrics=metrics,
            )
        )
        # With an end: a signal that comes just before a wait begins does not wake it.
        while not stop.wait(_LOOK_UP_S):
            pass
        log.info("draining", timeout_s=settings.drain_timeout_s)
    log.info("stopped")


def _flags() -> list[serve.Flag]:
    return [
        serve.Flag(
            name=name,
            meaning=field.description or "",
            unit=unit_of(field),
            default=None if field.default is None else str(field.default),
        )
        for name, field in FIELDS.items()
    ]


def _from(module: str) -> Callable[[typer.Typer], None]:
    def register(app: typer.Typer) -> None:
        import_module(f"graphsvc.cli.{module}").register(app)

    return register


COMMANDS: Mapping[str, Callable[[typer.Typer], None]] = {
    "serve": lambda app: serve.register(app, _flags(), run_server),
    "check": _from("check"),
    "audit": _from("audit"),
    "import": _from("import_"),
    "export": _from("export"),
    "generate": _from("generate"),
    "token": _from("token"),
    "schema": _from("schema"),
}


class Commands(TyperGroup):
    """The commands, each imported when it is asked for: most need the kernels, whose import takes a second."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """One of them, None where there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        COMMANDS[cmd_name](alone)
        return typer.main.get_command(alone)


app = typer.Typer(
    cls=Commands,
    name="graphsvc",
    help="Which loops would a version of an agent close?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _graphsvc() -> None:
    """Which loops would a version of an agent close?"""


def main() -> None:
    """The command line. Ends with the statuses of O-2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # names are in any language, whatever the locale
    try:
        app(obj=Composition(open_service=_open_service, kernel=_kernel))
    except Exception as error:  # noqa: BLE001 - the exit status tells scripts whose fault it is
        sys.exit(end(error))


if __name__ == "__main__":
    main()
