"""Ten loops through an agent of a random graph, ours and networkx side by side on every sampled agent.

Run with `make bench`, or `python bench/bench_search.py --agents 100000 --edges 200000 --samples 30`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time

from graphs import random_edges, versions_of
from measuring import machine
from peers import Networkx

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore


def _on_loops(service: GraphService, versions: list[AgentVersion], count: int, rng: random.Random) -> list[int]:
    """So many agents at random of those that ten loops go through; an agent without loops is answered at once by anybody."""
    sampled: list[int] = []
    for number in rng.sample(range(len(versions)), len(versions)):
        report = service.check(versions[number].agent, versions[number].declaration, EVERYTHING)
        if len(report.loops) == report.limits.max_loops:
            sampled.append(number)
        if len(sampled) == count:
            break
    return sampled


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--event-of-edge", action="store_true", help="one event for each edge, not one for each agent")
    asked = parser.parse_args()

    edges = random_edges(asked.agents, asked.edges, asked.seed)
    versions = versions_of(asked.agents, edges, event_of_edge=asked.event_of_edge)
    limits = Limits(max_loops=10)
    service = GraphService(MemoryStore(patience_s=60), LimitPolicy(default=limits, ceiling=limits))
    began = time.perf_counter()
    service.import_versions(versions)
    loaded_s = time.perf_counter() - began
    peer = Networkx(edges)

    sampled = _on_loops(service, versions, asked.samples, random.Random(asked.seed))
    ours: dict[int, list[float]] = {number: [] for number in sampled}
    peers: dict[int, list[float]] = {number: [] for number in sampled}
    found = {}
    # Each side goes over all agents in turn, as a service or a script would, and the sides take turns, so that both see the same
    # machine, with all its other work.
    for _ in range(asked.rounds):
        for number in sampled:
            start = time.perf_counter()
            report = service.check(versions[number].agent, versions[number].declaration, EVERYTHING)
            ours[number].append(time.perf_counter() - start)
            found[number] = report
        for number in sampled:
            start = time.perf_counter()
            lengths = peer.loops(number, 10)
            peers[number].append(time.perf_counter() - start)
            ours_too = [loop.length for loop in found[number].loops]
            if ours_too != lengths:
                sys.exit(f"{versions[number].agent}: lengths {ours_too}, but {peer.name} found {lengths}")
    rows = [(statistics.median(ours[n]), statistics.median(peers[n]), found[n].visits) for n in sampled]
    json.dump(
        {
            "graph": {"agents": asked.agents, "edges": asked.edges, "seed": asked.seed, "event_of_edge": asked.event_of_edge},
            "machine": machine(),
            "peer": peer.name,
            "import_s": round(loaded_s, 3),
            "samples": len(rows),
            "rounds": asked.rounds,
            "same_lengths": True,
            "ours_ms_median": statistics.median(row[0] for row in rows) * 1e3,
            "peer_ms_median": statistics.median(row[1] for row in rows) * 1e3,
            "ratio_median": statistics.median(row[1] / row[0] for row in rows),
            "ratio_least": min(row[1] / row[0] for row in rows),
            "ratio_most": max(row[1] / row[0] for row in rows),
            "visits_median": statistics.median(row[2] or 0 for row in rows),
        },
        sys.stdout,
        indent=2,
    )
    print()


if __name__ == "__main__":
    main()
