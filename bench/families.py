"""The graphs on which ours and the peers are asked: real ones, generated ones, and those that catch a search which wanders."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graphs import Edge, random_edges

from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.model import AgentVersion, Declaration, Emit
from graphsvc.domain.names import AgentRef, Scope

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL = (
    "bitcoin-alpha", "celegansneural", "email-Eu-core", "p2p-Gnutella04", "p2p-Gnutella08", "p2p-Gnutella24", "p2p-Gnutella31",
    "polblogs", "python311-stdlib-imports", "soc-Epinions1", "wiki-Vote",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Family:
    """A graph. emits, hears: per agent 0 …, its events. asked: agents whose loops are asked for."""

    name: str
    kind: str
    emits: list[list[int]]
    hears: list[list[int]]
    asked: list[int]

    @property
    def incidences(self) -> int:
        """How many there are."""
        return sum(map(len, self.emits)) + sum(map(len, self.hears))

    def edges(self) -> list[Edge]:
        """Which agent leads to which, own edges left out; what shares events becomes pairs."""
        listeners: defaultdict[int, list[int]] = defaultdict(list)
        for agent, events in enumerate(self.hears):
            for event in events:
                listeners[event].append(agent)
        found = {(agent, other) for agent, events in enumerate(self.emits) for event in events for other in listeners[event]}
        return sorted(edge for edge in found if edge[0] != edge[1])

    def version(self, agent: int) -> AgentVersion:
        """An agent in words; not checked, as some vertices of real graphs have more edges than a declaration may have events."""
        emits = tuple(Emit(event) for event in sorted(map(_event, self.emits[agent])))
        declaration = Declaration(emits, tuple(sorted(map(_event, self.hears[agent]))))
        return AgentVersion(AgentRef(Scope("acme", f"area-{agent % 50}"), f"agent-{agent:07}"), 1, declaration)

    def versions(self) -> Iterator[AgentVersion]:
        """All agents in words."""
        return map(self.version, range(len(self.emits)))


def _event(number: int) -> str:
    return f"event-{number:07}"


def of_edges(name: str, kind: str, edges: Iterable[Edge], asked: list[int]) -> Family:
    """A graph in which every agent emits one event, which starts all that its edges lead to."""
    every = sorted(set(edges))
    hears: list[list[int]] = [[] for _ in range(max(map(max, every)) + 1)]
    for source, target in every:
        hears[target].append(source)
    return Family(name=name, kind=kind, emits=[[agent] for agent in range(len(hears))], hears=hears, asked=asked)


def real(name: str, samples: int, rng: random.Random) -> Family:
    """A real graph, and vertices of it that lie on a loop."""
    (path,) = (DATA / "graphs").glob(f"{name}.edges*")
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        pairs = [line.split() for line in lines]
    numbers: dict[str, int] = {}
    edges = [(numbers.setdefault(source, len(numbers)), numbers.setdefault(target, len(numbers))) for source, target in pairs]
    rows = json.loads((DATA / "answers" / "graphs.json").read_text(encoding="utf-8"))[name]["rows"]
    looping = [numbers[vertex] for vertex, shortest, *_ in rows if shortest]
    return of_edges(name, "real", edges, rng.sample(looping, min(samples, len(looping))))


def generated(shape: Shape, agents: int, samples: int, rng: random.Random) -> Family:
    """A made catalogue, and agents of it at random."""
    made = generate(shape, agents, 1)
    emits, hears = ([row.tolist() for row in _split(made, side)] for side in ("emits", "hears"))
    return Family(
        name=f"{shape.value} {agents:,}", kind="generated", emits=emits, hears=hears, asked=rng.sample(range(agents), samples)
    )


def _split(made: object, side: str) -> list:  # type: ignore[type-arg]
    start, values = getattr(made, f"{side}_start"), getattr(made, side)
    return [values[first:end] for first, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]


def _diamonds(count: int, tail: bool) -> Family:
    """A loop of two, behind whose second agent a chain of diamonds leads back to that one, or, as a tail, nowhere."""
    edges, tip, free = [(0, 1), (1, 0)], 1, 2
    for _ in range(count):
        left, right, end = free, free + 1, free + 2
        edges += [(tip, left), (tip, right), (left, end), (right, end)]
        tip, free = end, free + 3
    name = f"{count} diamonds that lead " + ("nowhere" if tail else "back past the agent")
    return of_edges(name, "hostile", edges if tail else [*edges, (tip, 1)], [0])


def _crowds(layers: int, width: int, equal: bool) -> Family:
    """Layers, each of which starts all of the next over one event."""
    to_past, to_start = layers + 1, layers + 2
    # Equal: agent 0 feeds the first layer and hears the last. Otherwise agent 1 does, and is in a loop of two with agent 0.
    emits, hears = ([[0]], [[layers]]) if equal else ([[to_past], [to_start, 0]], [[to_start], [to_past, layers]])
    for layer in range(layers):
        emits += [[layer + 1] for _ in range(width)]
        hears += [[layer] for _ in range(width)]
    name = (
        f"{width}^{layers} equal loops" if equal else f"crowd of {'×'.join([str(width)] * layers)} that leads back past the agent"
    )
    return Family(name=name, kind="hostile", emits=emits, hears=hears, asked=[0])


def _ring(ring: int, region: int) -> Family:
    """A ring whose agents but the first lead into a region that leads back to the second alone."""
    rng = random.Random(1)
    edges = [(i, (i + 1) % ring) for i in range(ring)]
    edges += [(i, ring + rng.randrange(region)) for i in range(1, ring) for _ in range(3)]
    edges += [(ring + i, ring + rng.randrange(region)) for i in range(region) for _ in range(3)]
    edges += [(ring + i, 1) for i in range(region)]
    return of_edges(f"ring of {ring} beside a region of {region}", "hostile", (e for e in edges if e[0] != e[1]), [0])


def _hub(width: int) -> Family:
    """An event with so many emitters and listeners, and one listener that leads back to the agent asked about."""
    emits = [[0] for _ in range(width)] + [[1]] + [[] for _ in range(width - 1)]
    hears = [[1]] + [[] for _ in range(width - 1)] + [[0] for _ in range(width)]
    return Family(name=f"hub of {width:,} × {width:,}", kind="hostile", emits=emits, hears=hears, asked=[0])


def families(samples: int, seed: int) -> dict[str, Callable[[], Family]]:
    """All of them by name, each made when it is called."""
    makers: dict[str, Callable[[], Family]] = {}
    if DATA.is_dir():
        makers = {name: partial(real, name, samples, random.Random(seed)) for name in REAL}
    makers["random"] = lambda: of_edges(
        "random 100,000 of 2 edges",
        "generated",
        random_edges(100_000, 200_000, seed),
        random.Random(seed).sample(range(100_000), samples),
    )
    makers["giant"] = lambda: generated(Shape.GIANT, 100_000, samples, random.Random(seed))
    makers["tenant"] = lambda: generated(Shape.TENANT, 100_000, samples, random.Random(seed))
    makers["layered"] = lambda: generated(Shape.LAYERED, 10_000, samples, random.Random(seed))
    makers["diamonds-back"] = lambda: _diamonds(12, tail=False)
    makers["diamonds-tail"] = lambda: _diamonds(25, tail=True)
    makers["crowd-back"] = lambda: _crowds(3, 60, equal=False)
    makers["crowd-equal"] = lambda: _crowds(5, 40, equal=True)
    makers["ring"] = lambda: _ring(60, 500)
    makers["hub"] = lambda: _hub(1_000)
    return makers
