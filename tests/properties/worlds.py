"""Worlds for hypothesis to draw: a history of publications, a version to judge, and a reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from graphsvc.domain.limits import Limits
from graphsvc.domain.names import AgentRef, parse_agent
from graphsvc.domain.report import Report
from graphsvc.graph import Graph
from graphsvc.judge import judge
from graphsvc.kernels.rows import Answer, Question
from tests.graphsvc.folding import KERNELS, declaration_of, fold, reader
from tests.oracle import Agent, may_read

SCOPES = ("*", "acme", "acme/platform", "acme/finance", "globex", "globex/platform")
NAMES = ("10", "9", "B", "a", "a b", "é", "ה", "😀")
EVENTS = ("order", "orders", "Order", "order.created", "order_created", "ORDER-CREATED", "review", "reviews", "plan", "note")

kernels = st.sampled_from(list(KERNELS.values()))
limits = st.builds(Limits, max_loops=st.sampled_from([1, 2, 3, 10, 1_000]), chain_limit=st.sampled_from([1, 2, 3, 8]))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """history: what was published and, as references, retired, in order."""

    history: tuple[Agent | AgentRef, ...]
    proposed: Agent
    reader: tuple[str, ...]

    @property
    def published(self) -> list[Agent]:
        """What is published at the end, by first publication."""
        places: dict[str, Agent | None] = {}
        for one in self.history:
            if isinstance(one, Agent):
                places[one.ref] = one
            else:
                places[one.text] = None
        return [one for one in places.values() if one is not None]

    def hides(self, ref: str) -> bool:
        """Whether the reader may not read this agent; the one to be judged is never hidden."""
        return ref != self.proposed.ref and not may_read(self.reader, ref.partition(":")[0])

    def graph(self) -> Graph:
        """The graph at the end."""
        return fold(self.history)

    def report(self, limits: Limits, kernel: Callable[[Question], Answer], graph: Graph | None = None) -> Report:
        """The report on the proposed version."""
        agent, declaration = parse_agent(self.proposed.ref), declaration_of(self.proposed)
        return judge(graph or self.graph(), agent, declaration, reader(self.reader), limits, kernel, None)


def json_bytes(report: Report) -> bytes:
    """The report as it leaves the service, digest and all."""
    return json.dumps(report.as_json(), ensure_ascii=False).encode()


@st.composite
def _versions(draw: st.DrawFn, name: str, scope: str, events: Sequence[str]) -> Agent:
    # Without a push towards full declarations most graphs that hypothesis draws have no loop.
    some = st.frozensets(st.sampled_from(events), min_size=1, max_size=3) | st.frozensets(st.sampled_from(events), max_size=1)
    emits = draw(some)
    guarded = draw(st.frozensets(st.sampled_from(sorted(emits)))) if emits else frozenset()
    return Agent(name, draw(some), emits, scope, guarded)


@st.composite
def worlds(draw: st.DrawFn, events: Sequence[str] = EVENTS, readers: Sequence[str] = SCOPES) -> World:
    """Any world of at most seven agents; `readers`: the scopes of which readers may read some."""
    refs = draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(SCOPES)), min_size=3, max_size=7, unique=True))
    used = draw(st.lists(st.sampled_from(events), min_size=2, max_size=4, unique=True))
    history: list[Agent | AgentRef] = []
    for name, scope in draw(st.lists(st.sampled_from(refs), max_size=2)):
        history.append(draw(_versions(name, scope, used)))
        if draw(st.booleans()):
            history.append(parse_agent(f"{scope}:{name}"))
    history += [draw(_versions(name, scope, used)) for name, scope in refs[1:]]
    name, scope = refs[draw(st.integers(0, 1))]
    own = [one for one in history if isinstance(one, Agent) and (one.name, one.scope) == (name, scope)]
    proposed = own[-1] if own and draw(st.booleans()) else draw(_versions(name, scope, [*used, "never emitted"]))
    some_scopes = tuple(draw(st.lists(st.sampled_from(readers), max_size=3, unique=True)))
    return World(history=tuple(history), proposed=proposed, reader=some_scopes)


def renamed(world: World, agents: dict[str, tuple[str, str]], events: Callable[[Agent, str], str]) -> World:
    """The world with other names and scopes for these agents, by reference, and other events in their versions."""

    def of(one: Agent | AgentRef) -> Agent | AgentRef:
        if isinstance(one, AgentRef):
            name, scope = agents.get(one.text, (one.name, one.scope.text))
            return parse_agent(f"{scope}:{name}")
        name, scope = agents.get(one.ref, (one.name, one.scope))
        hears, emits, guarded = (frozenset(events(one, event) for event in side) for side in (one.hears, one.emits, one.guarded))
        return replace(one, name=name, scope=scope, hears=hears, emits=emits, guarded=guarded)

    proposed = of(world.proposed)
    assert isinstance(proposed, Agent)
    return replace(world, history=tuple(map(of, world.history)), proposed=proposed)
