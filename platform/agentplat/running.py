"""The servers of the platform from their settings to their end: the part of the composition root that needs everything.

Imported only by commands that serve or open the database, so that the others start at once.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from agentplat.api.app import create_app
from agentplat.api.callers import Platform
from agentplat.api.gateway import GatewayLimits
from agentplat.api.problems import STATUS_OF
from agentplat.api.rates import RateLimit
from agentplat.api.server import HttpServer, TlsFiles, address_of, is_loopback, open_socket, split_address
from agentplat.cli.people import Desk
from agentplat.cli.serving import Ready
from agentplat.content.opening import open_content
from agentplat.courier import Courier
from agentplat.dispatcher import Dispatcher
from agentplat.domain.errors import ChildFailed, InvalidInput, Violation
from agentplat.domain.outbox import Backoff
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.home import Home, open_home
from agentplat.loop_check import GraphAddress, open_loop_check
from agentplat.pipeline_runner import PipelineRunner
from agentplat.run_tokens import RunTokens
from agentplat.settings import Settings, load
from agentplat.signing import Signer, read_key
from agentplat.store.migrating import migrate
from agentplat.store.port import Store
from agentplat.store.sql import open_store
from agentplat.studio.app import create_studio
from agentplat.studio.sessions import Sessions
from agentplat.studio.visitors import Platform as Pages
from agentplat.studio.watching import Watcher
from agentplat.supervisor import Supervisor
from agentplat.telemetry import Telemetry, configure_logging, otlp_tracing
from agentplat.toolserver.serving import ToolServer
from agentplat.usecases.catalogue import LEASE_MARGIN_S, Patience, UseCases, build_acting, build_use_cases
from agentplat.usecases.dispatch_events import DispatchEvents
from agentplat.usecases.manage_people import ManagePeople
from agentplat.usecases.manage_tokens import ManageTokens
from agentplat.usecases.run_pipelines import RunPipelines
from agentplat.usecases.tool import AnyTool
from agentplat.worker import Worker
from agentplat.worktrees.folder import FolderWorkTrees

GRAPH_START_S = 600.0
"""Longest wait for the graph service of `agentplat up`, which compiles its kernels the first time."""

WORKER_START_S = 120.0
"""Longest wait for the worker of `agentplat up`."""

_WATCH_S = 0.5
"""Pause between two looks at whether the servers still answer."""

Announce = Callable[[Ready], None]


def _refuse(field: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=field, reason=reason, remedy=remedy)])


def _backoff(settings: Settings) -> Backoff:
    return Backoff(first_s=settings.retry_first_s, longest_s=settings.retry_longest_s)


def _signer(settings: Settings) -> Signer:
    try:
        key = read_key(settings.signing_key)
    except OSError as error:
        remedy = "make one with `graphsvc token --new-key FILE`, and give its public half to the graph service"
        raise _refuse("signing_key", f"cannot be read: {error.strerror}", remedy) from error
    except ValueError as error:
        raise _refuse("signing_key", "cannot be used", str(error)) from error
    return Signer(key=key, issuer=settings.token_issuer, audience=settings.token_audience)


def _trees(settings: Settings) -> FolderWorkTrees:
    return FolderWorkTrees(settings.worktrees, settings.host or socket.gethostname())


@contextmanager
def _use_cases(settings: Settings, signer: Signer) -> Iterator[UseCases]:
    store = open_store(settings.database_url)
    with ExitStack() as stack:
        stack.callback(store.close)
        store.check()
        address = GraphAddress(
            target=settings.graph_target, ca=settings.graph_ca, certificate=settings.graph_certificate, key=settings.graph_key
        )
        graph = open_loop_check(address, signer)
        stack.callback(graph.close)
        patience = Patience(
            verify_s=settings.verify_timeout_s,
            check_s=settings.check_timeout_s,
            call_s=settings.call_timeout_s,
            backoff=_backoff(settings),
            lease_s=settings.run_lease_s,
        )
        yield build_use_cases(store, open_content(settings.content, settings.content_endpoint), graph, patience, _trees(settings))


@contextmanager
def _telemetry(settings: Settings, store: Store) -> Iterator[tuple[Telemetry, str | None]]:
    """The telemetry, and where its metrics are read."""
    with ExitStack() as stack:
        tracing = otlp_tracing(settings.otlp_endpoint) if settings.otlp_endpoint else None
        if tracing is not None:
            stack.callback(tracing.shutdown)
        telemetry = Telemetry(tracing)
        telemetry.watch_outbox(store)
        telemetry.watch_dispatch(store)
        if settings.metrics_listen is None:
            yield telemetry, None
            return
        host, port = split_address(settings.metrics_listen, "metrics_listen")
        if not is_loopback(host):
            raise _refuse("metrics_listen", "can be reached by other machines", "listen on 127.0.0.1: metrics ask for no token")
        try:
            server = telemetry.serve_metrics(host, port)
        except OSError as error:
            raise _refuse("metrics_listen", f"cannot be listened on: {error.strerror}", "free it, or choose another") from error
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        yield telemetry, f"{host}:{server.server_port}"


@contextmanager
def answering(settings: Settings) -> Iterator[tuple[HttpServer, Ready]]:
    """A server that answers until the block ends, then finishes what it accepted.

    Raises InvalidInput, StoreUnavailable, SchemaOutdated.
    """
    log = structlog.get_logger()
    tls = None
    if settings.tls_certificate and settings.tls_key:
        tls = TlsFiles(certificate=settings.tls_certificate, key=settings.tls_key)
    with ExitStack() as stack:
        signer = _signer(settings)
        cases = stack.enter_context(_use_cases(settings, signer))
        telemetry, metrics = stack.enter_context(_telemetry(settings, cases.store))
        platform = Platform(
            use_cases=cases,
            rates=RateLimit(settings.requests_per_minute, settings.requests_burst),
            run_tokens=RunTokens(key=signer.key),
            tool_server=ToolServer(cases.drive_externally),
        )
        watcher = Watcher(cases.monitor_runs)
        sessions = Sessions(key=signer.key)
        pages = create_studio(Pages(use_cases=cases, rates=platform.rates, sessions=sessions, watcher=watcher, statuses=STATUS_OF))
        limits = GatewayLimits(max_bytes=settings.max_request_bytes, max_requests=settings.max_requests)
        opened = open_socket(settings.listen, "listen", tls is not None)
        stack.callback(opened.close)
        server = HttpServer(
            create_app(platform, limits, telemetry, pages),
            opened,
            tls,
            drain_s=settings.drain_timeout_s,
            most_connections=settings.max_connections,
        )
        courier = Courier(cases.deliver_outbox, _backoff(settings), settings.poll_interval_s)
        courier.start()
        stack.callback(courier.stop, settings.call_timeout_s + LEASE_MARGIN_S)
        server.start()
        stack.callback(server.stop, settings.drain_timeout_s + 1)
        # Before that: the server would wait for open streams.
        stack.callback(watcher.close, settings.drain_timeout_s)
        stack.callback(log.info, "draining", timeout_s=settings.drain_timeout_s)
        yield server, Ready(address=address_of(opened), encrypted=tls is not None, graph=settings.graph_target, metrics=metrics)
    log.info("stopped")


def _told_to_stop() -> threading.Event:
    """Set by the first SIGTERM or SIGINT. A second one finds the default action again and ends the process at once."""
    stop = threading.Event()

    def told(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    return stop


def run_server(flags: Mapping[str, str], config: Path | None, announce: Announce) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was accepted. Raises InvalidInput, StoreUnavailable, SchemaOutdated."""
    settings = load(flags, config)
    configure_logging(settings.log_level, settings.log_format)
    stop = _told_to_stop()
    with answering(settings) as (server, ready):
        announce(ready)
        while not stop.wait(_WATCH_S) and server.alive:
            pass


def run_both(flags: Mapping[str, str], config: Path | None, announce: Announce) -> None:
    """Serve with a graph service and a worker of one's own until SIGTERM or SIGINT, then finish what both accepted.

    Raises InvalidInput, StoreUnavailable, ChildFailed where one of the other processes does not start or keeps ending.
    """
    settings = load(flags, config)
    configure_logging(settings.log_level, settings.log_format)
    stop = _told_to_stop()
    with open_home(settings.data_dir) as home, ExitStack() as stack:
        graph = Supervisor("the graph service", lambda ready: _graph_command(settings, home, ready))
        stack.callback(graph.stop, settings.drain_timeout_s + 1)
        address = str(graph.start(GRAPH_START_S)["address"])
        own = {
            "database_url": home.database_url,
            "content": home.content,
            "worktrees": home.worktrees,
            "signing_key": home.signing_key,
            "graph_target": address,
        }
        dispatcher = Supervisor("the dispatcher", lambda _: _dispatcher_command(settings, home))
        stack.callback(dispatcher.stop, settings.drain_timeout_s + 1)
        dispatcher.begin()
        server, ready = stack.enter_context(answering(settings.model_copy(update=own)))
        worker = Supervisor("the worker", lambda _: _worker_command(settings, home))
        stack.callback(worker.stop, settings.drain_timeout_s + 1)
        worker.start(WORKER_START_S)
        dispatcher.wait(WORKER_START_S)
        announce(replace(ready, token_file=str(home.token_file)))
        children = (graph, worker, dispatcher)
        while not stop.wait(_WATCH_S) and server.alive and not any(child.failed for child in children):
            pass
        for child in children:
            if child.failed:
                raise ChildFailed(f"{child.name} ended again and again; its own messages above say why")


@contextmanager
def working(settings: Settings, tools: Iterable[AnyTool] = ()) -> Iterator[None]:
    """Workers that take runs, and a runner of pipelines, until the block ends; then they finish what is under way. tools: those
    installed.

    Raises InvalidInput, StoreUnavailable, SchemaOutdated.
    """
    from agentplat.drivers.model import ModelDriver  # noqa: PLC0415 - a second's worth of imports that only workers need

    store = open_store(settings.database_url)
    with ExitStack() as stack:
        stack.callback(store.close)
        store.check()
        content = open_content(settings.content, settings.content_endpoint)
        acting = build_acting(store, content, settings.run_lease_s, tools, _trees(settings))
        pipelines = PipelineRunner(RunPipelines(store=store, content=content), settings.poll_interval_s)
        pipelines.start()
        stack.callback(pipelines.stop, settings.drain_timeout_s)
        drivers = [ScriptedDriver(), ModelDriver()]
        workers = [Worker(acting, drivers, settings.poll_interval_s) for _ in range(settings.runs_at_once)]
        stack.callback(_stop, workers, settings.drain_timeout_s)
        for worker in workers:
            worker.start()
        yield


def _stop(workers: Sequence[Worker], seconds: float) -> None:
    """End all of them within so many seconds."""
    for worker in workers:
        worker.wind_down()
    end = time.monotonic() + seconds
    for worker in workers:
        worker.stop(max(0.0, end - time.monotonic()))


def run_worker(flags: Mapping[str, str], config: Path | None, announce: Callable[[], None]) -> None:
    """Work until SIGTERM or SIGINT, then finish the run under way. Raises InvalidInput, StoreUnavailable, SchemaOutdated."""
    settings = load(flags, config)
    configure_logging(settings.log_level, settings.log_format)
    stop = _told_to_stop()
    with working(settings):
        announce()
        # With an end: a signal that comes just before a wait begins does not wake it.
        while not stop.wait(_WATCH_S):
            pass


@contextmanager
def dispatching(settings: Settings) -> Iterator[Dispatcher]:
    """A dispatcher that works until the block ends, then finishes the run under way.

    Raises InvalidInput, StoreUnavailable, SchemaOutdated.
    """
    store = open_store(settings.database_url)
    with ExitStack() as stack:
        stack.callback(store.close)
        store.check()
        dispatcher = Dispatcher(DispatchEvents(store=store, backoff=_backoff(settings)), settings.poll_interval_s)
        dispatcher.start()
        stack.callback(dispatcher.stop, settings.drain_timeout_s)
        yield dispatcher


def run_dispatcher(flags: Mapping[str, str], config: Path | None, announce: Callable[[], None]) -> None:
    """Dispatch until SIGTERM or SIGINT. Raises InvalidInput, StoreUnavailable, SchemaOutdated."""
    settings = load(flags, config)
    configure_logging(settings.log_level, settings.log_format)
    stop = _told_to_stop()
    with dispatching(settings):
        announce()
        # With an end: a signal that comes just before a wait begins does not wake it.
        while not stop.wait(_WATCH_S):
            pass


def _dispatcher_command(settings: Settings, home: Home) -> list[str]:
    """The dispatcher's command line."""
    flags = {
        "database-url": home.database_url,
        "retry-first-s": settings.retry_first_s,
        "retry-longest-s": settings.retry_longest_s,
        "poll-interval-s": settings.poll_interval_s,
        "drain-timeout-s": settings.drain_timeout_s,
        "log-level": settings.log_level,
        "log-format": settings.log_format,
        "format": "json",
    }
    return [sys.executable, "-m", "agentplat", "dispatch", "run", *_as_arguments(flags)]


def _worker_command(settings: Settings, home: Home) -> list[str]:
    """The worker's command line."""
    flags = {
        "database-url": home.database_url,
        "content": home.content,
        "worktrees": home.worktrees,
        **({} if settings.host is None else {"host": settings.host}),
        "run-lease-s": settings.run_lease_s,
        "runs-at-once": settings.runs_at_once,
        "poll-interval-s": settings.poll_interval_s,
        "log-level": settings.log_level,
        "log-format": settings.log_format,
        "drain-timeout-s": settings.drain_timeout_s,
        "format": "json",
    }
    return [sys.executable, "-m", "agentplat", "worker", *_as_arguments(flags)]


def _as_arguments(flags: Mapping[str, Any]) -> list[str]:
    return [part for name, value in flags.items() for part in (f"--{name}", str(value))]


def _graph_command(settings: Settings, home: Home, ready: Mapping[str, Any] | None) -> list[str]:
    """The graph service's command line. ready: its first ready line, whose address it keeps."""
    flags = {
        "listen": settings.graph_target if ready is None else ready["address"],
        "store-url": home.graph_store_url,
        "jwt-keys": home.public_key,
        "jwt-issuer": settings.token_issuer,
        "jwt-audience": settings.token_audience,
        "log-level": settings.log_level,
        "log-format": settings.log_format,
        "drain-timeout-s": settings.drain_timeout_s,
        "format": "json",
    }
    return [sys.executable, "-m", "graphsvc", "serve", *_as_arguments(flags)]


def migrate_database(flags: Mapping[str, str], config: Path | None) -> str:
    """Bring the database to the newest schema, and tell its revision. Raises InvalidInput, StoreUnavailable."""
    return migrate(load(flags, config).database_url)


@contextmanager
def open_desk(flags: Mapping[str, str], config: Path | None) -> Iterator[Desk]:
    """The use cases of people, on the database. Raises InvalidInput, StoreUnavailable, SchemaOutdated."""
    store = open_store(load(flags, config).database_url)
    try:
        store.check()
        yield Desk(people=ManagePeople(store=store), tokens=ManageTokens(store=store))
    finally:
        store.close()
