"""Refusals and their gRPC statuses."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from grpc_status import rpc_status

from graphsvc.domain import errors
from graphsvc.domain.errors import GraphError, InvalidInput, Violation
from graphsvc.rpc.status import STATUS_OF, ServiceFault, Unanswered, error_from, fault_status, new_incident, status_for

LONG = "长" * 85  # 255 bytes of UTF-8, about the longest name there is

SAMPLES: dict[type[GraphError], GraphError] = {
    errors.InvalidInput: InvalidInput(
        [
            Violation(field="version.declaration.emits[2].event", reason="is empty", remedy="give it a name"),
            Violation(field="reader[0]", reason="has a '/'", remedy="use a name without '/' and ':'"),
        ]
    ),
    errors.VersionConflict: errors.VersionConflict(f"{LONG}/{LONG}:{LONG}", 7),
    errors.StaleVersion: errors.StaleVersion(f"{LONG}/{LONG}:{LONG}", 7, 9),
    errors.RevisionAhead: errors.RevisionAhead(12, 4),
    errors.UnknownAgent: errors.UnknownAgent(),
    errors.Unauthenticated: errors.Unauthenticated("no"),
    errors.AccessDenied: errors.AccessDenied("not this"),
    errors.Overloaded: errors.Overloaded("too much"),
    errors.StoreUnavailable: errors.StoreUnavailable(),
    errors.DeadlinePassed: errors.DeadlinePassed("too late"),
    errors.LogDamaged: errors.LogDamaged("the digest of globex:secret at revision 3 does not match"),
}
TOLD_AS_UNANSWERED = {errors.StoreUnavailable, errors.DeadlinePassed}


def leaves(kind: type[GraphError]) -> set[type[GraphError]]:
    below = kind.__subclasses__()
    return {kind} if not below else set().union(*map(leaves, below))


@contextmanager
def refusing_with(status: object) -> Iterator[grpc.UnaryUnaryMultiCallable[bytes, bytes]]:
    """A method of a real server that answers every call with one status."""

    def refuse(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort_with_status(rpc_status.to_status(status))
        return request

    server = grpc.server(ThreadPoolExecutor(1))
    handler = grpc.method_handlers_generic_handler("tests.Refusing", {"Refuse": grpc.unary_unary_rpc_method_handler(refuse)})
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel.unary_unary("/tests.Refusing/Refuse")
    server.stop(None).wait(10)


def refused(status: object) -> grpc.RpcError:
    with refusing_with(status) as method, pytest.raises(grpc.RpcError) as caught:
        method(b"", timeout=30)
    return caught.value


@pytest.mark.promise("G-23")
def test_every_refusal_has_exactly_one_status():
    assert set(STATUS_OF) == leaves(GraphError)
    reasons = [wire.reason for wire in STATUS_OF.values()]
    assert len(set(reasons)) == len(reasons)


@pytest.mark.promise("G-23")
@pytest.mark.parametrize("kind", STATUS_OF, ids=lambda kind: kind.__name__)
def test_a_refusal_crosses_the_wire_whole(kind: type[GraphError]):
    sent = SAMPLES[kind]
    call = refused(status_for(sent))
    assert call.code() is STATUS_OF[kind].code
    arrived = error_from(call)
    assert type(arrived) is (Unanswered if kind in TOLD_AS_UNANSWERED else kind)
    if kind is not errors.LogDamaged:
        assert str(arrived) == str(sent)
        for field in STATUS_OF[kind].fields:
            assert getattr(arrived, field) == getattr(sent, field)


def test_violations_arrive_with_field_reason_and_remedy():
    arrived = error_from(refused(status_for(SAMPLES[errors.InvalidInput])))
    assert isinstance(arrived, InvalidInput)
    assert arrived.violations == SAMPLES[errors.InvalidInput].violations  # type: ignore[attr-defined]


@pytest.mark.promise("G-23", "G-24")
def test_more_faults_than_a_header_holds_still_arrive_as_bad_input_that_tells_their_number():
    many = InvalidInput(
        Violation(field=f"version.declaration.emits[{i}].event", reason="is empty", remedy="give it a name") for i in range(1_000)
    )
    call = refused(status_for(many))
    arrived = error_from(call)
    assert isinstance(arrived, InvalidInput)
    assert 10 < len(arrived.violations) < 1_000
    assert arrived.violations == many.violations[: len(arrived.violations)]
    assert "1000 faults" in (call.details() or "")


@pytest.mark.promise("G-23")
def test_a_damaged_log_is_told_without_what_is_damaged():
    call = refused(status_for(SAMPLES[errors.LogDamaged]))
    assert call.code() is grpc.StatusCode.DATA_LOSS
    assert "globex" not in str(call.details()) + str(call.trailing_metadata())


@pytest.mark.parametrize("kind", [errors.Overloaded, errors.StoreUnavailable])
def test_refusals_that_may_pass_say_when_to_try_again(kind: type[GraphError]):
    retry = RetryInfo()
    assert any(detail.Unpack(retry) for detail in status_for(SAMPLES[kind]).details)
    assert retry.retry_delay.seconds > 0


@pytest.mark.promise("G-23")
def test_a_fault_tells_only_its_incident():
    incident = new_incident()
    call = refused(fault_status(incident))
    assert call.code() is grpc.StatusCode.INTERNAL
    arrived = error_from(call)
    assert isinstance(arrived, ServiceFault)
    assert incident in str(arrived)
    assert new_incident() != incident


def test_a_status_of_somebody_in_between_is_read_by_its_code():
    for code, kind in (
        (grpc.StatusCode.UNAVAILABLE, Unanswered),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Unanswered),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.Overloaded),
        (grpc.StatusCode.UNIMPLEMENTED, ServiceFault),
    ):
        bare = status_for(errors.UnknownAgent())
        bare.code = code.value[0]
        del bare.details[:]
        assert type(error_from(refused(bare))) is kind
