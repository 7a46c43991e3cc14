"""How cost grows with the graph: loading, memory, checks and publications on a tenant's catalogue of 10⁴ incidences and ten times
as many again and again, and one event with ever more emitters and listeners.

Each size is a process of its own, so that its memory is its own. `python bench/bench_growth.py --up-to 10000000` takes minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench_large import check, snapshot, weights
from measuring import clocked, machine, spread, tail, tell, timed

from graphsvc.columns import columns_of
from graphsvc.declarations.bulk import read_columns
from graphsvc.declarations.files import write_file
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.model import AgentVersion, Declaration, Emit, EntryKind, LogEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.graph import Graph

UNCHANGED, LATER, CLOSING = "unchanged", "a trigger from a later layer", "a trigger that closes a loop"
KINDS = (UNCHANGED, LATER, CLOSING)
PROPOSALS = 3_000
_AHEAD = 4


def _ahead(graph: Graph, version: AgentVersion, steps: int, rng: random.Random) -> AgentVersion:
    """An agent so many steps ahead at random, or as far as it goes."""
    for _ in range(steps):
        heard = [agent for emit in version.declaration.emits for agent in graph.listeners(emit.event, EVERYTHING)]
        found = graph.published(rng.choice(heard)) if heard else None
        if found is None:
            return version
        version = found
    return version


def _with_trigger(version: AgentVersion, other: AgentVersion, rng: random.Random) -> Declaration:
    emits, listens = version.declaration.emits, version.declaration.listens
    events = [emit.event for emit in other.declaration.emits]
    return Declaration(emits, tuple(sorted({*listens, rng.choice(events)})) if events else listens)


def proposals(graph: Graph, count: int, seed: int) -> dict[str, list[AgentVersion]]:
    """New versions by seed: a third as they are, a third that also hear an event of an agent that comes later by name and that they
    do not lead to in a step, a third that also hear one of an agent that they lead to."""
    rng = random.Random(seed)
    agents = graph.agents()
    found: dict[str, list[AgentVersion]] = {kind: [] for kind in KINDS}
    while min(map(len, found.values())) < count // len(KINDS):
        node, number = rng.choice(agents)
        version, other = graph.version_at(node, number), graph.version_at(*rng.choice(agents))
        assert version is not None
        assert other is not None
        for kind, declaration in (
            (UNCHANGED, version.declaration),
            (LATER, _with_trigger(version, _ahead(graph, other, _AHEAD, rng), rng)),
            (CLOSING, _with_trigger(version, _ahead(graph, version, _AHEAD, rng), rng)),
        ):
            found[kind].append(AgentVersion(version.agent, number + 1, declaration))
    return found


def asked_and_published(graph: Graph, seed: int) -> dict[str, Any]:
    """Times of checks and of publications with their report, apart by what is proposed."""
    made = proposals(graph, PROPOSALS, seed)
    for version in made[UNCHANGED][:20]:
        check(graph, version)
    checks = {kind: [timed(partial(check, graph, version)) for version in versions] for kind, versions in made.items()}
    publications: dict[str, list[float]] = {kind: [] for kind in KINDS}
    at_work = []
    for kind, version in (
        (kind, version) for group in zip(*made.values(), strict=True) for kind, version in zip(KINDS, group, strict=True)
    ):
        entry = LogEntry(graph.revision + 1, EntryKind.PUBLISH, version.agent, version.number, version.declaration)

        def publish(entry: LogEntry = entry, version: AgentVersion = version) -> None:
            check(graph, version)
            graph.apply([entry])

        wall_s, cpu_s = clocked(publish)
        publications[kind].append(wall_s)
        at_work.append(cpu_s)
    figures: dict[str, Any] = {}
    for name, times in (("checks", checks), ("publications", publications)):
        every = [one for listed in times.values() for one in listed]
        figures[name] = {kind: spread(listed) for kind, listed in times.items()}
        figures[f"{name}_a_second"] = round(len(every) / sum(every))
    figures["publications_a_cpu_second"] = round(len(at_work) / sum(at_work))
    figures["publications_cpu"] = tail(at_work)
    return figures


def catalogue(incidences: int, seed: int) -> dict[str, Any]:
    """A tenant's catalogue of about so many incidences."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "catalogue.parquet")
        write_file(path, generate(Shape.TENANT, max(2, incidences // 3), 1).versions())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        list(read_columns([path])) if incidences <= 10_000 else None  # the smallest has no time to make up for compiling
        graph = Graph()
        cpu_s = time.process_time()
        load_s = timed(lambda: graph.load(read_columns([path])))
        cpu_s = time.process_time() - cpu_s  # what another user of the machine takes away does not count in this one
        index_s = timed(graph.agents)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        figures = {
            "incidences": graph.rows.incidences,
            "agents": graph.sizes().agents,
            "parquet_mib": round(Path(path).stat().st_size / 2**20, 1),
            "from_parquet_s": round(load_s, 3),
            "from_parquet_cpu_s": round(cpu_s, 3),
            "index_s": round(index_s, 3),
            "memory_before_mib": round(before / 1024),
            "peak_memory_mib": round(peak / 1024),
            "memory": {name: round(value, 2) for name, value in weights(graph).items()},
            "snapshot": {name: round(value, 3) for name, value in snapshot(graph).items()},
        }
    return figures | asked_and_published(graph, seed)


def hub(width: int, _: int) -> dict[str, Any]:
    """One event with so many emitters and listeners; one of the listeners leads back to the agent asked about."""
    area = Scope("acme", "hub")
    senders = [
        AgentVersion(AgentRef(area, f"sender-{i:06}"), 1, Declaration((Emit("news"),), ("back",) * (i == 0))) for i in range(width)
    ]
    hearers = [
        AgentVersion(AgentRef(area, f"hearer-{i:06}"), 1, Declaration((Emit("back"),) * (i == width - 1), ("news",)))
        for i in range(width)
    ]
    graph = Graph()
    load_s = timed(lambda: graph.load([columns_of([*senders, *hearers])]))
    report = check(graph, senders[0])
    assert len(report.loops) == 1
    walls, at_work = zip(*(clocked(partial(check, graph, senders[0])) for _ in range(51)), strict=True)
    return {
        "incidences": graph.rows.incidences,
        "load_s": round(load_s, 3),
        "visits": report.visits,
        **spread(walls),
        "cpu_median_us": round(statistics.median(at_work) * 1e6, 1),
        "bytes": sum(array.nbytes for array in graph.state().arrays.values()),
    }


PARTS: dict[str, Callable[[int, int], dict[str, Any]]] = {"catalogue": catalogue, "hub": hub}


def apart(part: str, size: int, seed: int) -> dict[str, Any]:
    """One size in a process of its own."""
    command = [sys.executable, __file__, "--part", part, "--size", str(size), "--seed", str(seed)]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    figures: dict[str, Any] = json.loads(done.stdout)
    print(f"{part} of {size}: measured", file=sys.stderr)
    return figures


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--up-to", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=PARTS, help="measure one size only; for this program's own use")
    parser.add_argument("--size", type=int, default=10_000)
    asked = parser.parse_args()
    if asked.part:
        tell(PARTS[asked.part](asked.size, asked.seed))
        return
    sizes = [size for size in (10**4, 10**5, 10**6, 10**7) if size <= asked.up_to]
    widths = [12_500, 25_000, 50_000, 100_000]
    tell(
        {
            "machine": machine(),
            "seed": asked.seed,
            "catalogues": [apart("catalogue", size, asked.seed) for size in sizes],
            "hubs": [{"width": width, **apart("hub", width, asked.seed)} for width in widths],
        }
    )


if __name__ == "__main__":
    main()
