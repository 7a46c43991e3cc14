"""Requests that break a rule: refused by the name of the field, whole, with nothing stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest
from grpc_status import rpc_status

from graphsvc.domain.model import MAX_EVENTS
from graphsvc.rpc.requests import MAX_READER_SCOPES, ImportLimits
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc
from tests.graphsvc.rpc.serving import PATIENCE_S, Running, serving

LIMITS = ImportLimits(messages=5, versions=20, events=2_500)


def check(**changes: Any) -> pb.CheckVersionRequest:
    request = pb.CheckVersionRequest(agent=pb.AgentRef(company="acme", area="platform", name="developer"), declaration={})
    request.MergeFrom(pb.CheckVersionRequest(**changes))
    return request


def publication(**changes: Any) -> pb.PublishVersionRequest:
    request = pb.PublishVersionRequest(version={"agent": {"company": "acme", "name": "developer"}, "version": 1, "declaration": {}})
    request.MergeFrom(pb.PublishVersionRequest(**changes))
    return request


def emits(*events: dict[str, Any]) -> dict[str, Any]:
    return {"declaration": {"emits": list(events)}}


def listens(*events: str) -> dict[str, Any]:
    return {"declaration": {"listens": list(events)}}


def names(count: int) -> list[str]:
    return [f"event {i}" for i in range(count)]


CHECKS: dict[str, tuple[pb.CheckVersionRequest, list[str]]] = {
    "nothing at all": (pb.CheckVersionRequest(), ["agent", "declaration"]),
    "no agent": (pb.CheckVersionRequest(declaration={}), ["agent"]),
    "no declaration": (pb.CheckVersionRequest(agent=pb.AgentRef(name="developer")), ["declaration"]),
    "no name": (pb.CheckVersionRequest(agent={"company": "acme"}, declaration={}), ["agent.name"]),
    "white space around the name": (check(agent={"name": " developer"}), ["agent.name"]),
    "only white space": (check(agent={"name": "\u3000"}), ["agent.name"]),
    "control character": (check(agent={"name": "a\x00b"}), ["agent.name"]),
    "line feed": (check(agent={"name": "a\nb"}), ["agent.name"]),
    "line separator": (check(agent={"name": "a\u2028b"}), ["agent.name"]),
    "bidirectional override": (check(agent={"name": "a\u202eb"}), ["agent.name"]),
    "bidirectional isolate": (check(agent={"name": "a\u2066b"}), ["agent.name"]),
    "right-to-left mark": (check(agent={"name": "a\u200fb"}), ["agent.name"]),
    "unassigned character": (check(agent={"name": "a\u0378b"}), ["agent.name"]),
    "not a character": (check(agent={"name": "a\uffffb"}), ["agent.name"]),
    "name too long": (check(agent={"name": "n" * 257}), ["agent.name"]),
    "name too long in bytes": (check(agent={"name": "ü" * 129}), ["agent.name"]),
    "empty company": (check(agent={"company": ""}), ["agent.company"]),
    "slash in the company": (check(agent={"company": "ac/me"}), ["agent.company"]),
    "colon in the company": (check(agent={"company": "ac:me"}), ["agent.company"]),
    "company called *": (check(agent={"company": "*"}), ["agent.company"]),
    "company too long": (check(agent={"company": "c" * 257}), ["agent.company"]),
    "empty area": (check(agent={"area": ""}), ["agent.area"]),
    "slash in the area": (check(agent={"area": "plat/form"}), ["agent.area"]),
    "colon in the area": (check(agent={"area": "plat:form"}), ["agent.area"]),
    "area called *": (check(agent={"area": "*"}), ["agent.area"]),
    "area without company": (pb.CheckVersionRequest(agent={"area": "platform", "name": "d"}, declaration={}), ["agent.area"]),
    "empty event": (check(**emits({"event": "ok"}, {"event": ""})), ["declaration.emits[1].event"]),
    "control character in an event": (check(**emits({"event": "a\tb"})), ["declaration.emits[0].event"]),
    "event too long": (check(**emits({"event": "e" * 257})), ["declaration.emits[0].event"]),
    "event twice": (check(**emits({"event": "a"}, {"event": "b"}, {"event": "a"})), ["declaration.emits[2]"]),
    "event twice once normalised": (check(**emits({"event": "\u00e9"}, {"event": "e\u0301"})), ["declaration.emits[1]"]),
    "empty context": (check(**emits({"event": "a", "context": ""})), ["declaration.emits[0].context"]),
    "control character in a context": (check(**emits({"event": "a", "context": "\x1b"})), ["declaration.emits[0].context"]),
    "empty artifact": (check(**emits({"event": "a", "artifacts": ["x", ""]})), ["declaration.emits[0].artifacts[1]"]),
    "artifact twice": (check(**emits({"event": "a", "artifacts": ["x", "x"]})), ["declaration.emits[0].artifacts[1]"]),
    "too many artifacts": (check(**emits({"event": "a", "artifacts": names(MAX_EVENTS + 1)})), ["declaration.emits[0].artifacts"]),
    "empty trigger": (check(**listens("a", "b", "")), ["declaration.listens[2]"]),
    "bidirectional override in a trigger": (check(**listens("a\u202e")), ["declaration.listens[0]"]),
    "trigger twice": (check(**listens("a", "a")), ["declaration.listens[1]"]),
    "too many triggers": (check(**listens(*names(MAX_EVENTS + 1))), ["declaration.listens"]),
    "too many events": (check(**emits(*({"event": name} for name in names(MAX_EVENTS + 1)))), ["declaration.emits"]),
    "too many events together": (
        check(declaration={"emits": [{"event": "a"}], "listens": names(MAX_EVENTS)}),
        ["declaration.emits"],
    ),
    "empty scope": (check(reader=["acme", ""]), ["reader[1].company"]),
    "scope with an empty area": (check(reader=["acme/"]), ["reader[0].area"]),
    "scope with two slashes": (check(reader=["acme/a/b"]), ["reader[0].area"]),
    "scope with a colon": (check(reader=["acme:x"]), ["reader[0].company"]),
    "too many scopes": (check(reader=["acme"] * (MAX_READER_SCOPES + 1)), ["reader"]),
    "no loops": (check(limits={"max_loops": 0}), ["limits.max_loops"]),
    "fewer than no loops": (check(limits={"max_loops": -1}), ["limits.max_loops"]),
    "fewer than no visits": (check(limits={"max_visits": -1}), ["limits.max_visits"]),
    "revision below 0": (check(at_least_revision=-1), ["at_least_revision"]),
    "faults everywhere": (
        check(
            agent={"company": "a/b", "area": ":", "name": "\x00"},
            declaration={"emits": [{"event": ""}, {"event": "x", "context": ""}], "listens": ["\n"]},
            reader=["*", "/"],
            limits={"max_loops": 0, "max_visits": -1},
            at_least_revision=-5,
        ),
        [
            "agent.company",
            "agent.name",
            "declaration.emits[0].event",
            "declaration.emits[1].context",
            "declaration.listens[0]",
            "reader[1].company",
            "limits.max_loops",
            "limits.max_visits",
            "at_least_revision",
        ],
    ),
}

PUBLICATIONS: dict[str, tuple[pb.PublishVersionRequest, list[str]]] = {
    "nothing at all": (pb.PublishVersionRequest(), ["version.agent", "version.version", "version.declaration"]),
    "no number": (pb.PublishVersionRequest(version={"agent": {"name": "x"}, "declaration": {}}), ["version.version"]),
    "number below 0": (publication(version={"version": -1}), ["version.version"]),
    "bad company": (publication(version={"agent": {"company": "a/b"}}), ["version.agent.company"]),
    "bad event": (publication(version=emits({"event": ""})), ["version.declaration.emits[0].event"]),
    "bad reader": (publication(reader=["a/b/c"]), ["reader[0].area"]),
    "bad limits": (publication(limits={"max_loops": 0}), ["limits.max_loops"]),
}

GOOD = pb.AgentVersion(agent={"name": "good"}, version=1, declaration={})
BAD = pb.AgentVersion(agent={"name": "\x7f"}, version=-1)


def chunk(*versions: pb.AgentVersion, last: bool = False) -> pb.ImportVersionsRequest:
    return pb.ImportVersionsRequest(versions=versions, last=last)


IMPORTS: dict[str, tuple[list[pb.ImportVersionsRequest], list[str]]] = {
    "cut before its end": ([chunk(GOOD)], ["last"]),
    "nothing at all": ([], ["last"]),
    "a bad version after good ones": (
        [chunk(GOOD), chunk(), chunk(GOOD, BAD, last=True)],
        ["versions[2].agent.name", "versions[2].version", "versions[2].declaration"],
    ),
    "too many messages": ([chunk()] * 5 + [chunk(last=True)], ["versions"]),
    "too many versions": ([chunk(*[GOOD] * 11), chunk(*[GOOD] * 10, last=True)], ["versions"]),
    "too many events": (
        [chunk(*[pb.AgentVersion(agent={"name": f"a{i}"}, declaration={"listens": names(999)}) for i in range(3)], last=True)],
        ["versions"],
    ),
}

DESCRIPTIONS: dict[str, tuple[pb.DescribeAgentRequest, list[str]]] = {
    "nothing at all": (pb.DescribeAgentRequest(), ["agent"]),
    "page size below 0": (pb.DescribeAgentRequest(agent={"name": "x"}, page_size=-1), ["page_size"]),
    "revision below 0": (pb.DescribeAgentRequest(agent={"name": "x"}, at_least_revision=-1), ["at_least_revision"]),
    "bad reader": (pb.DescribeAgentRequest(agent={"name": "x"}, reader=[":"]), ["reader[0].company"]),
}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(import_limits=LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def stub(running: Running) -> Iterator[graph_pb2_grpc.GraphServiceStub]:
    with running.stub() as stub:
        yield stub


def refused_fields(method: Callable[..., Any], request: Any, running: Running) -> list[str]:
    """The fields that the refusal names, after looking that it has a reason and a remedy for each and that nothing was stored."""
    before = running.store.head()
    with pytest.raises(grpc.RpcError) as caught:
        method(request, timeout=PATIENCE_S)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert running.store.head() == before
    [detail] = rpc_status.from_call(caught.value).details
    bad = BadRequest()
    assert detail.Unpack(bad)
    for violation in bad.field_violations:
        reason, _, remedy = violation.description.rpartition("; ")
        assert reason
        assert remedy
    return [violation.field for violation in bad.field_violations]


@pytest.mark.promise("G-23", "G-24")
@pytest.mark.parametrize("case", CHECKS)
def test_a_faulty_check_names_each_faulty_field(case: str, stub: graph_pb2_grpc.GraphServiceStub, running: Running):
    request, fields = CHECKS[case]
    assert refused_fields(stub.CheckVersion, request, running) == fields


@pytest.mark.promise("G-23", "G-24")
@pytest.mark.parametrize("case", PUBLICATIONS)
def test_a_faulty_publication_names_each_faulty_field(case: str, stub: graph_pb2_grpc.GraphServiceStub, running: Running):
    request, fields = PUBLICATIONS[case]
    assert refused_fields(stub.PublishVersion, request, running) == fields


@pytest.mark.promise("G-23", "G-24")
@pytest.mark.parametrize("case", IMPORTS)
def test_a_faulty_import_stores_nothing(case: str, stub: graph_pb2_grpc.GraphServiceStub, running: Running):
    messages, fields = IMPORTS[case]
    assert refused_fields(stub.ImportVersions, iter(messages), running) == fields


@pytest.mark.promise("G-23", "G-24")
@pytest.mark.parametrize("case", DESCRIPTIONS)
def test_a_faulty_question_names_each_faulty_field(case: str, stub: graph_pb2_grpc.GraphServiceStub, running: Running):
    request, fields = DESCRIPTIONS[case]
    assert refused_fields(stub.DescribeAgent, request, running) == fields


@pytest.mark.promise("G-24")
def test_a_faulty_retirement_and_export_name_their_fields(stub: graph_pb2_grpc.GraphServiceStub, running: Running):
    assert refused_fields(stub.RetireAgent, pb.RetireAgentRequest(agent={"company": ":", "name": "x"}), running) == [
        "agent.company"
    ]
    exported = lambda request, timeout: list(stub.ExportVersions(request, timeout=timeout))  # noqa: E731
    assert refused_fields(exported, pb.ExportVersionsRequest(scopes=["acme", "a/b/c"]), running) == ["scopes[1].area"]


@pytest.mark.promise("G-23", "G-24")
@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("CheckVersion", b"\xff\xff\xff"),
        ("CheckVersion", b"\x0a\x04\x1a\x02\xc3\x28"),  # a name that is not UTF-8
        ("PublishVersion", b"\x0a\x7f"),  # a message that ends too early
    ],
)
def test_bytes_that_are_no_message_are_bad_input_and_not_a_fault_of_ours(method: str, message: bytes, running: Running):
    with grpc.insecure_channel(running.address) as channel:
        raw = channel.unary_unary(f"/graphsvc.v1.GraphService/{method}")
        assert refused_fields(raw, message, running) == ["request"]


@pytest.mark.promise("G-24")
def test_names_are_taken_in_normal_form_c(stub: graph_pb2_grpc.GraphServiceStub):
    request = check(agent={"name": "e\u0301"}, declaration={"emits": [{"event": "A\u030a"}]})
    report = stub.CheckVersion(request, timeout=PATIENCE_S).report
    assert report.agent.name == "\u00e9"
    assert [notice.event for notice in report.notices] == ["\u00c5"]
