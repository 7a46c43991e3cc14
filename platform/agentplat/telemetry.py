"""Logs, metrics and traces of the platform (O-6).

Logs are lines of JSON on standard error and only for the operator: they may name agents, never a token or what a manifest says.
Metrics and traces carry routes, outcomes and counts, and no names.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIServer

import structlog
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from agentplat.domain.deliveries import Backlog
from agentplat.domain.errors import StoreUnavailable
from agentplat.domain.scopes import INSTALLATION
from agentplat.store.port import Store

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def configure_logging(level: str, log_format: str) -> None:
    """Send every log of the process to standard error. log_format: ``json`` or ``text``."""
    renderer: Any = structlog.processors.JSONRenderer() if log_format == "json" else structlog.dev.ConsoleRenderer(colors=False)
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard library; their lines take the same form.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)


def otlp_tracing(endpoint: str) -> TracerProvider:
    """Traces that go to an OTLP collector at the endpoint, in batches. `shutdown` sends what is left."""
    provider = TracerProvider(resource=Resource.create({"service.name": "agentplat"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=endpoint.startswith("http://"))))
    return provider


class Telemetry:
    """The counters of one process and its tracer. tracing: None where no traces are kept."""

    def __init__(self, tracing: TracerProvider | None = None) -> None:
        self.registry = CollectorRegistry()
        self._tracer = tracing.get_tracer("agentplat") if tracing else None
        self._propagator = TraceContextTextMapPropagator()
        self._requests = Counter("agentplat_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry)
        self._seconds = Histogram(
            "agentplat_request_seconds",
            "From a request's arrival to its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._in_flight = Gauge("agentplat_requests_in_flight", "Requests being answered.", registry=self.registry)

    def watch_outbox(self, store: Store) -> None:
        """Let the metrics tell how many entries of the outbox wait and how many are set aside, whenever they are read."""
        waiting = Gauge(
            "agentplat_outbox_waiting", "Publications that the graph service does not know yet.", registry=self.registry
        )
        aside = Gauge("agentplat_outbox_set_aside", "Agents whose publications the graph service refused.", registry=self.registry)

        def size(index: int) -> float:
            try:
                with store.reading() as work:
                    return float(work.outbox.sizes()[index])
            except StoreUnavailable:
                return float("nan")

        waiting.set_function(lambda: size(0))
        aside.set_function(lambda: size(1))

    def watch_dispatch(self, store: Store) -> None:
        """Let the metrics tell how many finished runs wait for their dispatch and how many are set aside."""
        waiting = Gauge("agentplat_dispatch_waiting", "Finished runs whose events did not leave yet.", registry=self.registry)
        aside = Gauge("agentplat_dispatch_set_aside", "Finished runs that could not be dispatched.", registry=self.registry)

        def backlog() -> Backlog | None:
            try:
                with store.reading() as work:
                    return work.deliveries.backlog([INSTALLATION])
            except StoreUnavailable:
                return None

        waiting.set_function(lambda: float("nan") if (found := backlog()) is None else float(found.waiting))
        aside.set_function(lambda: float("nan") if (found := backlog()) is None else float(found.set_aside))

    def serve_metrics(self, host: str, port: int) -> WSGIServer:
        """Let Prometheus read the metrics at http://host:port/metrics. `shutdown` and `server_close` end it."""
        server, _ = start_http_server(port, addr=host, registry=self.registry)
        return server

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[Span | None]:
        """Count a request while it is answered, in a server span that continues the trace of its headers."""
        self._in_flight.inc()
        try:
            if self._tracer is None:
                yield None
                return
            # Exceptions are not recorded in spans: their texts may hold what a trace must not.
            with self._tracer.start_as_current_span(
                "request",
                self._propagator.extract(headers),
                kind=SpanKind.SERVER,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                yield span
        finally:
            self._in_flight.dec()

    def answered(self, method: str, route: str, status: int, seconds: float, span: Span | None) -> None:
        """Record one answer. route: the pattern of the path, never the path."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if span is not None:
            span.update_name(f"{method} {route}")
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_status(Status(StatusCode.ERROR))
