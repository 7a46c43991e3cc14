"""What is hidden from a reader changes nothing that the reader gets (G-16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsvc.domain.errors import GraphError
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import declare
from graphsvc.domain.names import AgentRef, parse_agent, parse_scope
from graphsvc.domain.wording import Language, report_text
from graphsvc.graph import Kernel
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore
from tests.graphsvc.folding import KERNELS, reader, version_of
from tests.oracle import Agent, may_read
from tests.properties.worlds import EVENTS, NAMES, SCOPES, World, json_bytes, kernels, renamed, worlds

POLICY = LimitPolicy(default=Limits(chain_limit=3), ceiling=Limits(max_loops=1_000))
# Some look like public events, are longer than any, or come before or after them all.
PRIVATE = (*(f"{event}s" for event in EVENTS), "0", "zz", "Reviews", "ordeR", "e" * 200, "סוד")
HIDDEN_NAMES = (*NAMES, "0", "zzz", "n" * 250, "שם")
HIDDEN_SCOPES = (*SCOPES, "acme/secret", "initech", "initech/q")


def publications(world: World) -> set[str]:
    return {one.ref if isinstance(one, Agent) else one.text for one in world.history}


@st.composite
def twins(draw: st.DrawFn) -> tuple[World, World]:
    """Two worlds that differ in what the reader may not know: hidden names and scopes, and events between hidden agents only."""
    world = draw(worlds(readers=SCOPES[1:]))
    hidden = sorted(ref for ref in publications(world) if world.hides(ref))
    free = [
        (name, scope)
        for name in HIDDEN_NAMES
        for scope in HIDDEN_SCOPES
        if not may_read(world.reader, scope) and f"{scope}:{name}" != world.proposed.ref
    ]
    places = draw(st.permutations(free))[: len(hidden)] if hidden else []
    known = {event for one in [*world.published, world.proposed] if not world.hides(one.ref) for event in (*one.hears, *one.emits)}
    secret = sorted({event for one in world.published if world.hides(one.ref) for event in (*one.hears, *one.emits)} - known)
    others = draw(st.permutations([name for name in PRIVATE if name not in known]))
    events = dict(zip(secret, others, strict=False))
    twin = renamed(
        world,
        dict(zip(hidden, places, strict=True)),
        lambda one, event: events.get(event, event) if world.hides(one.ref) else event,
    )
    return world, twin


def service_of(world: World, kernel: Kernel) -> GraphService:
    """A service in which the history happened."""
    service = GraphService(MemoryStore(patience_s=30), POLICY, kernel)
    numbers: Counter[str] = Counter()
    for one in world.history:
        if isinstance(one, AgentRef):
            service.retire(one)
        else:
            numbers[one.ref] += 1
            service.import_versions([version_of(one, numbers[one.ref])])
    return service


def told(service: GraphService, world: World) -> Iterator[object]:
    """Every answer that the use cases have for the world's reader."""
    who = reader(world.reader)
    version = version_of(world.proposed, 90)
    report = service.check(version.agent, version.declaration, who)
    yield json_bytes(report)
    yield [report_text(report, language) for language in Language]
    yield service.status(who)
    yield list(service.export(who)[1])
    for scope in HIDDEN_SCOPES:
        yield scope, list(service.export(who, [parse_scope(scope)])[1])
        for name in NAMES:
            # Some of these agents are in one of two twin graphs only.
            yield scope, name, refusal_or_answer(service.describe, AgentRef(parse_scope(scope), name), who, page_size=2)
    published = service.publish(version, who)
    yield published, json_bytes(published.report)
    yield refusal_or_answer(service.publish, version_of(world.proposed, 3), who)
    yield refusal_or_answer(service.publish, replace(version, declaration=declare(["other"], [])), who)


def refusal_or_answer(ask: Callable[..., object], *arguments: object, **options: object) -> object:
    """What a use case answers, or the words of its refusal."""
    try:
        return ask(*arguments, **options)
    except GraphError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.promise("G-13", "G-14", "G-15", "G-16", "G-18")
@settings(max_examples=100)
@given(twins(), kernels)
def test_hidden_names_scopes_and_private_events_change_no_answer(both: tuple[World, World], kernel: Kernel) -> None:
    for one, other in zip(*(told(service_of(world, kernel), world) for world in both), strict=True):
        assert one == other


@pytest.mark.promise("G-8", "G-16")
@settings(max_examples=30)
@given(twins())
def test_hidden_names_do_not_move_the_place_where_a_walk_limit_cuts(both: tuple[World, World]) -> None:
    graphs = [(world, world.graph()) for world in both]
    for max_visits in range(120):
        asked = Limits(max_loops=5, max_visits=max_visits)
        answers = {json_bytes(world.report(asked, kernel, graph)) for world, graph in graphs for kernel in KERNELS.values()}
        assert len(answers) == 1


@pytest.mark.promise("G-16")
@settings(max_examples=100)
@given(worlds(readers=SCOPES[1:]), kernels)
def test_an_agent_that_is_not_there_and_one_that_is_hidden_are_one_answer(world: World, kernel: Kernel) -> None:
    service = service_of(world, kernel)
    who = reader(world.reader)
    hidden = [one.ref for one in world.published if not may_read(world.reader, one.scope)]
    answers = {refusal_or_answer(service.describe, parse_agent(ref), who) for ref in [*hidden, "nowhere/at all:nobody"]}
    assert answers == {"UnknownAgent: there is no such agent, or it is outside your access"}
    readable = sorted((one.name, one.scope) for one in world.published if may_read(world.reader, one.scope))
    assert [version.agent.order for version in service.export(who)[1]] == readable
