"""Ten loops through an agent of a random graph, ours and networkx side by side on every sampled agent.

Run with `make bench`, or `python bench/bench_search.py --agents 100000 --edges 200000 --samples 30`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
import time

from graphs import agent_name, random_edges, versions_of
from peers import Networkx

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()

    edges = random_edges(asked.agents, asked.edges, asked.seed)
    versions = versions_of(asked.agents, edges)
    limits = Limits(max_loops=10)
    service = GraphService(MemoryStore(patience_s=60), LimitPolicy(default=limits, ceiling=limits))
    began = time.perf_counter()
    service.import_versions(versions)
    loaded_s = time.perf_counter() - began
    peer = Networkx(edges)

    service.check(
        versions[0].agent, versions[0].declaration, EVERYTHING
    )  # compiled, or taken from the cache, before the clock starts
    rows = []
    for number in random.Random(asked.seed).sample(range(asked.agents), asked.samples):
        agent = AgentRef(Scope("acme", f"area-{number % 50}"), agent_name(number))
        declaration = versions[number].declaration
        start = time.perf_counter()
        report = service.check(agent, declaration, EVERYTHING)
        ours_s = time.perf_counter() - start
        start = time.perf_counter()
        lengths = peer.loops(number, 10)
        peer_s = time.perf_counter() - start
        if [loop.length for loop in report.loops] != lengths:
            sys.exit(f"{agent}: lengths {[loop.length for loop in report.loops]}, but {peer.name} found {lengths}")
        rows.append((ours_s, peer_s, report.visits, len(lengths)))
        print(f"{agent.name}: ours {ours_s * 1e3:.3f} ms, peer {peer_s * 1e3:.1f} ms, {len(lengths)} loops", file=sys.stderr)
    answered = [row for row in rows if row[3]]
    json.dump(
        {
            "graph": {"agents": asked.agents, "edges": asked.edges, "seed": asked.seed},
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "peer": peer.name,
            "import_s": round(loaded_s, 3),
            "samples": len(rows),
            "samples_with_loops": len(answered),
            "same_lengths": True,
            "ours_ms_median": statistics.median(row[0] for row in rows) * 1e3,
            "peer_ms_median": statistics.median(row[1] for row in rows) * 1e3,
            "ratio_median": statistics.median(row[1] / row[0] for row in rows),
            "ratio_median_with_loops": statistics.median(row[1] / row[0] for row in answered) if answered else None,
            "visits_median": statistics.median(row[2] or 0 for row in rows),
        },
        sys.stdout,
        indent=2,
    )
    print()


if __name__ == "__main__":
    main()
