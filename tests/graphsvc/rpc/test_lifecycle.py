"""Health, and how a server ends."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue
from threading import Thread

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from graphsvc.rpc.server import SERVICE_NAME
from graphsvc.v1 import graph_pb2 as pb
from tests.graphsvc.rpc.serving import PATIENCE_S, Running, serving

NEW = pb.PublishVersionRequest(version={"agent": {"name": "developer"}, "version": 1, "declaration": {}})
SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


def health_of(running: Running, service: str) -> int:
    with grpc.insecure_channel(running.address) as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S).status


@pytest.fixture
def watched() -> Iterator[tuple[Running, Queue[int | grpc.StatusCode]]]:
    """A server, and what a watcher of its health is told: the statuses, then how the watch ended."""
    told: Queue[int | grpc.StatusCode] = Queue()
    with serving() as running, grpc.insecure_channel(running.address) as channel:
        call = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE_NAME))

        def listen() -> None:
            try:
                for response in call:
                    told.put(response.status)
            except grpc.RpcError:
                pass
            told.put(call.code())

        listener = Thread(target=listen)
        listener.start()
        yield running, told
        call.cancel()
        listener.join(PATIENCE_S)


@pytest.mark.promise("G-20")
@pytest.mark.parametrize("service", ["", SERVICE_NAME])
def test_health_is_serving_once_the_server_is_ready(service: str):
    with serving(ready=False) as running:
        assert health_of(running, service) == NOT_SERVING
        running.server.ready()
        assert health_of(running, service) == SERVING


@pytest.mark.promise("G-20")
def test_the_health_of_an_unknown_service_is_not_found():
    with serving() as running, pytest.raises(grpc.RpcError) as caught:
        health_of(running, "tests.Nothing")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.promise("O-7")
def test_draining_says_not_serving_first_and_finishes_the_accepted_call(watched: tuple[Running, Queue[int | grpc.StatusCode]]):
    running, told = watched
    assert told.get(timeout=PATIENCE_S) == SERVING
    with running.stub() as stub:
        with running.store.writing():
            accepted = stub.PublishVersion.future(NEW, timeout=PATIENCE_S)
            running.wait_for_calls_in_flight(1)
            draining = Thread(target=running.server.drain, args=(PATIENCE_S,))
            draining.start()
            assert told.get(timeout=PATIENCE_S) == NOT_SERVING
            assert told.get(timeout=PATIENCE_S) is grpc.StatusCode.OK
            with grpc.insecure_channel(running.address) as channel, pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary("/graphsvc.v1.GraphService/GetStatus")(b"", timeout=PATIENCE_S)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert not accepted.done()
            assert draining.is_alive()
        assert accepted.result(PATIENCE_S).created
        draining.join(PATIENCE_S)
        assert not draining.is_alive()
    assert running.store.head() == 1


@pytest.mark.promise("O-7")
def test_a_watcher_does_not_hold_up_the_end(watched: tuple[Running, Queue[int | grpc.StatusCode]]):
    running, told = watched
    assert told.get(timeout=PATIENCE_S) == SERVING
    draining = Thread(target=running.server.drain, args=(10 * PATIENCE_S,))
    draining.start()
    draining.join(PATIENCE_S)
    assert not draining.is_alive()


@pytest.mark.promise("O-7")
def test_what_does_not_finish_in_time_is_ended():
    with serving() as running, running.stub() as stub, running.store.writing():
        accepted = stub.PublishVersion.future(NEW, timeout=PATIENCE_S)
        running.wait_for_calls_in_flight(1)
        running.server.drain(0)
        with pytest.raises(grpc.RpcError):
            accepted.result(PATIENCE_S)


@pytest.mark.promise("O-7")
def test_watchers_hold_no_thread():
    with serving(threads=2) as running, grpc.insecure_channel(running.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(5)]
        for watch in watches:
            assert next(watch).status == SERVING
        with running.stub() as stub:
            assert stub.GetStatus(pb.GetStatusRequest(), timeout=PATIENCE_S).revision == 0
        for watch in watches:
            watch.cancel()


@pytest.mark.promise("O-7")
def test_watchers_that_leave_while_the_server_drains_do_not_stop_it_for_good():
    for _ in range(25):
        with serving() as running, grpc.insecure_channel(running.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(6)]
            for watch in watches:
                assert next(watch).status == SERVING
            draining = Thread(target=running.server.drain, args=(PATIENCE_S,), daemon=True)
            draining.start()
            for watch in watches:
                watch.cancel()
            draining.join(3 * PATIENCE_S)
            assert not draining.is_alive()


def test_a_taken_port_is_refused():
    with serving() as running, pytest.raises(Exception, match="can not be listened on"), serving(listen=running.address):
        pass
