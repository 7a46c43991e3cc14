"""Large graphs in process: what they weigh, how they start, and how quickly they are asked and changed.

Run with `make bench`, or `python bench/bench_large.py --incidences 10000000`. Three graphs of about so many incidences each: layers
without a loop, one giant component, and the catalogue of a tenant. Times are medians and 99th percentiles of single calls.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from measuring import machine

from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, Emit, EntryKind, LogEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.domain.report import Report
from graphsvc.graph import Graph
from graphsvc.judge import judge
from graphsvc.kernels import jit
from graphsvc.store.snapshot import FileSnapshot

LAYERS = 50
LIMITS = Limits(max_loops=10)


def layers(width: int, rng: random.Random) -> Iterator[AgentVersion]:
    """Every agent hears four events of the layer before and emits two: nothing leads back."""
    for layer in range(LAYERS):
        for place in range(width):
            heard = {f"e{layer - 1}-{rng.randrange(width)}-{rng.randrange(2)}" for _ in range(4)} if layer else set()
            emits = tuple(Emit(f"e{layer}-{place}-{which}") for which in range(2))
            yield AgentVersion(AgentRef(Scope("acme", f"layer-{layer}"), f"a{place}"), 1, Declaration(emits, tuple(sorted(heard))))


def folded(versions: Iterable[AgentVersion]) -> tuple[Graph, float]:
    """The graph of these versions, and the seconds that folding them took, their making included."""
    graph, start = Graph(), time.perf_counter()
    graph.apply(
        LogEntry(revision, EntryKind.PUBLISH, version.agent, version.number or 1, version.declaration)
        for revision, version in enumerate(versions, start=1)
    )
    return graph, time.perf_counter() - start


def weights(graph: Graph) -> dict[str, float]:
    """Bytes by what they are for, as long as what they hold; a growing array has up to an eighth more, a small one a half."""
    held = {name: array.nbytes for name, array in graph.state().arrays.items()}
    sizes = graph.sizes()
    nodes = graph.rows.nodes
    names = held["start"] + held["slots"] + held["look"] + held["look_slots"]
    marks = nodes  # a byte of scratch for each, kept by the index once it has had to put a number right
    node = held["ahead_heads"] + held["behind_heads"] + held["agent"] + held["numbers"] + marks
    agent = sum(held[name] for name in ("scope", "node", "current", "last", "place", "sorted", "late"))
    return {
        "bytes_an_incidence": (held["ahead_data"] + held["behind_data"]) / sizes.incidences,
        "bytes_an_event": node / nodes,
        "bytes_an_agent": node / nodes + agent / sizes.agents,
        "bytes_a_name_beyond_its_text": names / nodes,
        "bytes_of_text_a_name": held["text"] / nodes,
        "scratch_bytes_a_node_of_one_search": 8 * 4 + 5 * 2 * 4,
    }


def snapshot(graph: Graph) -> dict[str, float]:
    """Seconds to keep the graph in a file, and to have it back."""
    with tempfile.TemporaryDirectory() as folder:
        file = FileSnapshot(Path(folder) / "graph")
        saved = timed(lambda: file.save(graph.state()))
        start = time.perf_counter()
        state = file.load()
        assert state is not None
        again = Graph.of_state(state)
        loaded = time.perf_counter() - start
        assert again.sizes() == graph.sizes()
        return {"save_s": saved, "load_s": loaded, "file_mib": (Path(folder) / "graph").stat().st_size / 2**20}


def timed(act: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def check(graph: Graph, version: AgentVersion) -> Report:
    """The version checked as it is published."""
    return judge(graph, version.agent, version.declaration, EVERYTHING, LIMITS, jit.search, graph.revision)


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile in microseconds."""
    ordered = sorted(seconds)
    return {"median_us": statistics.median(ordered) * 1e6, "p99_us": ordered[int(len(ordered) * 0.99)] * 1e6}


def layered(incidences: int, rng: random.Random) -> dict[str, object]:
    """Agents of the middle layers: with the index, and what a search alone would visit."""
    width = incidences // (LAYERS * 6)
    graph, seconds = folded(layers(width, rng))
    asked = [AgentRef(Scope("acme", f"layer-{rng.randrange(20, 30)}"), f"a{rng.randrange(width)}") for _ in range(500)]
    versions = [version for ref in asked if (version := graph.published(ref))]
    times = []
    for version in versions:
        times.append(timed(partial(check, graph, version)))
        assert check(graph, version).proof
    endless = Limits(max_loops=10, max_visits=10**12)
    visits = [jit.search(graph.question(v.agent, v.declaration, EVERYTHING, endless)).visits for v in versions[:50]]
    return {
        "incidences": graph.rows.incidences,
        "fold_s": seconds,
        "rebuild_index_s": timed(graph.rebuild_index),
        "check_with_index": spread(times),
        "visits_without_index_median": statistics.median(visits),
        "memory": weights(graph),
        "snapshot": snapshot(graph),
    }


def giant(incidences: int, rng: random.Random) -> dict[str, object]:
    """Ten loops through random agents of a giant component."""
    graph, seconds = folded(generate(Shape.GIANT, incidences // 3, 1).versions())
    listed = graph.agents()
    times = []
    for node, number in rng.sample(listed, 300):
        version = graph.version_at(node, number)
        assert version is not None
        times.append(timed(partial(check, graph, version)))
    return {"agents": len(listed), "incidences": graph.rows.incidences, "fold_s": seconds, "ten_loops": spread(times)}


def tenant(incidences: int, rng: random.Random) -> dict[str, object]:
    """Publications that replace a version: a third unchanged, a third with one more trigger, a third that closes a loop."""
    graph, seconds = folded(generate(Shape.TENANT, incidences // 3, 1).versions())
    listed = graph.agents()
    times: dict[str, list[float]] = {"unchanged": [], "one more trigger": [], "closes a loop": []}
    for turn, (node, _) in enumerate(rng.sample(listed, 900)):
        version = graph.version_at(node, graph.last_number(graph.agent_at(node)))
        other = graph.version_at(*rng.choice(listed))
        if version is None or other is None:
            continue
        emits, listens = version.declaration.emits, version.declaration.listens
        kind = list(times)[turn % 3]
        if kind == "one more trigger":
            listens = tuple(sorted({*listens, *(emit.event for emit in other.declaration.emits[:1])}))
        if kind == "closes a loop":
            heard = next((agent for emit in emits for agent in graph.listeners(emit.event, EVERYTHING)), None)
            back = heard and graph.published(heard)
            listens = tuple(sorted({*listens, *(emit.event for emit in back.declaration.emits[:1])})) if back else listens
        declared = Declaration(emits, listens)
        entry = LogEntry(graph.revision + 1, EntryKind.PUBLISH, version.agent, version.number + 1, declared)

        def publish(entry: LogEntry = entry) -> None:
            judge(graph, entry.agent, entry.declaration, EVERYTHING, LIMITS, jit.search, entry.revision)
            graph.apply([entry])

        times[kind].append(timed(publish))
    everything = [one for listed_times in times.values() for one in listed_times]
    return {
        "agents": len(listed),
        "incidences": graph.rows.incidences,
        "fold_s": seconds,
        "publications": {kind: spread(one) for kind, one in times.items()},
        "publications_a_second": len(everything) / sum(everything),
    }


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--incidences", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    figures: dict[str, object] = {"machine": machine(), "seed": asked.seed}
    for graph in (layered, giant, tenant):
        figures[graph.__name__] = graph(asked.incidences, random.Random(asked.seed))
        print(f"{graph.__name__} measured", file=sys.stderr)
    figures["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(figures, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
