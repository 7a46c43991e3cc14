"""What happens around every call: telemetry, authentication, admission, the deadline, and refusals turned into statuses.

One interceptor does it in this order, as each step needs what the one before found out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from graphsvc.domain.errors import GraphError, InvalidInput, LogDamaged, StoreUnavailable, Unauthenticated, Violation
from graphsvc.rpc import calls
from graphsvc.rpc.admission import RateLimit, StreamSlots
from graphsvc.rpc.auth import Authenticator
from graphsvc.rpc.calls import Call
from graphsvc.rpc.status import fault_status, new_incident, status_for
from graphsvc.telemetry import Answered, Telemetry

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"

NO_CAUSES: Mapping[str, object] = {}
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class _Garbled:
    """Stands for a message that is not what its method takes."""


def _tolerant(deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    # Left to itself the gRPC library answers an unreadable message with INTERNAL, as if the fault were the server's.
    def read(message: bytes) -> Any:
        try:
            return deserialize(message)
        except DecodeError:
            return _Garbled()

    return read


def _readable(request: Any) -> Any:
    if isinstance(request, _Garbled):
        reason, remedy = "is not a valid message of this method", "encode it with the published proto file, texts as UTF-8"
        raise InvalidInput([Violation(field="request", reason=reason, remedy=remedy)])
    return request


@dataclass(frozen=True, kw_only=True)
class Front(grpc.ServerInterceptor):
    """Stands before every method but the health check, which load balancers ask without a token."""

    authenticator: Authenticator
    telemetry: Telemetry
    rate: RateLimit
    streams: StreamSlots
    default_deadline_s: float

    def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Wrap the method's handler. Runs when a call arrives, before it waits for a thread."""
        handler = continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None or method == HEALTH_CHECK:
            return handler
        arrived = time.monotonic()
        if method == HEALTH_WATCH:
            return self._watching(handler, method, arrived)
        if handler.request_streaming or handler.response_streaming:
            return self._streaming(handler, method, arrived)
        return self._unary(handler, method, arrived)

    def _unary(self, handler: Any, method: str, arrived: float) -> Any:
        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            with self._around(method, arrived, context):
                return handler.unary_unary(_readable(request), context)

        return grpc.unary_unary_rpc_method_handler(answer, _tolerant(handler.request_deserializer), handler.response_serializer)

    def _streaming(self, handler: Any, method: str, arrived: float) -> Any:
        def requested(request: Any, call: Call) -> Any:
            return map(_readable, calls.within_deadline(request, call)) if handler.request_streaming else _readable(request)

        def one(request: Any, context: grpc.ServicerContext) -> Any:
            with self._around(method, arrived, context) as call, self._place(call):
                return handler.stream_unary(requested(request, call), context)

        def many(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            with self._around(method, arrived, context) as call, self._place(call):
                for response in (handler.stream_stream or handler.unary_stream)(requested(request, call), context):
                    call.check_deadline()
                    yield response

        coders = _tolerant(handler.request_deserializer), handler.response_serializer
        if not handler.response_streaming:
            return grpc.stream_unary_rpc_method_handler(one, *coders)
        make: Any = grpc.stream_stream_rpc_method_handler if handler.request_streaming else grpc.unary_stream_rpc_method_handler
        return make(many, *coders)

    def _watching(self, handler: Any, method: str, arrived: float) -> Any:
        # The health library sends through a callback, so that a watcher holds no thread; its place is free when the call ends.
        def watch(request: Any, context: grpc.ServicerContext, send: Callable[[Any], None]) -> None:
            with self._around(method, arrived, context) as call:
                self.streams.take(call.caller.name)
                if not context.add_callback(lambda: self.streams.give_back(call.caller.name)):
                    self.streams.give_back(call.caller.name)
                    return
                handler.unary_stream(_readable(request), context, send)

        watch.experimental_non_blocking = True  # type: ignore[attr-defined]
        return grpc.unary_stream_rpc_method_handler(watch, _tolerant(handler.request_deserializer), handler.response_serializer)

    @contextmanager
    def _place(self, call: Call) -> Iterator[None]:
        self.streams.take(call.caller.name)
        try:
            yield
        finally:
            self.streams.give_back(call.caller.name)

    @contextmanager
    def _around(self, method: str, arrived: float, context: grpc.ServicerContext) -> Iterator[Call]:
        call = calls.begin(method, arrived, context, self.default_deadline_s)
        with self.telemetry.call(method, context.invocation_metadata() or ()):
            try:
                call.caller = self.authenticator.caller(context)
                self.rate.take(call.caller.name)
                call.check_deadline()
                yield call
                call.check_deadline()
            except GraphError as error:
                self._refuse(call, context, error)
            except GeneratorExit:
                self._answered(call, grpc.StatusCode.CANCELLED.name)
                raise
            except Exception as error:  # noqa: BLE001 - the caller must get an answer that tells nothing of the cause
                self._fail(call, context, error)
            self._answered(call, grpc.StatusCode.OK.name)

    def _refuse(self, call: Call, context: grpc.ServicerContext, error: GraphError) -> NoReturn:
        status = status_for(error)
        self._answered(call, _CODES[status.code], _causes(error), fault=isinstance(error, LogDamaged))
        _abort(context, status)

    def _fail(self, call: Call, context: grpc.ServicerContext, error: Exception) -> NoReturn:
        incident = new_incident()
        self._answered(call, grpc.StatusCode.INTERNAL.name, {"incident": incident, "exc_info": error}, fault=True)
        _abort(context, fault_status(incident))

    def _answered(self, call: Call, status: str, causes: Mapping[str, object] = NO_CAUSES, *, fault: bool = False) -> None:
        answered = Answered(
            method=call.method.rpartition("/")[2],
            status=status,
            seconds=round(time.monotonic() - call.arrived, 6),
            caller=call.caller.name,
            revision=call.revision,
            visits=call.visits,
            fault=fault,
        )
        self.telemetry.answered(answered, **causes)


def _causes(error: GraphError) -> Mapping[str, object]:
    if isinstance(error, Unauthenticated):
        # Only the kind of fault: the text of a faulty token's error might quote the token.
        return {"cause": type(error.__cause__).__name__}
    if isinstance(error, (LogDamaged, StoreUnavailable)):
        return {"exc_info": error}
    return NO_CAUSES


def _abort(context: grpc.ServicerContext, status: Status) -> NoReturn:
    context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError("abort_with_status raises")
