"""Limits on what callers send, and deadlines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event

import grpc
import pytest

from graphsvc.domain.errors import Overloaded
from graphsvc.rpc.admission import MAX_REMEMBERED_CALLERS, RateLimit, StreamSlots
from graphsvc.rpc.status import error_from
from graphsvc.v1 import graph_pb2 as pb
from tests.graphsvc.rpc.serving import PATIENCE_S, serving, version, wait_until

NEW = pb.PublishVersionRequest(version={"agent": {"name": "developer"}, "version": 1, "declaration": {}})
STATUS = pb.GetStatusRequest()


class Clock:
    """A clock that the test turns."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.promise("O-7")
def test_more_calls_than_the_server_accepts_are_refused_at_once_and_the_accepted_one_is_finished():
    with serving(threads=1, calls=1) as running, running.stub() as stub:
        with running.store.writing():
            accepted = stub.PublishVersion.future(NEW, timeout=PATIENCE_S)
            running.wait_for_calls_in_flight(1)
            with pytest.raises(grpc.RpcError) as caught:
                stub.GetStatus(STATUS, timeout=PATIENCE_S)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert isinstance(error_from(caught.value), Overloaded)
            assert not accepted.done()
        assert accepted.result(PATIENCE_S).created


@pytest.mark.promise("O-7", "G-24")
def test_an_oversized_message_is_refused_and_changes_nothing():
    with serving(message_bytes=10_000) as running, running.stub() as stub:
        large = pb.PublishVersionRequest(version={"agent": {"name": "a"}, "version": 1, "declaration": {}})
        large.version.declaration.listens.extend(f"{'event' * 10} {i}" for i in range(500))
        with pytest.raises(grpc.RpcError) as caught:
            stub.PublishVersion(large, timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert running.store.head() == 0
        assert stub.PublishVersion(NEW, timeout=PATIENCE_S).created


@pytest.mark.promise("O-7")
def test_a_caller_above_its_rate_is_refused_until_its_bucket_fills_again():
    clock = Clock()
    with serving(rate=RateLimit(2, 3, clock)) as running, running.stub() as stub:
        for _ in range(3):
            stub.GetStatus(STATUS, timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError) as caught:
            stub.GetStatus(STATUS, timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2 a second" in (caught.value.details() or "")
        clock.now += 0.5
        stub.GetStatus(STATUS, timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError):
            stub.GetStatus(STATUS, timeout=PATIENCE_S)


def test_one_callers_rate_is_not_anothers():
    rate = RateLimit(1, 1, Clock())
    rate.take("ada")
    rate.take("bob")
    with pytest.raises(Overloaded):
        rate.take("ada")


def test_the_rate_remembers_a_bounded_number_of_callers():
    rate = RateLimit(1, 1, Clock())
    rate.take("first")
    for i in range(MAX_REMEMBERED_CALLERS):
        rate.take(f"caller {i}")
    rate.take("first")
    with pytest.raises(Overloaded):
        rate.take(f"caller {MAX_REMEMBERED_CALLERS - 1}")


def unfinished(started: Event, end: Event) -> Iterator[pb.ImportVersionsRequest]:
    """An import that stays open until the test ends it."""
    yield pb.ImportVersionsRequest()
    started.set()
    end.wait(PATIENCE_S)
    yield pb.ImportVersionsRequest(last=True)


@pytest.mark.promise("O-7")
@pytest.mark.parametrize(("total", "per_caller"), [(1, 2), (2, 1)], ids=["of all callers", "of one caller"])
def test_more_streams_than_there_are_places_are_refused_and_others_go_on(total: int, per_caller: int):
    with serving(streams=StreamSlots(total, per_caller)) as running, running.stub() as stub:
        started, end = Event(), Event()
        held = stub.ImportVersions.future(unfinished(started, end), timeout=PATIENCE_S)
        running.wait_for_calls_in_flight(1)
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.ExportVersions(pb.ExportVersionsRequest(), timeout=PATIENCE_S))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert stub.GetStatus(STATUS, timeout=PATIENCE_S).revision == 0
        end.set()
        held.result(PATIENCE_S)
        assert list(stub.ExportVersions(pb.ExportVersionsRequest(), timeout=PATIENCE_S))


@pytest.mark.promise("O-7")
def test_places_for_streams_are_counted_for_all_and_for_each_caller():
    slots = StreamSlots(3, 2)
    slots.take("ada")
    slots.take("ada")
    with pytest.raises(Overloaded, match="the caller has 2"):
        slots.take("ada")
    slots.take("bob")
    with pytest.raises(Overloaded, match="3 streams"):
        slots.take("eve")
    slots.give_back("ada")
    slots.take("eve")


@pytest.mark.promise("G-23")
def test_a_call_without_deadline_gets_the_servers_and_one_with_deadline_keeps_its_own():
    with serving(default_deadline_s=1e-6) as running, running.stub() as stub:
        with pytest.raises(grpc.RpcError) as caught:
            stub.PublishVersion(NEW)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert running.store.head() == 0
        assert stub.PublishVersion(NEW, timeout=PATIENCE_S).created


@pytest.mark.promise("G-23")
def test_an_answer_that_comes_after_the_servers_deadline_is_not_given():
    with serving(default_deadline_s=0.05) as running, running.stub() as stub:
        with running.store.writing():
            call = stub.PublishVersion.future(NEW)
            passed = time.monotonic() + 0.1
            wait_until(lambda: call.done() or time.monotonic() > passed, "the deadline passes")
        with pytest.raises(grpc.RpcError) as caught:
            call.result(PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.promise("G-23", "O-7")
def test_an_import_whose_client_stops_sending_ends_at_the_servers_deadline_and_stores_nothing():
    with serving(default_deadline_s=0.2) as running, running.stub() as stub:
        end = Event()
        with pytest.raises(grpc.RpcError) as caught:
            stub.ImportVersions(unfinished(Event(), end))
        end.set()
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert running.store.head() == 0


@pytest.mark.promise("G-24")
def test_an_import_whose_client_leaves_stores_nothing():
    with serving() as running, running.stub() as stub:
        left = Event()

        def half() -> Iterator[pb.ImportVersionsRequest]:
            yield pb.ImportVersionsRequest(versions=[NEW.version])
            left.wait(PATIENCE_S)

        call = stub.ImportVersions.future(half(), timeout=PATIENCE_S)
        running.wait_for_calls_in_flight(1)
        call.cancel()
        left.set()
        running.wait_for_calls_in_flight(0)
        assert running.store.head() == 0


@pytest.mark.promise("O-7")
def test_a_large_export_comes_in_messages_that_any_client_takes():
    names = [f"{'x' * 200}{i}" for i in range(900)]
    world = tuple(version(f"acme:agent {i}", 1, [], names) for i in range(25))
    with serving(versions=world) as running, running.stub() as stub:
        messages = list(stub.ExportVersions(pb.ExportVersionsRequest(), timeout=PATIENCE_S))
    assert len(messages) > 1
    assert sum(len(message.versions) for message in messages) == 25
    assert {message.revision for message in messages} == {25}
