"""The fold of the log: who declares what, as numbers in flat arrays, and the two orders over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice
from threading import Lock
from typing import Self

import numpy as np
import numpy.typing as npt

from graphsvc.columns import Columns, Contract, Longs, columns_of
from graphsvc.domain.answers import Sizes
from graphsvc.domain.model import EntryKind, LogEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.notices import look_alike
from graphsvc.domain.redaction import Reader
from graphsvc.kernels.nodes import EVENT, UNKNOWN, Nodes
from graphsvc.kernels.order import Numbers
from graphsvc.kernels.places import Places
from graphsvc.kernels.replacing import differences
from graphsvc.kernels.rows import SIZE, Ints, Rows, longer
from graphsvc.store.port import SnapshotState

_BATCH = 20_000
_AT_ONCE = 1_000
NO_SCOPE = 2**31 - 1
_NO_CONTRACTS: dict[int, Contract] = {}


def _newest(nodes: Ints) -> Longs:
    """The place of each node's last appearance, ascending."""
    last = np.unique(nodes[::-1], return_index=True)[1]
    return np.sort(nodes.size - 1 - last)


class Fold:
    """The published versions at one revision of the log. Reading is safe while nobody applies entries."""

    def __init__(self) -> None:
        self.revision = 0
        self.rows = Rows()
        self._nodes = Nodes(look_alike)
        self._places = Places()
        self._numbers = Numbers()
        self._scopes: dict[Scope, int] = {}
        self._scope: list[Scope] = []
        self._rank: Ints = np.empty(0, np.int32)
        # By agent number: the published version, 0 for none, and the newest ever published.
        self._current: Ints = np.zeros(0, np.int32)
        self._last: Ints = np.zeros(0, np.int32)
        self._contracts: dict[int, dict[int, Contract]] = {}
        # The nodes of agents that changed since places and numbers were last brought up to the rows.
        self._unsettled: list[Ints] = []
        self._settling = Lock()
        self._readable = lru_cache(maxsize=256)(self._readable_scopes)

    # Folding

    def apply(self, entries: Iterable[LogEntry]) -> None:
        """Fold further entries of the log, in revision order."""
        entries, changed = iter(entries), []
        while batch := list(islice(entries, _BATCH)):
            current = [entry.number if entry.kind is EntryKind.PUBLISH else 0 for entry in batch]
            changed.append(self._fold(columns_of(batch), np.array(current, np.int32)))
            self.revision = batch[-1].revision
        self._settle(changed)

    def load(self, parts: Iterable[Columns]) -> None:
        """Fold publications that have the next revisions; one without a number is number 1 of its agent."""
        changed = []
        for part in parts:
            numbered = part._replace(numbers=np.maximum(part.numbers, 1))
            changed.append(self._fold(numbered, numbered.numbers))
            self.revision += part.size
        self._settle(changed)

    def _settle(self, changed: Sequence[Ints]) -> None:
        """Bring the orders up to the rows, of which these nodes have changed; after a large change, only when one is asked for.

        Bringing them up takes as long for a large change as for several of them, and much is loaded before anybody asks.
        """
        self._rank_scopes()
        self._unsettled.extend(changed)
        if sum(nodes.size for nodes in self._unsettled) <= _AT_ONCE:
            self._bring_up()

    def _bring_up(self) -> None:
        if not self._unsettled:
            return
        with self._settling:  # many may read at a time, and one of them does it for all
            if self._unsettled:
                self._places.settle(self._nodes, self._rank)
                changed = dict.fromkeys(chain.from_iterable(nodes.tolist() for nodes in self._unsettled))
                self._numbers.follow(self.rows, list(changed))
                self._unsettled = []

    def _rank_scopes(self) -> None:
        if len(self._rank) < len(self._scope):
            texts = [scope.text for scope in self._scope]
            self._rank = np.empty(len(texts), np.int32)
            self._rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts), dtype=np.int32)
            self._readable.cache_clear()

    def rebuild_index(self) -> None:
        """Number the graph anew, as finely as can be. Nobody may read meanwhile."""
        self._bring_up()
        self._numbers.rebuild(self.rows)

    def _fold(self, columns: Columns, current: Ints) -> Ints:
        """current: the number that is published then, 0 where an agent retires. Returns the nodes of the agents that changed."""
        known = self._nodes.count
        scopes = np.array([self._scope_number(scope) for scope in columns.scopes], np.int32)
        nodes = self._nodes.add_texts(scopes[columns.scope], *columns.names)
        if nodes.size > 1 and (newest := _newest(nodes)).size < nodes.size:
            columns, nodes, current = columns.taken(newest), nodes[newest], current[newest]
        events = self._nodes.add_texts(np.full(columns.events.ends.size, EVENT, np.int32), *columns.events)
        self.rows.add_nodes(self._nodes.count - self.rows.nodes)
        self._current, self._last = (longer(held, self._nodes.agents) for held in (self._current, self._last))
        agents = self._nodes.arrays.agent[nodes]
        self._current[agents], self._last[agents] = current, columns.numbers
        changes = differences(self.rows.ahead, self.rows.behind, nodes, nodes >= known, columns.emits, columns.ends, events)
        for incidences, present in zip(changes, (True, False), strict=True):
            self.rows.change(*incidences, present=present)
        self._declare(nodes, columns, events)
        return nodes

    def _declare(self, nodes: Ints, columns: Columns, events: Ints) -> None:
        """Note what the agents' events carry beside their names."""
        for node in nodes.tolist() if self._contracts else ():
            self._contracts.pop(node, None)
        if not columns.contracts:
            return
        places = np.fromiter(columns.contracts, np.int64, len(columns.contracts))
        emitters = nodes[np.searchsorted(columns.ends, places, side="right")]
        for node, event, contract in zip(emitters.tolist(), events[places].tolist(), columns.contracts.values(), strict=True):
            self._contracts.setdefault(node, {})[event] = contract

    def _scope_number(self, scope: Scope) -> int:
        number = self._scopes.get(scope)
        if number is None:
            number = self._scopes[scope] = len(self._scope)
            self._scope.append(scope)
        return number

    # Keeping

    def state(self) -> SnapshotState:
        """The graph as it is, for a snapshot. The arrays are views: nobody may apply entries while they are read."""
        self._bring_up()
        arrays = {
            **self._nodes.state(),
            **self.rows.state(),
            **self._places.state(),
            "numbers": self._numbers.of[: self.rows.nodes],
            "current": self._current[: self._nodes.agents],
            "last": self._last[: self._nodes.agents],
        }
        scopes = [list(scope) for scope in self._scope]
        return SnapshotState({"revision": self.revision, "scopes": scopes, "contracts": list(self._contracts.items())}, arrays)

    @classmethod
    def of_state(cls, state: SnapshotState) -> Self:
        """What a snapshot holds."""
        graph, arrays = cls(), state.arrays
        graph.revision = state.meta["revision"]
        for company, area in state.meta["scopes"]:
            graph._scope_number(Scope(company, area))
        graph._rank_scopes()
        graph._contracts = {
            node: {int(event): (context, tuple(artifacts)) for event, (context, artifacts) in contracts.items()}
            for node, contracts in state.meta["contracts"]
        }
        graph._nodes.restore(arrays)
        graph.rows.restore(arrays)
        graph._places.restore(arrays)
        graph._numbers.of = arrays["numbers"]
        graph._current, graph._last = arrays["current"], arrays["last"]
        return graph

    # Looking up

    def _find(self, agent: AgentRef) -> int:
        """The agent's node, or UNKNOWN."""
        return int(self._nodes.find([self._scopes.get(agent.scope, NO_SCOPE)], [agent.name])[0])

    def last_number(self, agent: AgentRef) -> int:
        """The newest number ever published of this agent, 0 for none."""
        return self.last_numbers([agent])[0]

    def last_numbers(self, agents: Sequence[AgentRef]) -> list[int]:
        """The newest number ever published of each of these agents, 0 for none."""
        scopes = [self._scopes.get(agent.scope, NO_SCOPE) for agent in agents]
        nodes = self._nodes.find(scopes, [agent.name for agent in agents])
        return (
            np.where(nodes == UNKNOWN, 0, self._last[self._nodes.arrays.agent[nodes]]).tolist()
            if self._last.size
            else [0] * len(agents)
        )

    def holds(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Whether each of these versions, no agent twice, is published as it stands here; without a number, under whichever."""
        if not self._nodes.agents:
            return np.zeros(columns.size, np.bool_)
        scopes = np.array([self._scopes.get(scope, NO_SCOPE) for scope in columns.scopes], np.int32)
        nodes = self._nodes.find_texts(scopes[columns.scope], *columns.names)
        current = np.where(nodes == UNKNOWN, 0, self._current[self._nodes.arrays.agent[nodes]])
        held: npt.NDArray[np.bool_] = (current > 0) & ((columns.numbers == 0) | (columns.numbers == current))
        for table, sizes in (
            (self.rows.ahead, columns.emits),
            (self.rows.behind, np.diff(columns.ends, prepend=0) - columns.emits),
        ):
            held &= table.heads[nodes, SIZE] == sizes
        asked = np.flatnonzero(held)
        held[asked] = self._declares(nodes[asked], columns.taken(asked))
        return held

    def _declares(self, nodes: Ints, columns: Columns) -> npt.NDArray[np.bool_]:
        """Whether each of these agents, whose numbers of events are right, declares just this."""
        events = self._nodes.find_texts(np.full(columns.events.ends.size, EVENT, np.int32), *columns.events)
        found = np.searchsorted(columns.ends, np.flatnonzero(events == UNKNOWN), side="right")
        events[events == UNKNOWN] = 0  # of an agent that is told apart by it; no event has this number, which is the first agent's
        come, _ = differences(
            self.rows.ahead, self.rows.behind, nodes, np.zeros(nodes.size, np.bool_), columns.emits, columns.ends, events
        )
        same: npt.NDArray[np.bool_] = ~(np.isin(nodes, come.sources) | np.isin(nodes, come.targets))
        same[found] = False
        stated: dict[int, dict[int, Contract]] = {}
        for place, contract in columns.contracts.items():
            stated.setdefault(int(nodes[np.searchsorted(columns.ends, place, side="right")]), {})[int(events[place])] = contract
        if stated or self._contracts:
            pairs = ((self._contracts.get(node, _NO_CONTRACTS), stated.get(node, _NO_CONTRACTS)) for node in nodes.tolist())
            same &= np.fromiter((held == declared for held, declared in pairs), np.bool_, nodes.size)
        return same

    def sizes(self) -> Sizes:
        """The sizes of the published graph."""
        nodes = self.rows.nodes
        used = (self.rows.ahead.heads[:nodes, SIZE] > 0) | (self.rows.behind.heads[:nodes, SIZE] > 0)
        events = int(np.count_nonzero(used & (self._nodes.arrays.agent[:nodes] == EVENT)))
        return Sizes(int(np.count_nonzero(self._current)), events, self.rows.incidences)

    def _readable_scopes(self, reader: Reader) -> npt.NDArray[np.bool_]:
        return np.array([reader.may_read(scope) for scope in self._scope] or [False])
