"""Requests of the wire as domain objects. All faults of a request are found at once, each named by its path in the proto file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, cast

from graphsvc.domain.audit import DEFAULT_AUDIT_VISITS, DEFAULT_MAX_LENGTH, AuditLimits
from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, check_number, declare
from graphsvc.domain.names import AgentRef, Scope, normalise, parse_scope, scope_of
from graphsvc.v1 import graph_pb2 as pb

MAX_READER_SCOPES = 1_000
"""Most scopes that one request may name for its reader."""

T = TypeVar("T")


class AllFaults:
    """A block that reads the parts of a request; it ends with InvalidInput when a part was faulty, naming every fault."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None and self.violations:
            raise InvalidInput(self.violations)

    def read(self, part: Callable[[], T]) -> T:
        """The part's value. A faulty part has none: the block then ends before the value can be used."""
        try:
            return part()
        except InvalidInput as error:
            self.violations.extend(error.violations)
            return cast(T, None)


def refuse(field: str, reason: str, remedy: str) -> InvalidInput:
    """The refusal of one field."""
    return InvalidInput([Violation(field=field, reason=reason, remedy=remedy)])


def agent_of(message: pb.AgentRef, given: bool, field: str) -> AgentRef:
    """A checked agent. given: whether the request has the field at all. Raises InvalidInput."""
    if not given:
        raise refuse(field, "is missing", "name the agent")
    company = message.company if message.HasField("company") else None
    area = message.area if message.HasField("area") else None
    with AllFaults() as faults:
        scope = faults.read(lambda: scope_of(company, area, field))
        name = faults.read(lambda: normalise(message.name, f"{field}.name"))
    return AgentRef(scope, name)


def retirement_of(request: pb.RetireAgentRequest) -> tuple[AgentRef, int]:
    """The agent to retire, and the version that must be its published one, 0 for any. Raises InvalidInput."""
    with AllFaults() as faults:
        agent = faults.read(lambda: agent_of(request.agent, request.HasField("agent"), "agent"))
        number = faults.read(lambda: check_number(request.version) if request.version else 0)
    return agent, number


def declaration_of(message: pb.Declaration, given: bool, field: str) -> Declaration:
    """A checked declaration. Raises InvalidInput with every violation found."""
    if not given:
        raise refuse(field, "is missing", "send it, empty where the version declares nothing")
    emits = [
        {"event": e.event, "context": e.context if e.HasField("context") else None, "artifacts": e.artifacts} for e in message.emits
    ]
    try:
        return declare(emits, list(message.listens))
    except InvalidInput as error:
        raise InvalidInput([replace(v, field=f"{field}.{v.field}") for v in error.violations]) from None


def version_of(message: pb.AgentVersion, field: str, *, may_be_next: bool = False) -> AgentVersion:
    """A checked version. may_be_next: whether number 0 is allowed, which means the agent's next number. Raises InvalidInput."""
    with AllFaults() as faults:
        agent = faults.read(lambda: agent_of(message.agent, message.HasField("agent"), f"{field}.agent"))
        number = faults.read(
            lambda: 0 if may_be_next and message.version == 0 else check_number(message.version, f"{field}.version")
        )
        declaration = faults.read(
            lambda: declaration_of(message.declaration, message.HasField("declaration"), f"{field}.declaration")
        )
    return AgentVersion(agent, number, declaration)


def scopes_of(texts: Sequence[str], field: str) -> tuple[Scope, ...]:
    """Checked scopes. Raises InvalidInput."""
    if len(texts) > MAX_READER_SCOPES:
        raise refuse(field, f"has {len(texts)} scopes", f"name at most {MAX_READER_SCOPES}")
    with AllFaults() as faults:
        scopes = [faults.read(partial(parse_scope, text, f"{field}[{i}]")) for i, text in enumerate(texts)]
    return tuple(scopes)


@dataclass(frozen=True, slots=True)
class AskedLimits:
    """The limits that a request names; None where it names none."""

    max_loops: int | None
    max_visits: int | None


def limits_of(message: pb.Limits) -> AskedLimits:
    """Limits as asked; which values they may have is the policy's to say. Raises InvalidInput for values below the least."""
    asked = AskedLimits(
        max_loops=message.max_loops if message.HasField("max_loops") else None,
        max_visits=message.max_visits if message.HasField("max_visits") else None,
    )
    with AllFaults() as faults:
        if asked.max_loops is not None:
            faults.read(partial(Limits, max_loops=asked.max_loops))
        if asked.max_visits is not None:
            faults.read(partial(Limits, max_visits=asked.max_visits))
    return asked


def _not_negative(value: int, field: str) -> int:
    if value < 0:
        raise refuse(field, f"is {value}", "use 0 or more")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A CheckVersionRequest."""

    agent: AgentRef
    declaration: Declaration
    scopes: tuple[Scope, ...]
    limits: AskedLimits
    at_least_revision: int


def check_of(request: pb.CheckVersionRequest) -> Check:
    """Raises InvalidInput with every violation found."""
    with AllFaults() as faults:
        return Check(
            agent=faults.read(lambda: agent_of(request.agent, request.HasField("agent"), "agent")),
            declaration=faults.read(lambda: declaration_of(request.declaration, request.HasField("declaration"), "declaration")),
            scopes=faults.read(lambda: scopes_of(request.reader, "reader")),
            limits=faults.read(lambda: limits_of(request.limits)),
            at_least_revision=faults.read(lambda: _not_negative(request.at_least_revision, "at_least_revision")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A PublishVersionRequest."""

    version: AgentVersion
    scopes: tuple[Scope, ...]
    limits: AskedLimits


def publication_of(request: pb.PublishVersionRequest) -> Publication:
    """Raises InvalidInput with every violation found."""
    with AllFaults() as faults:
        return Publication(
            version=faults.read(lambda: version_of(request.version, "version")),
            scopes=faults.read(lambda: scopes_of(request.reader, "reader")),
            limits=faults.read(lambda: limits_of(request.limits)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A DescribeAgentRequest."""

    agent: AgentRef
    scopes: tuple[Scope, ...]
    page_size: int
    page_token: str
    at_least_revision: int


def question_of(request: pb.DescribeAgentRequest) -> Question:
    """Raises InvalidInput with every violation found."""
    with AllFaults() as faults:
        return Question(
            agent=faults.read(lambda: agent_of(request.agent, request.HasField("agent"), "agent")),
            scopes=faults.read(lambda: scopes_of(request.reader, "reader")),
            page_size=faults.read(lambda: _not_negative(request.page_size, "page_size")),
            page_token=request.page_token,
            at_least_revision=faults.read(lambda: _not_negative(request.at_least_revision, "at_least_revision")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """An AuditLoopsRequest. limits: as asked, before the server's ceilings."""

    reader: tuple[Scope, ...]
    scopes: tuple[Scope, ...]
    limits: AuditLimits
    at_least_revision: int


def audit_of(request: pb.AuditLoopsRequest) -> AuditQuestion:
    """Raises InvalidInput with every violation found."""
    with AllFaults() as faults:
        return AuditQuestion(
            reader=faults.read(lambda: scopes_of(request.reader, "reader")),
            scopes=faults.read(lambda: scopes_of(request.scopes, "scopes")),
            limits=faults.read(lambda: _audit_limits(request)),
            at_least_revision=faults.read(lambda: _not_negative(request.at_least_revision, "at_least_revision")),
        )


def _audit_limits(request: pb.AuditLoopsRequest) -> AuditLimits:
    return AuditLimits(
        max_length=request.max_length if request.HasField("max_length") else DEFAULT_MAX_LENGTH,
        max_visits=request.max_visits if request.HasField("max_visits") else DEFAULT_AUDIT_VISITS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """The most that one import may carry, as it is held in memory until it is stored whole."""

    messages: int
    versions: int
    events: int


MAX_IMPORT_FAULTS = 100
"""After so many faults an import is not read further."""


def versions_of(stream: Iterable[pb.ImportVersionsRequest], limits: ImportLimits) -> list[AgentVersion]:
    """The versions of an import, read and checked to the last message.

    Raises InvalidInput with the faults found, by the version's place in the whole stream, and also when the stream ends early:
    the gRPC library may show a client that vanished like one that said all, so only the client's own mark counts as the end.
    """
    versions: list[AgentVersion] = []
    events = 0
    with AllFaults() as faults:
        for count, message in enumerate(stream, start=1):
            _within(count, limits.messages, "messages")
            _within(len(versions) + len(message.versions), limits.versions, "versions")
            events += sum(len(v.declaration.emits) + len(v.declaration.listens) for v in message.versions)
            _within(events, limits.events, "events")
            for version in message.versions:
                field = f"versions[{len(versions)}]"
                versions.append(faults.read(partial(version_of, version, field, may_be_next=True)))
            if message.last or len(faults.violations) >= MAX_IMPORT_FAULTS:
                return versions
        raise refuse("last", "was not set before the stream ended", "set it in the last message")


def _within(count: int, most: int, what: str) -> None:
    if count > most:
        raise refuse("versions", f"carry more than {most} {what} in one import", "split the import")
