"""The graph in memory: a fold of the log. It turns words into the numbers that the kernels walk, and numbers back into words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from graphsvc.columns import BARE, Columns, Contract, Longs, columns_of
from graphsvc.domain.answers import Sizes
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, Emit, EntryKind, LogEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.notices import look_alike
from graphsvc.domain.redaction import Reader
from graphsvc.domain.report import Hop
from graphsvc.kernels.nodes import EVENT, UNKNOWN, Nodes
from graphsvc.kernels.order import Numbers
from graphsvc.kernels.places import Places
from graphsvc.kernels.replacing import differences
from graphsvc.kernels.rows import COMPLETE, NOT_VERIFIED, SIZE, Answer, Ints, Order, Question, Rows, Table, longer, others
from graphsvc.store.port import SnapshotState

Kernel = Callable[[Question], Answer]

_BATCH = 20_000
_MOST_REMEMBERED = 65_536
_NO_SCOPE = 2**31 - 1

Ends = tuple[int, int]
_T = TypeVar("_T")
_NO_CONTRACTS: dict[int, Contract] = {}


def _newest(nodes: Ints) -> Longs:
    """The place of each node's last appearance, ascending."""
    last = np.unique(nodes[::-1], return_index=True)[1]
    return np.sort(nodes.size - 1 - last)


def _contracts(events: Sequence[int], declaration: Declaration) -> dict[int, Contract]:
    """The contracts of those of its emitted events that say more than a name, by the events' numbers."""
    return {
        event: (emit.context, emit.artifacts)
        for event, emit in zip(events, declaration.emits, strict=True)
        if emit.context is not None or emit.artifacts
    }


class Found(NamedTuple):
    """What a search came to. loops: the numbers of their agents, the one asked about first; steps: the two ends of each hop.

    agents: each of them by number, None for one that the reader may not read. hops: by their ends, as whoever reads everything sees
    them. guarded: the ends of those whose every event names artifacts that listeners may ask for. heard, fed: of each event emitted
    and of each heard, whether somebody else whom the reader may read hears or emits it. ended: see `kernels.rows`. visits: spent,
    None where the index proved that there is nothing to find.
    """

    loops: list[tuple[int, ...]]
    steps: list[list[Ends]]
    agents: dict[int, AgentRef | None]
    hops: dict[Ends, Hop]
    guarded: set[Ends]
    heard: list[bool]
    fed: list[bool]
    ended: int
    visits: int | None


class _Remembered(dict[int, _T]):
    """What numbers stand for, made when it is asked for first; all of it is forgotten when it has become too much.

    A dictionary, because looking up a hundred numbers of a report in it takes a fraction of what `lru_cache` takes, which keeps an
    order that nobody needs here.
    """

    def __init__(self, make: Callable[[int], _T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> _T:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        made = self[number] = self._make(number)
        return made


class Graph:
    """Who emits what and who is started by what, at one revision of the log. Reading is safe while nobody applies entries.

    Agents and events are numbers in flat arrays, names are UTF-8: a graph of millions fits where objects would not.
    """

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
        self._readable = lru_cache(maxsize=256)(self._readable_scopes)
        # What a number stands for never changes.
        self._event = _Remembered(self._nodes.name)
        self._agent = _Remembered(self._agent_at)
        self._single = _Remembered(self._single_hop)

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
        """Bring the orders up to the rows, of which these nodes have changed."""
        self._rank_scopes()
        self._places.settle(self._nodes, self._rank)
        self._numbers.follow(self.rows, list(dict.fromkeys(chain.from_iterable(nodes.tolist() for nodes in changed))))

    def _rank_scopes(self) -> None:
        if len(self._rank) < len(self._scope):
            texts = [scope.text for scope in self._scope]
            self._rank = np.empty(len(texts), np.int32)
            self._rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts), dtype=np.int32)
            self._readable.cache_clear()

    def rebuild_index(self) -> None:
        """Number the graph anew, as finely as can be. Nobody may read meanwhile."""
        self._numbers.rebuild(self.rows)

    def _fold(self, columns: Columns, current: Ints) -> Ints:
        """current: the number that is published then, 0 where an agent retires. Returns the nodes of the agents that changed."""
        known = self._nodes.count
        scopes = np.array([self._scope_number(scope) for scope in columns.scopes], np.int32)
        nodes = self._nodes.add_texts(scopes[columns.scope], *columns.names)
        newest = _newest(nodes)
        if newest.size < nodes.size:
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
    def of_state(cls, state: SnapshotState) -> Graph:
        """The graph that a snapshot holds."""
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

    # Asking

    def _find(self, agent: AgentRef) -> int:
        """The agent's node, or UNKNOWN."""
        return int(self._nodes.find([self._scopes.get(agent.scope, _NO_SCOPE)], [agent.name])[0])

    def agents_named(self, name: str) -> list[AgentRef]:
        """The agents of this name in all scopes, by the scope's text."""
        nodes = self._nodes.find(range(len(self._scope)), [name] * len(self._scope))
        return sorted((self._agent[node] for node in nodes.tolist() if node != UNKNOWN), key=lambda agent: agent.scope.text)

    def _agent_at(self, node: int) -> AgentRef:
        arrays = self._nodes.arrays
        return AgentRef(self._scope[arrays.scope[arrays.agent[node]]], self._nodes.name(node))

    def _single_hop(self, event: int) -> Hop:
        return Hop((self._event[event],))

    def published(self, agent: AgentRef) -> AgentVersion | None:
        """The agent's published version, or None."""
        node = self._find(agent)
        return None if node == UNKNOWN else self._version(node)

    def _version(self, node: int) -> AgentVersion | None:
        number = int(self._current[self._nodes.arrays.agent[node]])
        if number == 0:
            return None
        contracts = self._contracts.get(node, {})
        emits = [Emit(self._event[event], *contracts.get(event, BARE)) for event in self.rows.ahead.row(node).tolist()]
        listens = sorted(map(self._event.__getitem__, self.rows.behind.row(node).tolist()))
        return AgentVersion(
            self._agent[node], number, Declaration(tuple(sorted(emits, key=lambda emit: emit.event)), tuple(listens))
        )

    def last_number(self, agent: AgentRef) -> int:
        """The newest number ever published of this agent, 0 for none."""
        return self.last_numbers([agent])[0]

    def last_numbers(self, agents: Sequence[AgentRef]) -> list[int]:
        """The newest number ever published of each of these agents, 0 for none."""
        scopes = [self._scopes.get(agent.scope, _NO_SCOPE) for agent in agents]
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
        scopes = np.array([self._scopes.get(scope, _NO_SCOPE) for scope in columns.scopes], np.int32)
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

    def agents(self) -> list[tuple[int, int]]:
        """The node and the number of every published version, by the agent's name, then scope."""
        arrays = self._nodes.arrays
        ordered = np.fromiter(self._places, np.int64)
        ordered = ordered[self._current[ordered] > 0]
        return list(zip(arrays.node[ordered].tolist(), self._current[ordered].tolist(), strict=True))

    def version_at(self, node: int, number: int) -> AgentVersion | None:
        """The version of this node, if it is still the published one."""
        version = self._version(node)
        return version if version and version.number == number else None

    def agent_at(self, node: int) -> AgentRef:
        """The agent of this node."""
        return self._agent[node]

    def versions(self) -> list[AgentVersion]:
        """Every published version, by name, then scope."""
        return [version for node, _ in self.agents() if (version := self._version(node))]

    def sizes(self) -> Sizes:
        """The sizes of the published graph."""
        nodes = self.rows.nodes
        used = (self.rows.ahead.heads[:nodes, SIZE] > 0) | (self.rows.behind.heads[:nodes, SIZE] > 0)
        events = int(np.count_nonzero(used & (self._nodes.arrays.agent[:nodes] == EVENT)))
        return Sizes(int(np.count_nonzero(self._current)), events, self.rows.incidences)

    def question(self, agent: AgentRef, declaration: Declaration, reader: Reader, limits: Limits) -> Question:
        """What a kernel is asked: the agent with this declaration, everybody else as published (G-3)."""
        first_free = self._nodes.count
        names = [*(emit.event for emit in declaration.emits), *declaration.listens]
        scopes = [self._scopes.get(agent.scope, _NO_SCOPE), *[EVENT] * len(names)]
        node, *found = self._nodes.find(scopes, [agent.name, *names]).tolist()
        # Events that the graph does not have take the numbers after its nodes and after a root that it does not have either.
        unknown: dict[str, int] = {}
        numbers = [
            unknown.setdefault(name, first_free + 1 + len(unknown)) if event == UNKNOWN else event
            for name, event in zip(names, found, strict=True)
        ]
        arrays = self._nodes.arrays
        return Question(
            rows=self.rows,
            order=Order(arrays.agent, self._places.number, arrays.scope, self._readable(reader)),
            root=first_free if node == UNKNOWN else node,
            emits=numbers[: len(declaration.emits)],
            hears=numbers[len(declaration.emits) :],
            max_loops=limits.max_loops,
            max_visits=limits.max_visits,
        )

    def search(self, agent: AgentRef, declaration: Declaration, reader: Reader, limits: Limits, kernel: Kernel) -> Found:
        """The loops that an agent would lie on with this declaration, everybody else as published (G-3), in the reader's order.

        The index is asked before the search, and again where the visits were spent without a loop.
        """
        question = self.question(agent, declaration, reader, limits)
        loops, ended, visits = self._walked(question, kernel)
        steps = [list(zip(loop, loop[1:] + loop[:1], strict=True)) for loop in loops]
        hops, guarded = self._hops(question, declaration, list(set(chain.from_iterable(steps))))
        agents = self._named(set(chain.from_iterable(loops)), question.order.readable)
        agents[question.root] = agent
        heard, fed = (
            self._others(self.rows.ahead, question.emits, question),
            self._others(self.rows.behind, question.hears, question),
        )
        return Found(loops, steps, agents, hops, guarded, heard, fed, ended, visits)

    def _walked(self, question: Question, kernel: Kernel) -> tuple[list[tuple[int, ...]], int, int | None]:
        if not self._numbers.closes_nothing(question):
            answer = kernel(question)
            if answer.ended != NOT_VERIFIED or not self._numbers.leads_nowhere(question):
                return answer
        return [], COMPLETE, None

    def _others(self, table: Table, events: Sequence[int], question: Question) -> list[bool]:
        """Whether each event has a readable agent other than the root in its row."""
        order = question.order
        return others(
            table, self.rows.nodes, np.array(events, np.int32), question.root, order.agent, order.scope, order.readable
        ).tolist()

    def _named(self, nodes: set[int], readable: npt.NDArray[np.bool_]) -> dict[int, AgentRef | None]:
        listed = [node for node in nodes if node < self.rows.nodes]  # a root that the graph does not have is named by its asker
        if readable.all():
            return dict(zip(listed, map(self._agent.__getitem__, listed), strict=True))
        arrays = self._nodes.arrays
        seen = readable[arrays.scope[arrays.agent[listed]]].tolist() if listed else []
        return {node: self._agent[node] if may else None for node, may in zip(listed, seen, strict=True)}

    def _hops(self, question: Question, declaration: Declaration, pairs: list[Ends]) -> tuple[dict[Ends, Hop], set[Ends]]:
        if not pairs:
            return {}, set()
        events, ends = self.rows.shared(question.root, question.emits, question.hears, pairs)
        own = _contracts(question.emits, declaration)
        guarded = set(self._guarded(pairs, events, ends, question.root, own)) if own or self._contracts else set()
        if len(events) == len(pairs):  # one for each, which is the usual case
            return dict(zip(pairs, map(self._single.__getitem__, events), strict=True)), guarded
        names = list(map(self._event.__getitem__, events))
        firsts = (0, *ends)
        return {pair: Hop(tuple(sorted(names[first:end]))) for pair, first, end in zip(pairs, firsts, ends, strict=False)}, guarded

    def _guarded(
        self, pairs: list[Ends], events: list[int], ends: list[int], root: int, own: dict[int, Contract]
    ) -> Iterator[Ends]:
        for pair, first, end in zip(pairs, (0, *ends), ends, strict=False):
            contracts = own if pair[0] == root else self._contracts.get(pair[0])
            if contracts and all(contracts.get(event, BARE)[1] for event in events[first:end]):
                yield pair

    def emitters(self, event: str, reader: Reader) -> Iterator[AgentRef]:
        """Published agents that emit this event and that the reader may read."""
        return self._ends(self.rows.behind, event, reader)

    def listeners(self, event: str, reader: Reader) -> Iterator[AgentRef]:
        """Published agents that this event starts and that the reader may read."""
        return self._ends(self.rows.ahead, event, reader)

    def _ends(self, table: Table, event: str, reader: Reader) -> Iterator[AgentRef]:
        node = int(self._nodes.find([EVENT], [event])[0])
        if node == UNKNOWN:
            return
        row, arrays = table.row(node), self._nodes.arrays
        for agent in row[self._readable(reader)[arrays.scope[arrays.agent[row]]]]:
            yield self._agent[int(agent)]

    def alike(self, event: str) -> list[str]:
        """Other events with a name like this one, in name order, whoever may know of them."""
        return sorted(name for name in self._nodes.alike(event) if name != event)

    def _readable_scopes(self, reader: Reader) -> npt.NDArray[np.bool_]:
        return np.array([reader.may_read(scope) for scope in self._scope] or [False])
