"""Refusals on the wire and back: one table from each leaf of the error tree to its gRPC status (G-23).

The status carries rich details: BadRequest for bad input, ErrorInfo with a stable reason for everything else, RetryInfo where
trying again later may help.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from graphsvc.domain import errors
from graphsvc.domain.errors import GraphError, InvalidInput, Violation

DOMAIN = "graphsvc"
FAULT = "FAULT"
RETRY_AFTER_S = 1
MAX_DETAIL_BYTES = 3_000
"""Most bytes of violations in one status: a status travels in a header block, of which peers accept 8 KiB."""


@dataclass(frozen=True, slots=True)
class Wire:
    """How a refusal travels. fields: its attributes that go along, so that a client can build the same refusal."""

    code: grpc.StatusCode
    reason: str
    fields: tuple[str, ...] = ()
    retry: bool = False


STATUS_OF: Mapping[type[GraphError], Wire] = {
    errors.InvalidInput: Wire(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT"),
    errors.VersionConflict: Wire(grpc.StatusCode.FAILED_PRECONDITION, "VERSION_CONFLICT", ("agent", "number")),
    errors.StaleVersion: Wire(grpc.StatusCode.FAILED_PRECONDITION, "STALE_VERSION", ("agent", "number", "current")),
    errors.RevisionAhead: Wire(grpc.StatusCode.FAILED_PRECONDITION, "REVISION_AHEAD", ("wanted", "head")),
    errors.UnknownAgent: Wire(grpc.StatusCode.NOT_FOUND, "UNKNOWN_AGENT"),
    errors.Unauthenticated: Wire(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
    errors.AccessDenied: Wire(grpc.StatusCode.PERMISSION_DENIED, "ACCESS_DENIED"),
    errors.Overloaded: Wire(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry=True),
    errors.StoreUnavailable: Wire(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", retry=True),
    errors.DeadlinePassed: Wire(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_PASSED"),
    errors.LogDamaged: Wire(grpc.StatusCode.DATA_LOSS, "LOG_DAMAGED"),
}

_DAMAGED = "the log of the graph service is damaged; its operator has to look at it"


class ServiceFault(Exception):
    """The service failed by a fault of its own, or answered what no release of it should. The message names the incident."""


class Unanswered(Exception):
    """The service did not answer: it is down, not to be reached, too slow or stopping. Whether it did what was asked is unknown."""


def _packed(details: Iterable[Message]) -> list[Any]:
    packed = []
    for detail in details:
        box = Any()
        box.Pack(detail)
        packed.append(box)
    return packed


def _bad_request(violations: Iterable[Violation]) -> BadRequest:
    # Violations beyond what a header block holds are left out; the message says how many there are.
    detail = BadRequest()
    for violation in violations:
        where = f"{violation.place}: " if violation.place else ""
        detail.field_violations.add(field=violation.field, description=f"{where}{violation.reason}; {violation.remedy}")
        if detail.ByteSize() > MAX_DETAIL_BYTES and len(detail.field_violations) > 1:
            del detail.field_violations[-1]
            break
    return detail


def _invalid(error: InvalidInput) -> Status:
    count = len(error.violations)
    first = str(error.violations[0])
    message = first if count == 1 else f"{first} (the first of {count} faults)"
    code = STATUS_OF[InvalidInput].code.value[0]
    return Status(code=code, message=message, details=_packed([_bad_request(error.violations)]))


def status_for(error: GraphError) -> Status:
    """The status of a refusal, with its details."""
    if isinstance(error, InvalidInput):
        return _invalid(error)
    wire = STATUS_OF[type(error)]
    # What was found damaged is for the operator's log: it may name what the caller may not read.
    message = _DAMAGED if isinstance(error, errors.LogDamaged) else str(error)
    metadata = {field: str(getattr(error, field)) for field in wire.fields}
    details: list[Message] = [ErrorInfo(reason=wire.reason, domain=DOMAIN, metadata=metadata)]
    if wire.retry:
        details.append(RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_S)))
    return Status(code=wire.code.value[0], message=message, details=_packed(details))


def new_incident() -> str:
    """A random name for something unexpected: the caller gets the name, the operator's log the name and the cause."""
    return secrets.token_hex(8)


def fault_status(incident: str) -> Status:
    """The status of anything unexpected. It tells nothing but the incident's name."""
    info = ErrorInfo(reason=FAULT, domain=DOMAIN, metadata={"incident": incident})
    message = f"a fault of ours; the operator finds it in the log as incident {incident}"
    return Status(code=grpc.StatusCode.INTERNAL.value[0], message=message, details=_packed([info]))


def _violation(entry: BadRequest.FieldViolation) -> Violation:
    reason, _, remedy = entry.description.rpartition("; ")
    return Violation(field=entry.field, reason=reason, remedy=remedy)


def _rebuilt(info: ErrorInfo, message: str) -> Exception:
    told = info.metadata
    match info.reason:
        case "VERSION_CONFLICT":
            return errors.VersionConflict(told["agent"], int(told["number"]))
        case "STALE_VERSION":
            return errors.StaleVersion(told["agent"], int(told["number"]), int(told["current"]))
        case "REVISION_AHEAD":
            return errors.RevisionAhead(int(told["wanted"]), int(told["head"]))
        case "UNKNOWN_AGENT":
            return errors.UnknownAgent()
        case "UNAUTHENTICATED":
            return errors.Unauthenticated(message)
        case "ACCESS_DENIED":
            return errors.AccessDenied(message)
        case "OVERLOADED":
            return errors.Overloaded(message)
        case "LOG_DAMAGED":
            return errors.LogDamaged(message)
        case "STORE_UNAVAILABLE" | "DEADLINE_PASSED":
            return Unanswered(message)
    return ServiceFault(message)


_BY_CODE: Mapping[grpc.StatusCode, type[Exception]] = {
    grpc.StatusCode.UNAVAILABLE: Unanswered,
    grpc.StatusCode.DEADLINE_EXCEEDED: Unanswered,
    grpc.StatusCode.CANCELLED: Unanswered,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.Overloaded,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.AccessDenied,
}


def error_from(call: grpc.RpcError) -> Exception:
    """What a failed call means: the service's own refusal again, `Unanswered`, or `ServiceFault` for everything else.

    A status without our details comes from the gRPC library or something in between; then its code decides.
    """
    status = rpc_status.from_call(call)
    for box in status.details if status else ():
        info, bad = ErrorInfo(), BadRequest()
        if box.Unpack(bad):
            return InvalidInput(map(_violation, bad.field_violations))
        if box.Unpack(info) and info.domain == DOMAIN:
            return _rebuilt(info, call.details() or "")
    kind = _BY_CODE.get(call.code(), ServiceFault)
    return kind(call.details() or call.code().name)
