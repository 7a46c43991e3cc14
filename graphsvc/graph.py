"""The graph in memory: a fold of the log. It turns words into the numbers that the kernels walk, and numbers back into words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphsvc.columns import BARE, Contract
from graphsvc.domain.answers import Neighbour
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, Emit
from graphsvc.domain.names import AgentRef
from graphsvc.domain.redaction import Reader
from graphsvc.domain.remembering import Remembered
from graphsvc.domain.report import Hop
from graphsvc.fold import NO_SCOPE, Fold
from graphsvc.kernels.nodes import EVENT, UNKNOWN
from graphsvc.kernels.rows import COMPLETE, NOT_VERIFIED, Answer, Hops, Ints, Order, Question, Table, others

Kernel = Callable[[Question], Answer]

_NO_CONTRACTS: dict[int, Contract] = {}


def _contracts(events: Sequence[int], declaration: Declaration) -> dict[int, Contract]:
    """The contracts of those of its emitted events that say more than a name, by the events' numbers."""
    return {
        event: (emit.context, emit.artifacts)
        for event, emit in zip(events, declaration.emits, strict=True)
        if emit.context is not None or emit.artifacts
    }


class Found(NamedTuple):
    """What a search came to. loops: their agents, the one asked about first, None for one that the reader may not read.

    steps: of each loop, the places in `hops` of its hops. hops: as whoever reads everything sees them. guarded: the places there of
    those whose every event names artifacts that listeners may ask for. hidden: whether a loop has an agent that the reader may not
    read. heard, fed: of each event emitted and of each heard, whether somebody else whom the reader may read hears or emits it.
    ended: see `kernels.rows`. visits: spent, None where the index proved that there is nothing to find.
    """

    loops: list[tuple[AgentRef | None, ...]]
    steps: list[list[int]]
    hops: list[Hop]
    guarded: set[int]
    hidden: bool
    heard: list[bool]
    fed: list[bool]
    ended: int
    visits: int | None


class Graph(Fold):
    """Who emits what and who is started by what, at one revision of the log. Reading is safe while nobody applies entries.

    Agents and events are numbers in flat arrays, names are UTF-8: a graph of millions fits where objects would not.
    """

    def __init__(self) -> None:
        super().__init__()
        # What a number stands for never changes.
        self._event = Remembered(self._nodes.name)
        self._agent = Remembered(self._agent_at)
        self._single = Remembered(self._single_hop)

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

    def agents(self) -> list[tuple[int, int]]:
        """The node and the number of every published version, by the agent's name, then scope."""
        self._bring_up()
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

    def question(self, agent: AgentRef, declaration: Declaration, reader: Reader, limits: Limits) -> Question:
        """What a kernel is asked: the agent with this declaration, everybody else as published (G-3)."""
        self._bring_up()
        first_free = self._nodes.count
        names = [*(emit.event for emit in declaration.emits), *declaration.listens]
        scopes = [self._scopes.get(agent.scope, NO_SCOPE), *[EVENT] * len(names)]
        found = self._nodes.find(scopes, [agent.name, *names])
        node, numbers = int(found[0]), found[1:]
        if (numbers == UNKNOWN).any():
            # Events that the graph does not have take the numbers after its nodes and after a root that it does not have either.
            unknown: dict[str, int] = {}
            for at in np.flatnonzero(numbers == UNKNOWN).tolist():
                numbers[at] = unknown.setdefault(names[at], first_free + 1 + len(unknown))
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
        answer = self._walked(question, kernel)
        loops: list[tuple[AgentRef | None, ...]] = []
        steps: list[list[int]] = []
        hops: list[Hop] = []
        guarded: set[int] = set()
        hidden = False
        if answer and answer.sizes.size:
            met = self.rows.hops(question, answer)
            hops, guarded = self._hops(question, declaration, met)
            names, hidden = self._named(answer.nodes[answer.nodes != question.root], question.order.readable)
            which, named = iter(met.which.tolist()), iter(names)
            for size in answer.sizes.tolist():
                loops.append((agent, *islice(named, size - 1)))
                steps.append(list(islice(which, size)))
        heard, fed = (
            self._others(self.rows.ahead, question.emits, question),
            self._others(self.rows.behind, question.hears, question),
        )
        ended, visits = (answer.ended, answer.visits) if answer else (COMPLETE, None)
        return Found(loops, steps, hops, guarded, hidden, heard, fed, ended, visits)

    def _walked(self, question: Question, kernel: Kernel) -> Answer | None:
        """The search's answer, None where the index proved that there is nothing to find."""
        if not self._numbers.closes_nothing(question):
            answer = kernel(question)
            if answer.ended != NOT_VERIFIED or not self._numbers.leads_nowhere(question):
                return answer
        return None

    def _others(self, table: Table, events: Ints, question: Question) -> list[bool]:
        """Whether each event has a readable agent other than the root in its row."""
        order = question.order
        found: list[bool] = others(table, self.rows.nodes, events, question.root, order.agent, order.scope, order.readable).tolist()
        return found

    def _named(self, nodes: Ints, readable: npt.NDArray[np.bool_]) -> tuple[list[AgentRef | None], bool]:
        """The agents of these nodes, None for one that the reader may not read, and whether there is one."""
        if readable.all():
            return list(map(self._agent.__getitem__, nodes.tolist())), False
        arrays = self._nodes.arrays
        seen = readable[arrays.scope[arrays.agent[nodes]]].tolist()
        return [self._agent[node] if may else None for node, may in zip(nodes.tolist(), seen, strict=True)], False in seen

    def _hops(self, question: Question, declaration: Declaration, met: Hops) -> tuple[list[Hop], set[int]]:
        events, ends = met.events.tolist(), met.ends.tolist()
        own = _contracts(question.emits.tolist(), declaration)
        guarded = set(self._guarded(met.sources.tolist(), events, ends, question.root, own)) if own or self._contracts else set()
        if len(events) == len(ends):  # one for each, which is the usual case
            return list(map(self._single.__getitem__, events)), guarded
        names = list(map(self._event.__getitem__, events))
        return [Hop(tuple(sorted(names[first:end]))) for first, end in zip((0, *ends), ends, strict=False)], guarded

    def _guarded(
        self, sources: list[int], events: list[int], ends: list[int], root: int, own: dict[int, Contract]
    ) -> Iterator[int]:
        for hop, (source, first, end) in enumerate(zip(sources, (0, *ends), ends, strict=False)):
            contracts = own if source == root else self._contracts.get(source)
            if contracts and all(contracts.get(event, BARE)[1] for event in events[first:end]):
                yield hop

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

    def neighbours(
        self, agent: AgentRef, events: Sequence[str], reader: Reader, after: tuple[str, str], most: int, *, back: bool
    ) -> tuple[tuple[Neighbour, ...], bool]:
        """Other agents that these events start, or with back=True come from, as far as the reader may read them, by name and scope.

        after: the order of the agent that they come after. most: of them. Also returns whether there are more. Only those returned
        are put into words, as an event may have very many.
        """
        self._bring_up()
        table, arrays = self.rows.behind if back else self.rows.ahead, self._nodes.arrays
        found = self._nodes.find([EVENT] * len(events), events).tolist()
        rows = [(event, table.row(node)) for event, node in zip(events, found, strict=True) if node != UNKNOWN]
        nodes = np.unique(np.concatenate([np.zeros(0, np.int32), *(row for _, row in rows)]))
        nodes = nodes[self._readable(reader)[arrays.scope[arrays.agent[nodes]]] & (nodes != self._find(agent))]
        nodes = nodes[np.argsort(self._places.number[arrays.agent[nodes]])]
        first = bisect_right(nodes, after, key=lambda node: self._agent[int(node)].order)
        page = nodes[first : first + most]
        between: dict[int, list[str]] = {node: [] for node in page.tolist()}
        for event, row in rows:
            for node in row[np.isin(row, page)].tolist():
                between[node].append(event)
        named = [Neighbour(agent=self._agent[node], events=tuple(sorted(shared))) for node, shared in between.items()]
        return tuple(named), first + most < nodes.size

    def alike(self, event: str) -> list[str]:
        """Other events with a name like this one, in name order, whoever may know of them."""
        return sorted(name for name in self._nodes.alike(event) if name != event)
