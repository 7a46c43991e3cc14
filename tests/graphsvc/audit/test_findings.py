"""Everything an audit finds, against brute force on small worlds, and by hand where a case is worth telling."""

from __future__ import annotations

import numpy as np
import pytest
import rustworkx
from hypothesis import given, settings

from graphsvc.audit import dropping
from graphsvc.audit.components import find_components
from graphsvc.audit.local import audit
from graphsvc.audit.tenant import read_tenant
from graphsvc.columns import in_columns
from graphsvc.declarations.generator import Shape, generate
from graphsvc.domain.audit import (
    AuditLimits,
    CrossingCompanies,
    LoopComponent,
    NearMiss,
    OwnEvent,
    SearchCut,
    ShortestLoop,
    TriggersToDrop,
    UnfedHearing,
    UnheardEmission,
)
from graphsvc.domain.limits import Limits
from graphsvc.domain.names import parse_scope
from graphsvc.domain.redaction import EVERYTHING, barrier_stops
from graphsvc.domain.rules import RULES
from graphsvc.kernels import jit
from graphsvc.service import check_files
from tests.graphsvc.audit import oracle
from tests.graphsvc.audit.auditing import as_bytes, audited, of_kind
from tests.oracle import Agent, agent, may_read
from tests.properties.worlds import World, worlds

A_CHAIN = [agent(f"a{i}", [f"e{i}"], [f"e{i + 1}"]) for i in range(5)]


def ring(size: int, scope: str = "*") -> list[Agent]:
    return [agent(f"r{i:03}", [f"e{(i - 1) % size:03}"], [f"e{i:03}"], scope) for i in range(size)]


@pytest.mark.promise("O-9")
@settings(max_examples=150)
@given(worlds())
def test_components_are_the_sets_of_agents_that_lead_to_each_other(world: World) -> None:
    found = of_kind(audited(world.published, world.reader), LoopComponent)
    got = {(tuple(one.text for one in component.agents), component.size) for component in found}
    assert got == oracle.components(world.published, world.reader)
    for component in found:
        members = oracle.members_of(world.published, component.agents[0].text)
        assert [event.event for event in component.events] == sorted(oracle.events_between(world.published, members, world.reader))
        assert list(component.companies) == sorted({one.scope.company for one in component.agents if one.scope.company})


@pytest.mark.promise("O-9")
@settings(max_examples=150)
@given(worlds())
def test_every_agent_on_a_loop_lies_on_a_shortest_one_that_is_listed(world: World) -> None:
    findings = audited(world.published, world.reader)
    served: dict[str, ShortestLoop] = {}
    for found in of_kind(findings, ShortestLoop):
        for one in found.shortest_for:
            assert one.text not in served
            served[one.text] = found
    for one in world.published:
        wanted = oracle.shortest(world.published, one.ref, world.reader) if may_read(world.reader, one.scope) else []
        assert (one.ref in served) is bool(wanted)
        if wanted:
            loop = served[one.ref].loop
            agents = tuple(None if other is None else other.text for other in loop.agents)
            events = tuple(hop.events for hop in loop.hops)
            at = agents.index(one.ref)
            turned = (agents[at:] + agents[:at], events[at:] + events[:at])
            assert turned in wanted
            if served[one.ref].shortest_for[0].text == one.ref:
                # The first of those it serves asked for it, and so has the first by name of all its shortest loops.
                assert turned == wanted[0]
    by_ref = {one.ref: one for one in world.published}
    for found in of_kind(findings, ShortestLoop):
        ends = [None if one is None else by_ref[one.text] for one in found.loop.agents]
        for source, target, hop in zip(ends, ends[1:] + ends[:1], found.loop.hops, strict=True):
            stops = (
                source is not None and target is not None and barrier_stops(parse_scope(source.scope), parse_scope(target.scope))
            )
            assert hop.barrier is (stops and source is not None and source.guarded.issuperset(hop.events or ()))
    for component in of_kind(findings, LoopComponent):
        lengths = [served[one.text].loop.length for one in component.agents]
        assert component.shortest is not None
        assert component.shortest.length == min(lengths)


@pytest.mark.promise("O-9")
@settings(max_examples=100)
@given(worlds())
def test_the_triggers_to_drop_of_a_small_component_are_the_first_of_the_smallest_sets(world: World) -> None:
    findings = audited(world.published, world.reader)
    named = {component.fingerprint: component.agents[0].text for component in of_kind(findings, LoopComponent)}
    drops = of_kind(findings, TriggersToDrop)
    assert {found.component for found in drops} == named.keys()
    for found in drops:
        members = oracle.members_of(world.published, named[found.component])
        triggers = tuple((trigger.agent.text, trigger.event) for trigger in found.triggers)
        assert triggers == oracle.smallest_drops(world.published, members, world.reader)
        assert found.is_smallest


@pytest.mark.promise("O-9")
@settings(max_examples=100)
@given(worlds())
def test_a_bound_on_what_to_drop_holds_and_breaks_every_loop(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dropping, "EXACT_UNITS", 0)
        findings = audited(world.published, world.reader)
    named = {component.fingerprint: component.agents[0].text for component in of_kind(findings, LoopComponent)}
    for found in of_kind(findings, TriggersToDrop):
        members = oracle.members_of(world.published, named[found.component])
        triggers = [(trigger.agent.text, trigger.event) for trigger in found.triggers]
        assert oracle.drops_suffice(world.published, members, triggers, world.reader)
        smallest = len(oracle.smallest_drops(world.published, members, world.reader))
        assert 1 <= found.at_least <= smallest <= len(found.triggers)


@pytest.mark.promise("O-9")
@settings(max_examples=100)
@given(worlds())
def test_own_events_unheard_events_and_unfed_triggers_are_found_among_what_is_readable(world: World) -> None:
    findings = audited(world.published, world.reader)
    got = {("LW201", found.agent.text, event) for found in of_kind(findings, OwnEvent) for event in found.events}
    got |= {(found.rule.id, found.agent.text, found.event) for found in of_kind(findings, UnheardEmission)}
    got |= {(found.rule.id, found.agent.text, found.event) for found in of_kind(findings, UnfedHearing)}
    assert got == set(oracle.notices(world.published, world.reader))


@pytest.mark.promise("O-9")
def test_a_trigger_named_almost_like_an_event_is_told_with_all_such_events() -> None:
    agents = [
        agent("shop", [], ["orders", "OrderPlaced", "Order"], "acme"),
        agent("till", ["order", "order_placed"], ["ORDER"], "acme"),
        agent("other", [], ["ORDERS"], "globex"),
    ]
    found = of_kind(audited(agents, ["acme"]), NearMiss)
    # What till itself emits and what hidden agents emit is no hint.
    assert [(one.agent.text, one.event, one.similar) for one in found] == [
        ("acme:till", "order", ("Order", "orders")),
        ("acme:till", "order_placed", ("OrderPlaced",)),
    ]


@pytest.mark.promise("O-9")
def test_a_component_of_two_companies_crosses_where_both_may_be_read() -> None:
    agents = [agent("a", ["y"], ["x"], "acme"), agent("b", ["x"], ["y"], "globex"), agent("c", ["x"], ["y"])]
    assert [found.companies for found in of_kind(audited(agents), CrossingCompanies)] == [("acme", "globex")]
    assert of_kind(audited(agents, ["acme"]), CrossingCompanies) == []
    assert [(found.size, found.hidden) for found in of_kind(audited(agents, ["acme"]), LoopComponent)] == [(3, 2)]


@pytest.mark.promise("O-9")
def test_only_components_of_the_scopes_asked_for_are_told_but_with_all_their_readable_agents() -> None:
    agents = [
        agent("a", ["y"], ["x"], "acme"),
        agent("b", ["x"], ["y"], "globex"),
        agent("c", ["q", "none"], ["p"], "globex"),
        agent("d", ["p"], ["q"], "globex"),
    ]
    findings = audited(agents, scopes=["acme"])
    assert [[one.text for one in found.agents] for found in of_kind(findings, LoopComponent)] == [["acme:a", "globex:b"]]
    assert [[one.text for one in found.shortest_for] for found in of_kind(findings, ShortestLoop)] == [["acme:a"]]
    assert of_kind(findings, UnfedHearing) == []
    # Asking for what may not be read is asking for nothing.
    assert audited(agents, ["acme"], scopes=["globex"]) == []


@pytest.mark.promise("O-9", "O-10", "G-14")
def test_an_event_between_two_hidden_agents_is_told_of_neither() -> None:
    # h1 leads to h2 by the event that starts me too, and h2 leads to h1 by one that nobody readable knows.
    agents = [
        agent("me", ["shared"], ["mine"], "acme"),
        agent("h1", ["mine", "theirs"], ["shared"], "globex"),
        agent("h2", ["shared"], ["theirs", "second"], "globex"),
        agent("h3", ["second"], ["mine"], "globex"),
    ]
    (component,) = of_kind(audited(agents, ["acme"]), LoopComponent)
    assert [(event.event, event.hidden_emitters, event.hidden_listeners) for event in component.events] == [
        ("mine", False, True),
        ("shared", True, False),
    ]
    (everything,) = of_kind(audited(agents), LoopComponent)
    assert [event.event for event in everything.events] == ["mine", "second", "shared", "theirs"]


@pytest.mark.promise("O-9")
def test_a_component_of_hidden_agents_alone_is_not_told_of() -> None:
    agents = [agent("a", ["y"], ["x"], "globex"), agent("b", ["x"], ["y"], "globex"), agent("me", [], ["hello"], "acme")]
    assert [found.rule.id for found in audited(agents, ["acme"])] == ["LW301"]


@pytest.mark.promise("O-9")
def test_loops_longer_than_asked_for_are_counted_instead_of_listed() -> None:
    findings = audited(ring(9), limits=AuditLimits(max_length=8))
    assert [(found.beyond, found.shortest) for found in of_kind(findings, LoopComponent)] == [(9, None)]
    assert of_kind(findings, ShortestLoop) == []
    whole = of_kind(audited(ring(9), limits=AuditLimits(max_length=9)), ShortestLoop)
    assert [(found.loop.length, len(found.shortest_for), found.loop.over_chain_limit) for found in whole] == [(9, 9, True)]


@pytest.mark.promise("O-9")
def test_a_search_that_used_up_its_visits_is_told() -> None:
    # From the hub either first level leads to fifty agents, from any of them to the hub alone.
    crowd = [agent(f"c{i:03}", ["x"], ["y"]) for i in range(50)] + [agent("hub", ["y"], ["x"])]
    cut = of_kind(audited(crowd, limits=AuditLimits(max_visits=20)), SearchCut)
    assert [[one.text for one in found.agents] for found in cut] == [["*:hub"]]
    assert of_kind(audited(crowd, limits=AuditLimits(max_visits=200)), SearchCut) == []


@pytest.mark.promise("O-9")
def test_a_large_component_gets_a_set_to_drop_with_a_bound_that_it_meets_here() -> None:
    # Twenty loops of two agents each that share one agent, and hop from it by one event.
    back = [f"back{i:02}" for i in range(20)]
    agents = [agent(f"s{i:02}", ["go"], [event]) for i, event in enumerate(back)] + [agent("z", back, ["go"])]
    (found,) = of_kind(audited(agents), TriggersToDrop)
    assert (found.at_least, len(found.triggers), found.is_smallest) == (20, 20, True)


@pytest.mark.promise("O-9")
def test_a_ring_that_is_too_large_to_try_everything_still_loses_one_trigger() -> None:
    (found,) = of_kind(audited(ring(40)), TriggersToDrop)
    assert (len(found.triggers), found.at_least) == (1, 1)


def test_a_graph_without_loops_has_no_component() -> None:
    assert [found.rule.id for found in audited(A_CHAIN)] == ["LW301", "LW302"]
    assert audited([]) == []


@pytest.mark.promise("O-9")
def test_rules_have_ids_and_names_of_their_own_that_stay() -> None:
    # Baselines and other tools keep these: a rule may be added, none may change.
    assert [(rule.id, rule.name, rule.level.value) for rule in RULES] == [
        ("LW101", "loop-component", "loop"),
        ("LW102", "crossing-companies", "loop"),
        ("LW103", "shortest-loop", "loop"),
        ("LW104", "triggers-to-drop", "advice"),
        ("LW105", "search-cut", "doubt"),
        ("LW201", "own-event", "self"),
        ("LW301", "unheard-event", "notice"),
        ("LW302", "unfed-trigger", "notice"),
        ("LW303", "near-miss-name", "notice"),
    ]


@pytest.mark.promise("O-9")
def test_fingerprints_stay_while_what_they_are_about_stays() -> None:
    agents = [agent("a", ["y"], ["x"], "acme"), agent("b", ["x"], ["y"], "acme")]
    elsewhere = [*agents, agent("c", ["p"], ["q"], "acme")]
    before, after = ({found.fingerprint for found in audited(these)} for these in (agents, elsewhere))
    assert before < after
    changed = {found.fingerprint for found in audited([*agents, agent("c", ["x"], ["y"], "acme")])}
    assert not any(found.fingerprint in changed for found in of_kind(audited(agents), LoopComponent))
    # The very text, as baselines of earlier releases hold it.
    (component,) = of_kind(audited(agents), LoopComponent)
    assert component.fingerprint == "d5b216440ee26afa629490421d76d867730669e9d9ae456ee9b0483a8f44694b"


@pytest.mark.promise("O-9")
@pytest.mark.parametrize("shape", list(Shape))
def test_components_of_made_catalogues_are_those_of_the_graph_of_pairs(shape: Shape) -> None:
    versions = list(generate(shape, 600, 3).versions())
    tenant = read_tenant(in_columns(versions))
    core = find_components(tenant)
    got = {frozenset(core.agents[a:b].tolist()) for a, b in zip(core.starts[:-1], core.starts[1:], strict=True)}
    plain = [
        Agent(v.agent.name, frozenset(v.declaration.listens), frozenset(e.event for e in v.declaration.emits), v.agent.scope.text)
        for v in versions
    ]
    number = {ref.text: i for i, ref in enumerate(tenant.agents)}
    pairs = oracle.pairs(plain)
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from(plain)
    graph.add_edges_from_no_data(list(pairs.edges))
    wanted = rustworkx.strongly_connected_components(graph)
    assert got == {frozenset(number[plain[i].ref] for i in members) for members in wanted if len(members) > 1}
    sizes = np.diff(core.starts).tolist()
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.promise("O-9")
@pytest.mark.parametrize("shape", [Shape.TENANT, Shape.GIANT, Shape.HUBS, Shape.PIPELINES])
def test_a_loop_that_an_audit_lists_for_an_agent_is_the_first_that_a_check_of_it_finds(shape: Shape) -> None:
    versions = list(generate(shape, 700, 4).versions())
    limits = AuditLimits(max_visits=10_000_000, max_length=500)
    found = of_kind(list(audit(in_columns(versions), EVERYTHING, limits=limits)), ShortestLoop)
    listed = {one: finding for finding in found for one in finding.shortest_for}
    for report in check_files(versions, None, EVERYTHING, Limits(max_loops=1), jit.search):
        loops = [loop for loop in report.loops if not loop.is_self]
        assert bool(loops) is (report.agent in listed)
        if loops and listed[report.agent].shortest_for[0] == report.agent:
            loop = listed[report.agent].loop
            at = loop.agents.index(report.agent)
            assert loop.agents[at:] + loop.agents[:at] == loops[0].agents
            assert loop.hops[at:] + loop.hops[:at] == loops[0].hops
        elif loops:
            assert listed[report.agent].loop.length == loops[0].length


@pytest.mark.promise("O-9")
def test_hidden_agents_keep_their_triggers_and_readable_ones_give_up_the_fewest() -> None:
    # me → h1 ⇄ h2 → me: the loop of the two hidden ones is not mine to break, and the trigger to me breaks mine.
    agents = [
        agent("me", ["c"], ["a"], "acme"),
        agent("h1", ["a", "d"], ["b"], "globex"),
        agent("h2", ["b"], ["c", "d"], "globex"),
    ]
    (found,) = of_kind(audited(agents, ["acme"]), TriggersToDrop)
    assert [(trigger.agent.text, trigger.event) for trigger in found.triggers] == [("acme:me", "c")]


@pytest.mark.promise("O-9")
def test_the_order_of_versions_leaves_no_trace() -> None:
    versions = list(generate(Shape.TENANT, 500, 5).versions())
    forwards, backwards = (as_bytes(audit(in_columns(each), EVERYTHING)) for each in (versions, versions[::-1]))
    assert forwards == backwards
