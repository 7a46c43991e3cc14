"""A client that is not ours: it knows the address and learns the rest by reflection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.graphsvc.rpc.serving import PATIENCE_S, serving

SERVICE = "graphsvc.v1.GraphService"


class Stranger:
    """Builds messages and calls from what the server tells of itself; imports nothing of graphsvc."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self.database = ProtoReflectionDescriptorDatabase(channel)
        self._service = DescriptorPool(self.database).FindServiceByName(SERVICE)

    def methods(self) -> dict[str, MethodDescriptor]:
        return dict(self._service.methods_by_name)

    def call(self, name: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        method = self.methods()[name]
        request_class, response_class = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        messages = [json_format.ParseDict(request, request_class()) for request in requests]
        kind = ("stream" if method.client_streaming else "unary") + ("_stream" if method.server_streaming else "_unary")
        make = getattr(self._channel, kind)
        invoke = make(
            f"/{SERVICE}/{name}",
            request_serializer=request_class.SerializeToString,
            response_deserializer=response_class.FromString,
        )
        answer = invoke(iter(messages) if method.client_streaming else messages[0], timeout=PATIENCE_S)
        answers = answer if method.server_streaming else [answer]
        return [json_format.MessageToDict(each, preserving_proto_field_name=True) for each in answers]


@pytest.fixture(scope="module")
def stranger() -> Iterator[Stranger]:
    with serving() as running, grpc.insecure_channel(running.address) as channel:
        yield Stranger(channel)


@pytest.mark.promise("G-20")
def test_reflection_lists_the_services_and_their_methods(stranger: Stranger):
    assert set(stranger.database.get_services()) == {
        SERVICE,
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert set(stranger.methods()) == {
        "CheckVersion",
        "PublishVersion",
        "RetireAgent",
        "ImportVersions",
        "ExportVersions",
        "DescribeAgent",
        "AuditLoops",
        "GetStatus",
    }


@pytest.mark.promise("G-20", "G-21")
def test_a_client_built_from_reflection_alone_can_call_every_method(stranger: Stranger):
    developer = {"company": "acme", "area": "platform", "name": "developer"}
    reviewer = {"company": "acme", "name": "reviewer"}
    declaration = {"emits": [{"event": "code", "context": "change", "artifacts": ["diff"]}], "listens": ["review"]}
    [imported] = stranger.call(
        "ImportVersions",
        {"versions": [{"agent": reviewer, "version": 1, "declaration": {"emits": [{"event": "review"}], "listens": ["code"]}}]},
        {"last": True},
    )
    assert imported == {"revision": "1", "created": "1"}
    [checked] = stranger.call("CheckVersion", {"agent": developer, "declaration": declaration})
    assert checked["report"]["verification"] == "VERIFICATION_COMPLETE"
    [loop] = checked["report"]["loops"]
    assert loop["agents"] == [{"agent": developer}, {"agent": reviewer}]
    assert [hop["events"] for hop in loop["hops"]] == [["code"], ["review"]]
    [published] = stranger.call("PublishVersion", {"version": {"agent": developer, "version": 1, "declaration": declaration}})
    assert (published["revision"], published["created"]) == ("2", True)
    assert published["report"]["digest"] == checked["report"]["digest"]
    [described] = stranger.call("DescribeAgent", {"agent": developer})
    assert described["started_by"] == [{"agent": reviewer, "events": ["review"]}]
    [exported] = stranger.call("ExportVersions", {})
    assert [each["agent"]["name"] for each in exported["versions"]] == ["developer", "reviewer"]
    limits, *_, end = stranger.call("AuditLoops", {"scopes": ["acme/platform"]})
    assert (limits["revision"], limits["limits"]["max_length"]) == ("2", 64)
    assert end["end"] == {"findings": "3"}
    [retired] = stranger.call("RetireAgent", {"agent": developer})
    assert retired == {"revision": "3", "created": True}
    [status] = stranger.call("GetStatus", {})
    assert status["sizes"]["agents"] == "1"
    assert status["software_version"] == "1.2.3"


@pytest.mark.promise("G-23")
def test_a_stranger_is_told_of_bad_input_in_terms_of_the_proto_file(stranger: Stranger):
    with pytest.raises(grpc.RpcError) as caught:
        stranger.call("CheckVersion", {"agent": {"name": "x"}, "declaration": {"emits": [{"event": ""}]}})
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (caught.value.details() or "").startswith("declaration.emits[0].event: ")
