"""Many callers at a time on a tenant's catalogue: checks and publications a second, in process and over gRPC, beside an empty echo.

The store is SQLite with its log on disk, the server a process of its own, and all callers are threads of this one. Echo, checks and
publications take turns in short windows, so that what else the machine does falls on all of them. `--agents 1000000` takes minutes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import Any

import grpc
from bench_growth import KINDS, LATER, UNCHANGED, proposals
from bench_rpc import ECHO, measure, serve
from google.protobuf.empty_pb2 import Empty
from measuring import machine, tell

from graphsvc.columns import columns_of
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.rpc import convert
from graphsvc.service import GraphService
from graphsvc.store.opening import open_store
from graphsvc.store.snapshot import FileSnapshot
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc

CALLERS = (1, 8, 64)
WINDOWS = 3
PROPOSALS = 3_000

Act = Callable[[int], object]
"""Something a caller does, told a number that nobody had before."""


def opened(folder: Path) -> GraphService:
    """The service on the catalogue of a folder."""
    store = open_store(f"sqlite:///{folder / 'graph.db'}")
    return GraphService(store, LimitPolicy(default=Limits(), ceiling=Limits()), snapshot=FileSnapshot(folder / "snapshot").load())


def filled(folder: Path, agents: int) -> None:
    """Make the catalogue."""
    service = opened(folder)
    versions = generate(Shape.TENANT, agents, 1).versions()
    while batch := list(islice(versions, 50_000)):
        service.import_columns(columns_of(batch))
    service.state(FileSnapshot(folder / "snapshot").save)
    service.close()


def rate(act: Act, callers: int, seconds: float, numbers: count[int]) -> float:
    """How often so many callers do it in a second."""
    end = time.perf_counter() + seconds

    def call(_: int) -> int:
        done = 0
        while time.perf_counter() < end:
            act(next(numbers))
            done += 1
        return done

    start = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        done = sum(pool.map(call, range(callers)))
    return done / (time.perf_counter() - start)


def rates(acts: dict[str, Act], seconds: float, numbers: count[int]) -> dict[str, dict[str, float]]:
    """By number of callers, the median rate of each act over windows in turn."""
    figures: dict[str, dict[str, float]] = {}
    for callers in CALLERS:
        found: dict[str, list[float]] = {name: [] for name in acts}
        for _ in range(WINDOWS):
            for name, act in acts.items():
                found[name].append(rate(act, callers, seconds, numbers))
        figures[str(callers)] = {name: round(statistics.median(each), 1) for name, each in found.items()}
        print(f"{callers} callers: {figures[str(callers)]}", file=sys.stderr)
    return figures


def _newest(versions: list[AgentVersion], number: int) -> AgentVersion:
    """A version that was not published before: publications of all callers go round the agents."""
    version = versions[number % len(versions)]
    return AgentVersion(version.agent, number + 2, version.declaration)


def in_process(service: GraphService, made: dict[str, list[AgentVersion]]) -> dict[str, Act]:
    """What callers within this process do."""

    def check(kind: str) -> Act:
        def act(number: int) -> object:
            version = made[kind][number % len(made[kind])]
            return service.check(version.agent, version.declaration, EVERYTHING)

        return act

    every = [version for kind in KINDS for version in made[kind]]
    return {f"check: {kind}": check(kind) for kind in made} | {
        "publication": lambda number: service.publish(_newest(every, number), EVERYTHING)
    }


def over_grpc(channel: grpc.Channel, made: dict[str, list[AgentVersion]]) -> dict[str, Act]:
    """What callers at the other end of a connection do."""
    stub = graph_pb2_grpc.GraphServiceStub(channel)
    echo = channel.unary_unary(ECHO, request_serializer=Empty.SerializeToString, response_deserializer=Empty.FromString)

    def check(kind: str) -> Act:
        requests = [
            pb.CheckVersionRequest(
                agent=convert.agent_to_proto(version.agent), declaration=convert.declaration_to_proto(version.declaration)
            )
            for version in made[kind]
        ]
        return lambda number: stub.CheckVersion(requests[number % len(requests)])

    every = [version for kind in KINDS for version in made[kind]]

    def publish(number: int) -> object:
        return stub.PublishVersion(pb.PublishVersionRequest(version=convert.version_to_proto(_newest(every, number))))

    return {"echo": lambda _: echo(Empty()), **{f"check: {kind}": check(kind) for kind in made}, "publication": publish}


def _answered_by_index(service: GraphService, versions: list[AgentVersion]) -> list[AgentVersion]:
    return [version for version in versions if service.check(version.agent, version.declaration, EVERYTHING).proof]


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each window")
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", metavar="FOLDER", help="be the server; for this program's own use")
    asked = parser.parse_args()
    if asked.serve:
        serve(opened(Path(asked.serve)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder, asked.agents)
        service = opened(folder)
        made = proposals(service._graph, PROPOSALS, asked.seed)
        made = {kind: [AgentVersion(v.agent, 1, v.declaration) for v in versions] for kind, versions in made.items()}
        made["answered by the index"] = _answered_by_index(service, made[UNCHANGED] + made[LATER])
        figures: dict[str, Any] = {"machine": machine(), "agents": asked.agents, "seed": asked.seed}
        numbers = count()  # one for both, as no number of a version may come twice
        with subprocess.Popen([sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin
            assert server.stdout
            port = int(server.stdout.readline())
            every = [version for kind in KINDS for version in made[kind]]
            figures["one_after_the_other"] = measure(port, service, every, asked.rounds, asked.seed)
            print(figures["one_after_the_other"], file=sys.stderr)
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                figures["grpc"] = rates(over_grpc(channel, made), asked.seconds, numbers)
            server.stdin.close()
        figures["in_process"] = rates(in_process(service, made), asked.seconds, numbers)
        service.close()
    tell(figures)


if __name__ == "__main__":
    main()
