"""Two worlds that differ only in what is hidden give the same bytes on every way out of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from graphsvc.domain.model import AgentVersion
from graphsvc.rpc.auth import BearerTokens
from graphsvc.rpc.keys import FixedKeys, pinned
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc
from tests.graphsvc.rpc.serving import PATIENCE_S, serving, version
from tests.graphsvc.rpc.signing import AUDIENCE, ISSUER, new_signer

ADA = new_signer()
KEY = pinned(ADA.key.public_key(), None)
DEVELOPER = pb.AgentRef(company="acme", area="platform", name="developer")
DECLARATION = pb.Declaration(emits=[{"event": "code"}, {"event": "solo"}], listens=["review", "cod"])


def world(company: str, area: str, names: tuple[str, str, str], private: str) -> tuple[AgentVersion, ...]:
    """A company that ada may not read, between agents that she may."""
    first, second, third = (f"{company}/{area}:{name}" for name in names)
    return (
        version("acme/platform:developer", 1, ["code"], ["review"]),
        version(first, 1, [private], ["code"]),
        version("acme:reviewer", 1, ["review"], ["code"]),
        version(second, 1, ["review", f"{private} 2"], [private]),
        version(third, 1, ["review"], ["code", f"{private} 2"]),
    )


WORLDS = (
    world("globex", "research", ("auditor", "binder", "caller"), "secret"),
    world("Ålesund Works", "a", ("zebra", "yak", "aardvark"), "code review"),
)

CALLS: dict[str, Callable[[graph_pb2_grpc.GraphServiceStub, tuple[Any, ...]], Any]] = {
    "check": lambda stub, m: stub.CheckVersion.with_call(
        pb.CheckVersionRequest(agent=DEVELOPER, declaration=DECLARATION), timeout=PATIENCE_S, metadata=m
    ),
    "check of few loops": lambda stub, m: stub.CheckVersion.with_call(
        pb.CheckVersionRequest(agent=DEVELOPER, declaration=DECLARATION, limits={"max_loops": 1}), timeout=PATIENCE_S, metadata=m
    ),
    "check of few visits": lambda stub, m: stub.CheckVersion.with_call(
        pb.CheckVersionRequest(agent=DEVELOPER, declaration=DECLARATION, limits={"max_visits": 9}), timeout=PATIENCE_S, metadata=m
    ),
    "describe": lambda stub, m: stub.DescribeAgent.with_call(
        pb.DescribeAgentRequest(agent=DEVELOPER, page_size=1), timeout=PATIENCE_S, metadata=m
    ),
    "describe what is hidden": lambda stub, m: stub.DescribeAgent.with_call(
        pb.DescribeAgentRequest(agent={"company": "globex", "area": "research", "name": "auditor"}), timeout=PATIENCE_S, metadata=m
    ),
    "a reader that is too wide": lambda stub, m: stub.CheckVersion.with_call(
        pb.CheckVersionRequest(agent=DEVELOPER, declaration=DECLARATION, reader=["globex"]), timeout=PATIENCE_S, metadata=m
    ),
    "publishing what is hidden": lambda stub, m: stub.PublishVersion.with_call(
        pb.PublishVersionRequest(
            version={"agent": {"company": "globex", "area": "research", "name": "auditor"}, "version": 1, "declaration": {}}
        ),
        timeout=PATIENCE_S,
        metadata=m,
    ),
    "retiring what is hidden": lambda stub, m: stub.RetireAgent.with_call(
        pb.RetireAgentRequest(agent={"company": "globex", "area": "research", "name": "auditor"}), timeout=PATIENCE_S, metadata=m
    ),
    "status": lambda stub, m: stub.GetStatus.with_call(pb.GetStatusRequest(), timeout=PATIENCE_S, metadata=m),
    "export": lambda stub, m: _exported(stub.ExportVersions(pb.ExportVersionsRequest(), timeout=PATIENCE_S, metadata=m)),
    "audit": lambda stub, m: _audited(stub.AuditLoops(pb.AuditLoopsRequest(), timeout=PATIENCE_S, metadata=m)),
    "publish": lambda stub, m: stub.PublishVersion.with_call(
        pb.PublishVersionRequest(version={"agent": DEVELOPER, "version": 2, "declaration": DECLARATION}),
        timeout=PATIENCE_S,
        metadata=m,
    ),
    "publish other content": lambda stub, m: stub.PublishVersion.with_call(
        pb.PublishVersionRequest(version={"agent": DEVELOPER, "version": 2, "declaration": {}}), timeout=PATIENCE_S, metadata=m
    ),
    "retire": lambda stub, m: stub.RetireAgent.with_call(pb.RetireAgentRequest(agent=DEVELOPER), timeout=PATIENCE_S, metadata=m),
}


def _exported(call: Any) -> tuple[Any, Any]:
    [message] = call
    return message, call


class _Parts(list[Any]):
    """The messages of a stream, as one."""

    def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802 - as messages have it
        return b"|".join(part.SerializeToString(deterministic=deterministic) for part in self)


def _audited(call: Any) -> tuple[Any, Any]:
    return _Parts(call), call


def answers(versions: tuple[AgentVersion, ...]) -> Iterator[tuple[str, object]]:
    """What ada is told by one call after another: message, status, details, metadata and trailers, as bytes."""
    assert KEY is not None
    metadata = (("authorization", f"Bearer {ADA.token('author=acme')}"),)
    with (
        serving(authenticator=BearerTokens(FixedKeys([KEY]), ISSUER, AUDIENCE), versions=versions) as running,
        running.stub() as stub,
    ):
        for name, ask in CALLS.items():
            try:
                message, call = ask(stub, metadata)
                told = message.SerializeToString(deterministic=True)
            except grpc.RpcError as error:
                call, told = error, b""
            yield name, (told, call.code(), call.details(), call.initial_metadata(), call.trailing_metadata())


@pytest.mark.promise("G-14", "G-15", "G-16")
def test_renaming_what_is_hidden_changes_no_byte_of_any_answer():
    first, second = (dict(answers(versions)) for versions in WORLDS)
    assert first == second


def test_the_calls_tell_enough_for_the_comparison_to_mean_something():
    told = dict(answers(WORLDS[0]))
    codes = {name: answer[1] for name, answer in told.items()}  # type: ignore[index]
    assert codes["check"] is codes["publish"] is codes["audit"] is grpc.StatusCode.OK
    assert codes["describe what is hidden"] is grpc.StatusCode.NOT_FOUND
    assert codes["retiring what is hidden"] is grpc.StatusCode.PERMISSION_DENIED
    report = pb.CheckVersionResponse.FromString(told["check"][0]).report  # type: ignore[index]
    assert any(not agent.HasField("agent") for loop in report.loops for agent in loop.agents)
