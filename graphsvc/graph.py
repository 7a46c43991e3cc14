"""The graph in memory: a fold of the log. It turns words into the numbers that the kernels walk, and numbers back into words."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphsvc.domain.answers import Sizes
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, EntryKind, LogEntry
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.notices import look_alike
from graphsvc.domain.redaction import Reader
from graphsvc.kernels.rows import SIZE, Answer, Order, Question, Rows, Table

Kernel = Callable[[Question], Answer]

_NOTHING = Declaration()
_WIDEST = 1 << 61


class Found(NamedTuple):
    """What a search came to. loops: the numbers of their agents, the one asked about first. versions: of every agent on a loop.
    hidden: those whom the reader may not read. ended: see `kernels.rows`. visits: spent."""

    loops: list[tuple[int, ...]]
    versions: dict[int, AgentVersion]
    hidden: frozenset[int]
    ended: int
    visits: int


class _Places:
    """A number for every agent that grows in name order and rarely changes: new agents get one between their neighbours' (G-5)."""

    def __init__(self) -> None:
        self.number = np.zeros(64, np.int64)
        self._order: list[tuple[str, str, int]] = []

    def add(self, agents: list[tuple[str, str, int]], nodes: int) -> None:
        """agents: (name, scope text, node) of new agents. nodes: how many nodes there are now."""
        if nodes > self.number.size:
            self.number = np.concatenate([self.number, np.zeros(nodes * 3 // 2 - self.number.size, np.int64)])
        if len(agents) > 64 + len(self._order) // 64:
            self._order += agents
            self._order.sort()
            self._spread()
            return
        for agent in agents:
            at = bisect_left(self._order, agent)
            low = int(self.number[self._order[at - 1][2]]) if at else 0
            high = int(self.number[self._order[at][2]]) if at < len(self._order) else _WIDEST
            self._order.insert(at, agent)
            self.number[agent[2]] = (low + high) // 2
            if high - low < 2:
                self._spread()

    def _spread(self) -> None:
        gap = _WIDEST // (len(self._order) + 1)
        self.number[[node for _, _, node in self._order]] = np.arange(1, len(self._order) + 1, dtype=np.int64) * gap

    def __iter__(self) -> Iterator[int]:
        return (node for _, _, node in self._order)


class Graph:
    """Who emits what and who is started by what, at one revision of the log. Reading is safe while nobody applies entries."""

    def __init__(self) -> None:
        self.revision = 0
        self.rows = Rows()
        self._names: list[AgentRef | str] = []
        self._agents: dict[AgentRef, int] = {}
        self._events: dict[str, int] = {}
        self._scopes: dict[Scope, int] = {}
        self._scope = np.full(64, -1, np.int32)
        self._places = _Places()
        self._current: dict[int, AgentVersion] = {}  # by agent node, published agents only
        self._last: dict[int, int] = {}  # the newest number ever published, by agent node
        self._alike: defaultdict[str, list[str]] = defaultdict(list)
        self._readable = lru_cache(maxsize=256)(self._readable_scopes)

    # Folding

    def apply(self, entries: Iterable[LogEntry]) -> None:
        """Fold further entries of the log, in revision order."""
        before: dict[int, Declaration] = {}
        fresh: list[tuple[str, str, int]] = []
        agents, current, last = self._agents, self._current, self._last
        for entry in entries:
            ref = entry.agent
            agent = agents.get(ref)
            if agent is None:
                agent = agents[ref] = self._add(ref, self._scope_number(ref.scope))
                fresh.append((ref.name, ref.scope.text, agent))
                before[agent] = _NOTHING
            elif agent not in before:
                before[agent] = self._declared(agent)
            if entry.kind is EntryKind.PUBLISH:
                current[agent] = AgentVersion(ref, entry.number, entry.declaration)
            else:
                current.pop(agent, None)
            last[agent] = entry.number
            self.revision = entry.revision
        self._change(before)
        self._places.add(fresh, len(self._names))

    def _declared(self, agent: int) -> Declaration:
        version = self._current.get(agent)
        return version.declaration if version else _NOTHING

    def _change(self, before: dict[int, Declaration]) -> None:
        gone: tuple[list[int], list[int]] = ([], [])
        come: tuple[list[int], list[int]] = ([], [])
        for agent, old in before.items():
            new = self._declared(agent)
            if old is _NOTHING:
                self._incidences(agent, [emit.event for emit in new.emits], new.listens, come)
            else:
                was, now = ({e.event for e in declared.emits} for declared in (old, new))
                heard, hears = set(old.listens), set(new.listens)
                self._incidences(agent, was - now, heard - hears, gone)
                self._incidences(agent, now - was, hears - heard, come)
        self.rows.add_nodes(len(self._names) - self.rows.nodes)
        for (sources, targets), present in ((gone, False), (come, True)):
            self.rows.change(np.array(sources, np.int32), np.array(targets, np.int32), present=present)

    def _incidences(self, agent: int, emits: Iterable[str], hears: Iterable[str], into: tuple[list[int], list[int]]) -> None:
        sources, targets = into
        for name in emits:
            sources.append(agent)
            targets.append(self._event(name))
        for name in hears:
            sources.append(self._event(name))
            targets.append(agent)

    def _add(self, name: AgentRef | str, scope: int) -> int:
        node = len(self._names)
        self._names.append(name)
        if node >= self._scope.size:
            self._scope = np.concatenate([self._scope, np.full(node, -1, np.int32)])
        self._scope[node] = scope
        return node

    def _event(self, name: str) -> int:
        node = self._events.get(name)
        if node is None:
            node = self._events[name] = self._add(name, -1)
            self._alike[look_alike(name)].append(name)
        return node

    def _scope_number(self, scope: Scope) -> int:
        number = self._scopes.get(scope)
        if number is None:
            number = self._scopes[scope] = len(self._scopes)
            self._readable.cache_clear()
        return number

    # Asking

    def published(self, agent: AgentRef) -> AgentVersion | None:
        """The agent's published version, or None."""
        return self._current.get(self._agents.get(agent, -1))

    def last_number(self, agent: AgentRef) -> int:
        """The newest number ever published of this agent, 0 for none."""
        return self._last.get(self._agents.get(agent, -1), 0)

    def versions(self) -> list[AgentVersion]:
        """Every published version, by name, then scope."""
        return [self._current[node] for node in self._places if node in self._current]

    def sizes(self) -> Sizes:
        """The sizes of the published graph."""
        nodes = self.rows.nodes
        used = (self.rows.ahead.heads[:nodes, SIZE] > 0) | (self.rows.behind.heads[:nodes, SIZE] > 0)
        events = int(np.count_nonzero(used & (self._scope[:nodes] < 0)))
        return Sizes(len(self._current), events, self.rows.incidences)

    def search(self, agent: AgentRef, declaration: Declaration, reader: Reader, limits: Limits, kernel: Kernel) -> Found:
        """The loops that an agent would lie on with this declaration, everybody else as published (G-3), in the reader's order."""
        first_free = len(self._names)
        root = self._agents.get(agent, first_free)
        unknown: dict[str, int] = {}
        readable = self._readable(reader)

        def number(event: str) -> int:
            node = self._events.get(event)
            # Events that the graph does not have take the numbers after its nodes and after a root that it does not have either.
            return unknown.setdefault(event, first_free + 1 + len(unknown)) if node is None else node

        question = Question(
            rows=self.rows,
            order=Order(self._places.number, self._scope, readable),
            root=root,
            emits=[number(emit.event) for emit in declaration.emits],
            hears=[number(event) for event in declaration.listens],
            max_loops=limits.max_loops,
            max_visits=limits.max_visits,
        )
        answer = kernel(question)
        nodes = list(set().union(*answer.loops).difference((root,)))
        versions = dict(zip(nodes, map(self._current.__getitem__, nodes), strict=True))
        versions[root] = AgentVersion(agent, 0, declaration)
        hidden = () if readable.all() else np.array(nodes, np.int64)[~readable[self._scope[nodes]]].tolist()
        return Found(answer.loops, versions, frozenset(hidden), answer.ended, answer.visits)

    def emitters(self, event: str, reader: Reader) -> Iterator[AgentRef]:
        """Published agents that emit this event and that the reader may read."""
        return self._ends(self.rows.behind, event, reader)

    def listeners(self, event: str, reader: Reader) -> Iterator[AgentRef]:
        """Published agents that this event starts and that the reader may read."""
        return self._ends(self.rows.ahead, event, reader)

    def _ends(self, table: Table, event: str, reader: Reader) -> Iterator[AgentRef]:
        node = self._events.get(event)
        if node is None:
            return
        row = table.row(node)
        for agent in row[self._readable(reader)[self._scope[row]]]:
            yield self._current[int(agent)].agent

    def alike(self, event: str) -> list[str]:
        """Other events with a name like this one, in name order, whoever may know of them."""
        return sorted(name for name in self._alike.get(look_alike(event), ()) if name != event)

    def _readable_scopes(self, reader: Reader) -> npt.NDArray[np.bool_]:
        return np.array([reader.may_read(scope) for scope in self._scopes] or [False])
