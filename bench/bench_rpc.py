"""What gRPC adds to a check, beside an empty echo behind the same interceptors.

A server in a process of its own offers CheckVersion and an echo of an empty message. In turn, one after the other: an echo, a check
over gRPC, the same check in this process with the digest that every answer carries. What gRPC adds is the second less the third.
The client is the plain generated stub.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
from google.protobuf.empty_pb2 import Empty
from graphs import random_edges, versions_of
from measuring import machine, tell, timed

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.rpc import convert
from graphsvc.rpc.admission import RateLimit, StreamSlots
from graphsvc.rpc.auth import Anyone
from graphsvc.rpc.interceptor import Front
from graphsvc.rpc.requests import ImportLimits
from graphsvc.rpc.servicer import GraphServicer
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore
from graphsvc.telemetry import Telemetry, configure_logging
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc

ECHO = "/bench.Echo/Echo"


def load(agents: int, edges: int, seed: int) -> tuple[GraphService, list[AgentVersion]]:
    """The same service in either process."""
    versions = versions_of(agents, random_edges(agents, edges, seed))
    policy = LimitPolicy(default=Limits(), ceiling=Limits())
    service = GraphService(MemoryStore(patience_s=60), policy)
    service.import_versions(versions)
    service.check(versions[0].agent, versions[0].declaration, EVERYTHING)
    return service, versions


def serve(service: GraphService) -> None:
    """Print the port, then answer until standard input ends."""
    configure_logging("error", "json")  # a line for each call would fill the pipe of standard output, and then block
    telemetry = Telemetry(None)
    front = Front(
        authenticator=Anyone(),
        telemetry=telemetry,
        rate=RateLimit(1e9, 10**9),
        streams=StreamSlots(8, 8),
        default_deadline_s=10,
    )
    server = grpc.server(ThreadPoolExecutor(8), interceptors=[front])
    limits = ImportLimits(messages=1, versions=1, events=1)
    servicer = GraphServicer(service=service, telemetry=telemetry, import_limits=limits, software_version="bench")
    graph_pb2_grpc.add_GraphServiceServicer_to_server(servicer, server)
    handler = grpc.unary_unary_rpc_method_handler(
        lambda request, _: request, request_deserializer=Empty.FromString, response_serializer=Empty.SerializeToString
    )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench.Echo", {"Echo": handler})])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(grace=1).wait()


def answer(service: GraphService, version: AgentVersion) -> str:
    """A check as every caller gets it, with its digest."""
    return service.check(version.agent, version.declaration, EVERYTHING).digest


def measure(port: int, service: GraphService, versions: list[AgentVersion], rounds: int, seed: int) -> dict[str, object]:
    """Medians in microseconds over interleaved rounds, apart for versions that close loops and those that do not."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    stub = graph_pb2_grpc.GraphServiceStub(channel)
    echo = channel.unary_unary(ECHO, request_serializer=Empty.SerializeToString, response_deserializer=Empty.FromString)
    rows: dict[str, list[tuple[float, float, float]]] = {"no loop": [], "loops": []}
    for version in random.Random(seed).choices(versions, k=rounds):
        request = pb.CheckVersionRequest(
            agent=convert.agent_to_proto(version.agent), declaration=convert.declaration_to_proto(version.declaration)
        )
        report = service.check(version.agent, version.declaration, EVERYTHING)  # both processes' caches have seen it, neither first
        stub.CheckVersion(request)
        row = (
            timed(partial(echo, Empty())),
            timed(partial(stub.CheckVersion, request)),
            timed(partial(answer, service, version)),
        )
        rows["loops" if report.loops else "no loop"].append(row)
    channel.close()
    figures: dict[str, object] = {}
    for kind, measured in rows.items():
        if measured:
            echo_us, rpc_us, check_us = (statistics.median(column) * 1e6 for column in zip(*measured, strict=True))
            added_us = statistics.median(rpc - check for _, rpc, check in measured) * 1e6
            figures[kind] = {
                "rounds": len(measured),
                "echo_us": round(echo_us, 1),
                "check_rpc_us": round(rpc_us, 1),
                "check_in_process_us": round(check_us, 1),
                "added_us": round(added_us, 1),
                "added_to_echo": round(added_us / echo_us, 3),
            }
    return figures


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=12_000)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", action="store_true", help="be the server; for this program's own use")
    asked = parser.parse_args()
    ran = machine()
    service, versions = load(asked.agents, asked.edges, asked.seed)
    if asked.serve:
        serve(service)
        return
    shape = [f"--agents={asked.agents}", f"--edges={asked.edges}", f"--seed={asked.seed}"]
    with subprocess.Popen([sys.executable, __file__, "--serve", *shape], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        port = int(server.stdout.readline())
        figures = measure(port, service, versions, asked.rounds, asked.seed)
        server.stdin.close()
    graph = {"agents": asked.agents, "edges": asked.edges, "seed": asked.seed}
    tell({"graph": graph, "machine": ran, "checks": figures})


if __name__ == "__main__":
    main()
