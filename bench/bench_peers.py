"""Ten loops through an agent: ours, networkx, igraph and rustworkx on real, generated and hostile graphs.

Each peer is a process of its own and has --limit seconds for loading a graph and answering all its questions; the questions that it
had not answered by then are counted. Ours answers in this process, with its report: names, notices, everything but the wire.
`python bench/bench_peers.py --only wiki-Vote --only ring` measures some of the graphs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from families import Family, families
from measuring import machine, spread, tell, timed
from peers import MOST, PEERS

from graphsvc.columns import columns_of
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.domain.report import Report
from graphsvc.graph import Graph
from graphsvc.judge import judge
from graphsvc.kernels import jit

LIMITS = Limits(max_loops=MOST, max_visits=10**9)
ROUNDS = 5
MOST_PAIRS = 20_000_000


def check(graph: Graph, version: AgentVersion) -> Report:
    """The version checked as it is published."""
    return judge(graph, version.agent, version.declaration, EVERYTHING, LIMITS, jit.search, graph.revision)


def ours(family: Family) -> tuple[dict[str, Any], dict[int, list[int]], dict[int, float]]:
    """Figures, and by agent the lengths of the loops and the median seconds."""
    versions = list(family.versions())
    graph = Graph()
    load_s = timed(lambda: graph.load([columns_of(versions)]))
    index_s = timed(partial(check, graph, versions[0]))
    lengths, seconds, visits = {}, {}, []
    for agent in family.asked:
        report = check(graph, versions[agent])
        lengths[agent] = [loop.length for loop in report.loops if not loop.is_self]
        visits.append(report.visits or 0)
        seconds[agent] = statistics.median(timed(partial(check, graph, versions[agent])) for _ in range(ROUNDS))
    figures = {"load_s": round(load_s + index_s, 3), **spread(seconds.values()), "visits_median": statistics.median(visits)}
    return figures, lengths, seconds


def answers_of(name: str, edges: Path, agents: Path, limit_s: float) -> list[dict[str, Any]]:
    """What a peer printed within the limit."""
    command = [sys.executable, str(Path(__file__).with_name("peers.py")), name, str(edges), str(agents)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as process:
        stop = threading.Timer(limit_s, process.kill)
        stop.start()
        out, _ = process.communicate()
        stop.cancel()
    return [json.loads(line) for line in out.splitlines() if line.endswith("}")]


def compared(
    answered: list[dict[str, Any]], family: Family, lengths: dict[int, list[int]], seconds: dict[int, float], limit_s: float
) -> dict[str, Any]:
    """A peer's figures beside ours, over the questions that it answered. Ends the program where lengths differ."""
    if not answered:
        return {"finished": 0, "asked": len(family.asked), "told": f"did not finish loading in {limit_s:g} s"}
    head, *rows = answered
    for row in rows:
        # Only the lengths can be compared: among equals the peers have no order, or another.
        if row["lengths"] != lengths[row["agent"]]:
            sys.exit(f"{family.name}: agent {row['agent']}: {head['name']} found {row['lengths']}, ours {lengths[row['agent']]}")
    ratios = [row["seconds"] / seconds[row["agent"]] for row in rows]
    figures = {"name": head["name"], "load_s": round(head["load_s"], 3), "finished": len(rows), "asked": len(family.asked)}
    if len(rows) < len(family.asked):
        figures["told"] = f"did not finish in {limit_s:g} s"
    if rows:
        figures |= spread(row["seconds"] for row in rows)
        figures |= {"ratio_median": round(statistics.median(ratios), 2), "ratio_least": round(min(ratios), 2)}
    return figures


def measure(family: Family, limit_s: float) -> dict[str, Any]:
    """Ours and every peer on one graph."""
    figures, lengths, seconds = ours(family)
    edges = family.edges()
    row: dict[str, Any] = {
        "kind": family.kind,
        "agents": len(family.emits),
        "incidences": family.incidences,
        "pairs": len(edges),
        "ours": figures,
        "peers": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        edge_file, agent_file = Path(folder) / "edges.npy", Path(folder) / "agents.json"
        np.save(edge_file, np.array(edges, np.int64))
        agent_file.write_text(json.dumps(family.asked), encoding="utf-8")
        for name in PEERS:
            row["peers"][name] = compared(answers_of(name, edge_file, agent_file, limit_s), family, lengths, seconds, limit_s)
            print(f"{family.name}: {name}: {row['peers'][name]}", file=sys.stderr)
    return row


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    asked = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine(), "seed": asked.seed, "limit_s": asked.limit, "loops": MOST, "graphs": {}}
    for name, make in families(asked.samples, asked.seed).items():
        if not asked.only or name in asked.only:
            family = make()
            figures["graphs"][family.name] = measure(family, asked.limit)
    tell(figures)


if __name__ == "__main__":
    main()
