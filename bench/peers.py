"""The same question put to other libraries."""

from __future__ import annotations

from itertools import islice

import networkx as nx
from graphs import Edge


class Networkx:
    """Ten shortest loops through an agent by `shortest_simple_paths` (Yen), the agent split into where loops begin and end."""

    name = f"networkx {nx.__version__} shortest_simple_paths"

    def __init__(self, edges: list[Edge]) -> None:
        self._graph = nx.DiGraph(edges)

    def loops(self, agent: int, most: int) -> list[int]:
        """Lengths of the shortest loops through an agent."""
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
