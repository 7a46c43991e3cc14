"""From the oracle's plain agents to the graph under test and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, EntryKind, LogEntry, declare
from graphsvc.domain.names import AgentRef, parse_agent, parse_scope
from graphsvc.domain.redaction import Reader, reader_of
from graphsvc.graph import Graph
from graphsvc.kernels import jit, reference, rows
from graphsvc.kernels.rows import Answer, Question
from tests.oracle import Agent

KERNELS: dict[str, Callable[[Question], Answer]] = {"reference": reference.search, "jit": jit.search}
EVERYBODY = ("*",)
ENDINGS = {
    rows.COMPLETE: "complete",
    rows.MORE_LOOPS: "more_loops",
    rows.WALK_LIMITED: "walk_limited",
    rows.NOT_VERIFIED: "not_verified",
}


def declaration_of(agent: Agent) -> Declaration:
    """What the agent declares."""
    artifacts = [{"event": event, "artifacts": ["notes"]} if event in agent.guarded else event for event in agent.emits]
    return declare(artifacts, list(agent.hears))


def version_of(agent: Agent, number: int = 1) -> AgentVersion:
    """The agent as a version to publish."""
    return AgentVersion(parse_agent(agent.ref), number, declaration_of(agent))


def reader(scopes: Collection[str]) -> Reader:
    """A reader of these scopes."""
    return reader_of(map(parse_scope, scopes))


def fold(published: Iterable[Agent | AgentRef], *, at_once: bool = True) -> Graph:
    """A graph in which these were published one after the other; a reference stands for the retirement of that agent.

    at_once: whether all entries are folded in one go, or each on its own.
    """
    graph = Graph()
    numbers: dict[AgentRef, int] = {}
    entries = []
    for revision, one in enumerate(published, start=1):
        ref = one if isinstance(one, AgentRef) else parse_agent(one.ref)
        kind = EntryKind.RETIRE if isinstance(one, AgentRef) else EntryKind.PUBLISH
        numbers[ref] = numbers.get(ref, 0) + (kind is EntryKind.PUBLISH)
        declared = Declaration() if isinstance(one, AgentRef) else declaration_of(one)
        entries.append(LogEntry(revision, kind, ref, numbers[ref], declared))
    for batch in [entries] if at_once else [[entry] for entry in entries]:
        graph.apply(batch)
    return graph


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer in words: the agents along each loop, the one asked about first; how the search ended; visits spent."""

    loops: list[tuple[str, ...]]
    ended: str
    visits: int


def question_of(graph: Graph, proposed: Agent, scopes: Collection[str] = EVERYBODY, **limits: int) -> Question:
    """The question that the graph puts to a kernel."""
    return graph.question(parse_agent(proposed.ref), declaration_of(proposed), reader(scopes), Limits(**limits))


def ask(
    graph: Graph,
    proposed: Agent,
    scopes: Collection[str] = EVERYBODY,
    kernel: Callable[[Question], Answer] = reference.search,
    **limits: int,
) -> Asked:
    """The loops that the version would lie on."""
    answer = kernel(question_of(graph, proposed, scopes, **limits))
    loops = [(proposed.ref, *(graph.agent_at(node).text for node in loop[1:])) for loop in answer.loops]
    return Asked(loops, ENDINGS[answer.ended], answer.visits)


def refs(loops: Iterable[Sequence[Agent]]) -> list[tuple[str, ...]]:
    """The oracle's loops by the references of their agents."""
    return [tuple(agent.ref for agent in loop) for loop in loops]


@dataclass(slots=True)
class Counting:
    """A view of a question's graph that keeps what is read from it, in the order of reading: the node asked for and its row."""

    view: reference.View
    rows_ahead: list[tuple[int, list[int]]] = field(default_factory=list)
    rows_behind: list[tuple[int, list[int]]] = field(default_factory=list)

    @property
    def incidences(self) -> int:
        """How many incidences were read, one read twice counting twice."""
        return sum(len(row) for _, row in self.rows_ahead + self.rows_behind)

    def ahead(self, node: int) -> list[int]:
        row = self.view.ahead(node)
        self.rows_ahead.append((node, row))
        return row

    def behind(self, node: int) -> list[int]:
        row = self.view.behind(node)
        self.rows_behind.append((node, row))
        return row

    def ahead_size(self, node: int) -> int:
        return self.view.ahead_size(node)

    def behind_size(self, node: int) -> int:
        return self.view.behind_size(node)
