from __future__ import annotations

import hashlib
import io
import itertools

import networkx as nx
import numpy as np
import pytest

from graphsvc.declarations.generator import MAX_AGENTS, Shape, generate
from graphsvc.declarations.jsonlines import json_line, write_json_lines
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import declare
from graphsvc.domain.names import Scope, normalise, scope_of

SIZES = (2, 3, 4, 5, 7, 11, 60, 401, 1_000)
WORLDS = [(shape, size) for shape in Shape for size in SIZES]


def edges_of(shape: Shape, agents: int) -> nx.DiGraph:
    """Who starts whom, by the agents' numbers, from the words alone."""
    versions = list(generate(shape, agents, 5).versions())
    emitters: dict[str, list[int]] = {}
    for number, version in enumerate(versions):
        for emit in version.declaration.emits:
            emitters.setdefault(emit.event, []).append(number)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(agents))
    for number, version in enumerate(versions):
        graph.add_edges_from((source, number) for event in version.declaration.listens for source in emitters.get(event, ()))
    return graph


def largest_component(graph: nx.DiGraph) -> int:
    return max(map(len, nx.strongly_connected_components(graph)))


@pytest.mark.parametrize(("shape", "agents"), WORLDS)
def test_every_catalogue_is_well_formed(shape, agents):
    versions = list(generate(shape, agents, 1).versions())
    assert len({version.agent for version in versions}) == len(versions) == agents
    for version in versions:
        declaration = version.declaration
        assert declare(*declaration.as_json().values()) == declaration
        assert normalise(version.agent.name, "agent") == version.agent.name
        assert scope_of(version.agent.scope.company, version.agent.scope.area) == version.agent.scope


@pytest.mark.parametrize(("shape", "agents"), WORLDS)
def test_the_words_say_what_the_arrays_say(shape, agents):
    catalogue = generate(shape, agents, 1)
    for number, version in enumerate(catalogue.versions()):
        emits = catalogue.emits[catalogue.emits_start[number] : catalogue.emits_start[number + 1]]
        hears = catalogue.hears[catalogue.hears_start[number] : catalogue.hears_start[number + 1]]
        assert sorted(f"event-{event}" for event in emits) == [emit.event for emit in version.declaration.emits]
        assert sorted(f"event-{event}" for event in hears) == list(version.declaration.listens)
        assert catalogue.ref(number) == version.agent
    assert max(catalogue.emits.max(), catalogue.hears.max()) == catalogue.events - 1


BYTES = {
    Shape.PIPELINES: "f8acd5bd09a33887ceaf23a2ab699ea734a8b81922d11fcb3b4506c6dc898142",
    Shape.HUBS: "f4d27115181a8a4c8eb185780d08cc492d56ddb08f3813c3c853e63eb7b13ed8",
    Shape.GIANT: "7ee62c101f118980254e942e8477c44f98914961e02cc15f831de35cc3254685",
    Shape.LAYERED: "f31b386b8312273082fa1d0bb39ceacf29cc095ab27980d4ac7a845f233fad2c",
    Shape.TENANT: "ea29ec2cb5cc81e183c66c6705bec2bfbdbd2ed4725e363a8ca58198f5c286c1",
    Shape.RING: "e5c490587719e7af1ffbd6ede1dede4a8bbd7b5b6703791af5db1b142e86fb19",
    Shape.DIAMONDS: "86522fa9a7b75e71e73fb7b675230c05a0720332e12dde94ebf06d8f2d68e48e",
}


@pytest.mark.parametrize("shape", Shape)
def test_the_same_seed_gives_the_same_bytes_everywhere(shape):
    stream = io.BytesIO()
    write_json_lines(generate(shape, 500, 42).versions(), stream)
    assert hashlib.sha256(stream.getvalue()).hexdigest() == BYTES[shape]


@pytest.mark.parametrize("shape", Shape)
def test_another_seed_gives_another_catalogue(shape):
    one, other = (list(map(json_line, generate(shape, 500, seed).versions())) for seed in (1, 2))
    assert one != other


def test_every_tenth_pipeline_has_a_step_back():
    graph = edges_of(Shape.PIPELINES, 1_000)
    loops = list(nx.simple_cycles(graph))
    assert 8 <= len(loops) <= 20
    assert all(2 <= len(loop) <= 11 for loop in loops)
    assert all(degree <= 2 for _, degree in graph.in_degree())


def test_a_hub_joins_all_emitters_to_all_listeners_with_no_more_than_their_sum():
    catalogue = generate(Shape.HUBS, 200_000, 1)
    hub = catalogue.emits == 0
    assert (int(hub.sum()), int((catalogue.hears == 0).sum())) == (100_000, 100_000)
    assert len(catalogue.emits) + len(catalogue.hears) < 220_000
    assert largest_component(edges_of(Shape.HUBS, 60)) > 2


def test_a_giant_component_holds_most_agents():
    assert largest_component(edges_of(Shape.GIANT, 1_000)) > 500


def test_layers_feed_one_another_and_come_round():
    graph = edges_of(Shape.LAYERED, 1_000)
    width = 31
    back = [(source, target) for source, target in graph.edges if target < width]
    assert back
    assert all(target // width == source // width + 1 for source, target in graph.edges if target >= width)
    assert largest_component(graph) > width


def test_companies_meet_in_a_few_events_only():
    catalogue = generate(Shape.TENANT, 1_000, 5)
    graph = edges_of(Shape.TENANT, 1_000)
    across = sum(source // 200 != target // 200 for source, target in graph.edges)
    assert 0 < across < graph.number_of_edges() / 2
    assert {int(company) for company in catalogue.company} == {-1, 0, 1, 2, 3, 4}


def test_a_ring_is_one_loop():
    assert list(map(len, nx.simple_cycles(edges_of(Shape.RING, 60)))) == [60]


def test_diamonds_lead_back_to_the_second_agent_alone():
    graph = edges_of(Shape.DIAMONDS, 2 + 3 * 4)
    assert list(graph.predecessors(0)) == [1]
    assert sorted(map(len, nx.simple_cycles(graph))) == [2, *[1 + 2 * 4] * 2**4]


def test_scopes_of_every_kind_occur():
    scopes = {version.agent.scope for version in generate(Shape.GIANT, 1_000, 1).versions()}
    assert Scope() in scopes
    assert any(scope.company and not scope.area for scope in scopes)
    assert any(scope.area for scope in scopes)


def test_a_million_agents_are_streamed():
    catalogue = generate(Shape.GIANT, 1_000_000, 1)
    bytes_held = sum(
        getattr(catalogue, name).nbytes for name in catalogue.__slots__ if isinstance(getattr(catalogue, name), np.ndarray)
    )
    assert bytes_held < 100 * 1_000_000
    assert len(list(itertools.islice(catalogue.versions(), 10))) == 10


@pytest.mark.promise("G-24")
@pytest.mark.parametrize(
    ("agents", "seed", "field"), [(1, 0, "agents"), (-5, 0, "agents"), (MAX_AGENTS + 1, 0, "agents"), (2, -1, "seed")]
)
def test_sizes_and_seeds_out_of_bounds_are_refused(agents, seed, field):
    with pytest.raises(InvalidInput) as caught:
        generate(Shape.RING, agents, seed)
    assert [violation.field for violation in caught.value.violations] == [field]
