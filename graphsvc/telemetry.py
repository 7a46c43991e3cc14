"""Logs, metrics and traces of the service (O-6). No name of an agent, event or scope and no token goes into any of them.

Logs are lines of JSON on standard error. Metrics are read by Prometheus from a port of their own. Traces go to a collector that
speaks OTLP, when one is set.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from wsgiref.simple_server import WSGIServer

import structlog
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

_NO_SPAN = nullcontext()
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_VISITS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def configure_logging(level: str, log_format: str) -> None:
    """Send every log of the process to standard error. log_format: ``json`` or ``text``."""
    shared: list[Any] = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    if log_format == "json":
        renderer: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
        shared.append(structlog.processors.format_exc_info)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=False)  # formats exceptions itself
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
    provider = TracerProvider(resource=Resource.create({"service.name": "graphsvc"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, insecure=endpoint.startswith("http://"))))
    return provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer. caller: the subject of its token; visits: None where its reader may not know; fault: a fault of ours."""

    method: str
    status: str
    seconds: float
    caller: str
    revision: int | None
    visits: int | None
    fault: bool = False

    @property
    def facts(self) -> dict[str, object]:
        """What there is to log of it."""
        facts = {"method": self.method, "status": self.status, "seconds": self.seconds, "caller": self.caller}
        known = {"revision": self.revision, "visits": self.visits}
        return facts | {name: value for name, value in known.items() if value is not None}


class Telemetry:
    """The counters of one server and its tracer. tracing: None where no traces are kept."""

    def __init__(self, tracing: TracerProvider | None = None) -> None:
        self.log = structlog.get_logger()
        self.registry = CollectorRegistry()
        self._tracer = tracing.get_tracer("graphsvc") if tracing else None
        self._propagator = TraceContextTextMapPropagator()
        self._requests = Counter("graphsvc_requests", "Calls answered.", ["method", "status"], registry=self.registry)
        self._seconds = Histogram(
            "graphsvc_request_seconds",
            "From a call's arrival to its answer.",
            ["method"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._visits = Histogram(
            "graphsvc_visits",
            "Incidences a search looked at, where its reader may know.",
            buckets=_VISITS,
            registry=self.registry,
        )
        self._revision = Gauge("graphsvc_revision", "Newest revision that an answer was computed at.", registry=self.registry)
        self._in_flight = Gauge("graphsvc_requests_in_flight", "Calls being answered.", registry=self.registry)
        self._lock = threading.Lock()
        self._newest = 0

    def serve_metrics(self, host: str, port: int) -> WSGIServer:
        """Let Prometheus read the metrics at http://host:port/metrics. `shutdown` and `server_close` end it."""
        server, _ = start_http_server(port, addr=host, registry=self.registry)
        return server

    @contextmanager
    def call(self, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> Iterator[None]:
        """Count a call while it is answered, in a server span that continues the trace of its metadata."""
        self._in_flight.inc()
        try:
            if self._tracer is None:
                yield
                return
            carrier = {key: value for key, value in metadata if key in ("traceparent", "tracestate") and isinstance(value, str)}
            parent = self._propagator.extract(carrier)
            # Exceptions are not recorded in spans: their texts may hold what a trace must not.
            with self._tracer.start_as_current_span(
                method, parent, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
            ):
                yield
        finally:
            self._in_flight.dec()

    def search(self) -> AbstractContextManager[object]:
        """A span around a search."""
        if self._tracer is None:
            return _NO_SPAN
        return self._tracer.start_as_current_span("search", record_exception=False, set_status_on_exception=False)

    def answered(self, answered: Answered, **causes: object) -> None:
        """Record one answer. causes: what only the operator's log may say about a refusal."""
        self._requests.labels(answered.method, answered.status).inc()
        self._seconds.labels(answered.method).observe(answered.seconds)
        if answered.visits is not None:
            self._visits.observe(answered.visits)
        if answered.revision is not None and answered.revision > self._newest:
            self._saw(answered.revision)
        if self._tracer is not None:
            _mark(get_current_span(), answered)
        level = logging.ERROR if answered.fault else logging.INFO
        if self.log.is_enabled_for(level):
            self.log.log(level, "call", **answered.facts, **causes)

    def _saw(self, revision: int) -> None:
        # Answers finish in any order, and a gauge of the newest revision must not step back.
        with self._lock:
            self._newest = max(self._newest, revision)
            self._revision.set(self._newest)


def _mark(span: Span, answered: Answered) -> None:
    span.set_attribute("rpc.grpc.status", answered.status)
    if answered.revision is not None:
        span.set_attribute("graphsvc.revision", answered.revision)
    if answered.fault:
        span.set_status(Status(StatusCode.ERROR))
