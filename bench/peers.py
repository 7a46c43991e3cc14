"""The same question put to other libraries: the ten shortest loops through an agent.

Each gets the graph of agents with the agent asked about split into where loops begin and where they end, in its own best form.
Only the search is timed. Run as a program, it is one peer on one graph, so that it can be stopped: `peers.py NAME EDGES AGENTS`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import networkx as nx
import numpy as np
from graphs import Edge

MOST = 10


class Peer(Protocol):
    """A library with the graph loaded."""

    name: str

    def asking(self, agent: int, most: int) -> Callable[[], list[int]]:
        """Make everything ready; the call then gives the lengths of the shortest loops of at least two agents."""


class Networkx:
    """`shortest_simple_paths` (Yen)."""

    name = f"networkx {nx.__version__} shortest_simple_paths"

    def __init__(self, edges: list[Edge]) -> None:
        self._graph = nx.DiGraph(edges)

    def asking(self, agent: int, most: int) -> Callable[[], list[int]]:
        """See Peer."""
        graph = nx.DiGraph(self._graph)
        graph.add_edges_from((source, "end") for source in self._graph.predecessors(agent) if source != agent)

        def search() -> list[int]:
            try:
                return [len(path) - 1 for path in islice(nx.shortest_simple_paths(graph, agent, "end"), most)]
            except (nx.NetworkXNoPath, nx.NodeNotFound):
                return []

        return search

    def loops(self, agent: int, most: int) -> list[int]:
        """Lengths of the shortest loops through an agent; the graph is left as it was."""
        graph = self._graph
        if agent not in graph:
            return []
        behind, ahead = list(graph.predecessors(agent)), list(graph.successors(agent))
        graph.remove_node(agent)
        graph.add_edges_from(("begin", target) for target in ahead)
        graph.add_edges_from((source, "end") for source in behind)
        try:
            if "begin" not in graph or "end" not in graph:
                return []
            return [len(path) - 1 for path in islice(nx.shortest_simple_paths(graph, "begin", "end"), most)]
        except nx.NetworkXNoPath:
            return []
        finally:
            graph.remove_nodes_from(["begin", "end"])
            graph.add_edges_from([(agent, target) for target in ahead] + [(source, agent) for source in behind])


class Igraph:
    """`get_k_shortest_paths` (Yen, in C)."""

    def __init__(self, edges: list[Edge]) -> None:
        igraph: Any = __import__("igraph")  # an extra that only benchmarks have
        self.name = f"igraph {igraph.__version__} get_k_shortest_paths"
        self._size = max(map(max, edges)) + 1
        self._graph = igraph.Graph(n=self._size, edges=edges, directed=True)

    def asking(self, agent: int, most: int) -> Callable[[], list[int]]:
        """See Peer."""
        graph = self._graph.copy()
        graph.add_vertices(1)
        graph.add_edges([(source, self._size) for source in self._graph.predecessors(agent) if source != agent])
        return lambda: [len(path) - 1 for path in graph.get_k_shortest_paths(agent, self._size, k=most)]


class Rustworkx:
    """`all_simple_paths`, ever longer until there are enough: it has neither an order nor a search for the k shortest."""

    def __init__(self, edges: list[Edge]) -> None:
        self._rustworkx: Any = __import__("rustworkx")
        self.name = f"rustworkx {self._rustworkx.__version__} all_simple_paths, deepened"
        self._size = max(map(max, edges)) + 1
        self._graph = self._rustworkx.PyDiGraph()
        self._graph.add_nodes_from(range(self._size))
        self._graph.add_edges_from_no_data(edges)

    def asking(self, agent: int, most: int) -> Callable[[], list[int]]:
        """See Peer."""
        graph = self._graph.copy()
        end = graph.add_node(self._size)
        graph.add_edges_from_no_data([(source, end) for source in self._graph.predecessor_indices(agent) if source != agent])

        def search() -> list[int]:
            found: list[int] = []
            reachable = end in self._rustworkx.descendants(graph, agent)
            for length in range(3, self._size + 2) if reachable else ():
                found = sorted(len(path) - 1 for path in self._rustworkx.digraph_all_simple_paths(graph, agent, end, cutoff=length))
                # All of at most length - 1 hops are there.
                if len(found) >= most:
                    return found[:most]
            return found

        return search


PEERS: dict[str, Callable[[list[Edge]], Peer]] = {"networkx": Networkx, "igraph": Igraph, "rustworkx": Rustworkx}


def main() -> None:
    """Print one JSON line when the graph is loaded, and one for each agent."""
    name, edges, agents = sys.argv[1:]
    start = time.perf_counter()
    peer = PEERS[name]([(source, target) for source, target in np.load(edges).tolist()])
    print(json.dumps({"name": peer.name, "load_s": time.perf_counter() - start}), flush=True)
    for agent in json.loads(Path(agents).read_text(encoding="utf-8")):
        search = peer.asking(agent, MOST)
        start = time.perf_counter()
        lengths = search()
        print(json.dumps({"agent": agent, "seconds": time.perf_counter() - start, "lengths": lengths}), flush=True)


if __name__ == "__main__":
    main()
