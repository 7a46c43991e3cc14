"""A client of the graph service for Python programs, with the words they need to ask and to understand the answers.

with GraphClient("127.0.0.1:50051") as client:
    report = client.check(parse_agent("acme/platform:developer"), declare(["code"], ["review"]))
    print(*warning_lines(report, Language.ENGLISH), sep="\\n")
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from graphsvc.declarations.manifest import Manifest, manifest_schema, parse_manifests
from graphsvc.domain.answers import Audited, Description, Imported, Neighbour, Published, Retired, Sizes, Status
from graphsvc.domain.audit import AuditLimits, Finding, Progress
from graphsvc.domain.errors import (
    AccessDenied,
    GraphError,
    InvalidInput,
    LogDamaged,
    Overloaded,
    Phrase,
    RevisionAhead,
    StaleVersion,
    Unauthenticated,
    UnknownAgent,
    VersionConflict,
    Violation,
)
from graphsvc.domain.grants import Grant, Role, parse_grant
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, Emit, declare
from graphsvc.domain.names import AgentRef, Scope, normalise, parse_agent, parse_scope
from graphsvc.domain.redaction import EVERYTHING, Reader, reader_of
from graphsvc.domain.report import BreakingSet, Hop, Loop, Notice, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.domain.wording import Language, display_names, hidden_agent, path_text, report_text, unanswered_line, warning_lines
from graphsvc.rpc import convert, convert_audit
from graphsvc.rpc.convert import Unreadable
from graphsvc.rpc.status import ServiceFault, Unanswered, error_from
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc

__all__ = [
    "EVERYTHING",
    "AccessDenied",
    "AgentRef",
    "AgentVersion",
    "AuditLimits",
    "Audited",
    "BreakingSet",
    "ClientTls",
    "Declaration",
    "Description",
    "Emit",
    "Finding",
    "Grant",
    "GraphClient",
    "GraphError",
    "Hop",
    "Imported",
    "InvalidInput",
    "Language",
    "Limits",
    "LogDamaged",
    "Loop",
    "Manifest",
    "Neighbour",
    "Notice",
    "Overloaded",
    "Phrase",
    "Progress",
    "Published",
    "Reader",
    "Report",
    "Retired",
    "RevisionAhead",
    "Role",
    "Scope",
    "ServiceFault",
    "Sizes",
    "StaleVersion",
    "Status",
    "Unanswered",
    "Unauthenticated",
    "UnfedTrigger",
    "UnheardEvent",
    "UnknownAgent",
    "Unreadable",
    "Verification",
    "VersionConflict",
    "Violation",
    "declare",
    "display_names",
    "hidden_agent",
    "manifest_schema",
    "normalise",
    "parse_agent",
    "parse_grant",
    "parse_manifests",
    "parse_scope",
    "path_text",
    "reader_of",
    "report_text",
    "unanswered_line",
    "warning_lines",
]

DEADLINE_S = 10.0
IMPORT_DEADLINE_S = 300.0
"""An import or export moves a whole graph and takes longer than a question about one agent."""

AUDIT_DEADLINE_S = 3_600.0
"""An audit searches from every agent that lies on a loop."""

Token = str | Callable[[], str] | None
T = TypeVar("T")

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", -1),  # a report with a thousand long loops is larger than the library's 4 MiB
    # The library waits up to two minutes before it looks again whether a server has come back.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """PEM files. ca: issuers of the server's certificate, None for those the machine trusts; certificate, key: the client's own."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Credentials of a channel. Raises OSError where a file can not be read."""
        contents = (None if path is None else path.read_bytes() for path in (self.ca, self.key, self.certificate))
        return grpc.ssl_channel_credentials(*contents)


class GraphClient:
    """Asks one graph service. May be used by many threads.

    token: a bearer token, or what makes one for each call. tls: None for a connection without encryption. deadline_s: seconds
    after which a question counts as unanswered.

    Every method raises the refusals of the service as `GraphError`s, `Unanswered` when there was no answer, and `ServiceFault`
    when the service failed. After `Unanswered` it is unknown whether a change was made; making it again is safe.
    """

    def __init__(self, target: str, *, token: Token = None, tls: ClientTls | None = None, deadline_s: float = DEADLINE_S) -> None:
        channel = (
            grpc.insecure_channel(target, _OPTIONS) if tls is None else grpc.secure_channel(target, tls.credentials(), _OPTIONS)
        )
        self._channel = channel
        self._stub = graph_pb2_grpc.GraphServiceStub(channel)
        self._token = token
        self._deadline_s = deadline_s

    def acting_with(self, token: Token, *, deadline_s: float | None = None) -> GraphClient:
        """The same connection with another token, and another deadline where one is given; closing either closes both."""
        other = copy.copy(self)
        other._token = token
        if deadline_s is not None:
            other._deadline_s = deadline_s
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def check(
        self,
        agent: AgentRef,
        declaration: Declaration,
        reader: Reader | None = None,
        *,
        max_loops: int | None = None,
        max_visits: int | None = None,
        at_least_revision: int = 0,
    ) -> Report:
        """What would this version close? reader: whom the report is for; None for all that the token may read."""
        request = pb.CheckVersionRequest(
            agent=convert.agent_to_proto(agent),
            declaration=convert.declaration_to_proto(declaration),
            reader=_scopes(reader),
            limits=pb.Limits(max_loops=max_loops, max_visits=max_visits),
            at_least_revision=at_least_revision,
        )
        return convert.report_from_proto(self._ask(self._stub.CheckVersion, request).report)

    def publish(
        self, version: AgentVersion, reader: Reader | None = None, *, max_loops: int | None = None, max_visits: int | None = None
    ) -> Published:
        """Store a version; returns once it is durable."""
        request = pb.PublishVersionRequest(
            version=convert.version_to_proto(version),
            reader=_scopes(reader),
            limits=pb.Limits(max_loops=max_loops, max_visits=max_visits),
        )
        return convert.published_from_proto(self._ask(self._stub.PublishVersion, request))

    def retire(self, agent: AgentRef, number: int = 0) -> Retired:
        """Take an agent out of the graph, if this version is the published one; 0 for whichever is."""
        request = pb.RetireAgentRequest(agent=convert.agent_to_proto(agent), version=number)
        return convert.retired_from_proto(self._ask(self._stub.RetireAgent, request))

    def import_versions(self, versions: Iterable[AgentVersion], *, deadline_s: float = IMPORT_DEADLINE_S) -> Imported:
        """Store all of the versions or none; number 0 stands for an agent's next number."""
        # Read to the end before the call begins: an error of the iterable belongs to its caller, not to the gRPC library's thread.
        messages = [pb.ImportVersionsRequest(versions=chunk) for chunk in convert.chunks(versions)]
        messages.append(pb.ImportVersionsRequest(last=True))
        return convert.imported_from_proto(self._ask(self._stub.ImportVersions, iter(messages), deadline_s))

    def export(self, scopes: Iterable[Scope] = (), *, deadline_s: float = IMPORT_DEADLINE_S) -> tuple[int, Iterator[AgentVersion]]:
        """The published versions of these scopes, or all that the token may read, and the revision they were read at."""
        request = pb.ExportVersionsRequest(scopes=[scope.text for scope in scopes])
        stream = self._stub.ExportVersions(request, timeout=deadline_s, metadata=self._metadata())
        with _told():
            first = next(stream)
        return first.revision, _versions(first, stream)

    def audit(
        self,
        reader: Reader | None = None,
        scopes: Iterable[Scope] = (),
        limits: AuditLimits | None = None,
        *,
        tell: Callable[[Progress], None] | None = None,
        deadline_s: float = AUDIT_DEADLINE_S,
    ) -> Audited:
        """The findings of an audit as they come, and the revision it is of. tell: called with what the service is doing.

        limits: their chain limit is the service's. What is found is complete only once the findings have ended without an error;
        closing them ends the audit.
        """
        limits = limits or AuditLimits()
        request = pb.AuditLoopsRequest(
            reader=_scopes(reader),
            scopes=[scope.text for scope in scopes],
            max_length=limits.max_length,
            max_visits=limits.max_visits,
        )
        stream = self._stub.AuditLoops(request, timeout=deadline_s, metadata=self._metadata())
        with _told():
            first = next(stream)
        return Audited(first.revision, convert_audit.limits_from_proto(first.limits), _findings(stream, tell))

    def describe(
        self,
        agent: AgentRef,
        reader: Reader | None = None,
        *,
        page_size: int = 0,
        page_token: str = "",
        at_least_revision: int = 0,
    ) -> Description:
        """One agent with a page of its neighbours. page_size: most neighbours in each direction; 0 for the server's default."""
        request = pb.DescribeAgentRequest(
            agent=convert.agent_to_proto(agent),
            reader=_scopes(reader),
            page_size=page_size,
            page_token=page_token,
            at_least_revision=at_least_revision,
        )
        return convert.description_from_proto(self._ask(self._stub.DescribeAgent, request))

    def status(self) -> Status:
        """Where the graph stands and which limits apply."""
        return convert.status_from_proto(self._ask(self._stub.GetStatus, pb.GetStatusRequest()))

    def _ask(self, method: Callable[..., T], request: object, deadline_s: float | None = None) -> T:
        with _told():
            return method(request, timeout=self._deadline_s if deadline_s is None else deadline_s, metadata=self._metadata())

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier)
        token = self._token() if callable(self._token) else self._token
        if token is not None:
            carrier["authorization"] = f"Bearer {token}"
        return tuple(carrier.items())


@contextmanager
def _told() -> Iterator[None]:
    """Turns a failed call into what it means."""
    try:
        yield
    except grpc.RpcError as error:
        raise error_from(error) from None


def _scopes(reader: Reader | None) -> list[str]:
    if reader is None:
        return []
    if not reader.scopes:
        # On the wire no scope at all means everything that the token may read, which is the opposite of this.
        raise InvalidInput([Violation(field="reader", reason="names no scope", remedy="name at least one, or give no reader")])
    return sorted(scope.text for scope in reader.scopes)


def _versions(first: pb.ExportVersionsResponse, rest: Iterator[pb.ExportVersionsResponse]) -> Iterator[AgentVersion]:
    yield from map(convert.version_from_proto, first.versions)
    with _told():
        for message in rest:
            yield from map(convert.version_from_proto, message.versions)


def _findings(stream: Any, tell: Callable[[Progress], None] | None) -> Iterator[Finding]:
    found = 0
    try:
        with _told():
            for message in stream:
                part = convert_audit.part_from_proto(message)
                if isinstance(part, Progress):
                    if tell:
                        tell(part)
                elif isinstance(part, int):
                    if part != found:
                        raise Unreadable(f"the audit found {part}, of which {found} came")
                    return
                else:
                    found += 1
                    yield part
        raise Unreadable("the audit ended before it had said that it found everything")
    finally:
        stream.cancel()
