"""Agents have an order by name and scope that holds however they arrive."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphsvc.domain.notices import look_alike
from graphsvc.kernels.nodes import EVENT, Nodes
from graphsvc.kernels.places import Places


@pytest.mark.promise("G-5")
@pytest.mark.parametrize("seed", range(12))
def test_places_are_in_the_order_of_names_and_then_of_scopes(seed: int) -> None:
    rng = random.Random(seed)
    scopes = [f"company-{number}/area" for number in rng.sample(range(99), 5)]
    rank = np.argsort(np.argsort(np.array(scopes))).astype(np.int32)
    nodes, places, keys = Nodes(look_alike), Places(), dict[int, tuple[str, str]]()
    for _ in range(40):
        count = rng.choice([1, 1, 1, 3, 200])
        chosen = [rng.randrange(EVENT, len(scopes)) for _ in range(count)]
        given = [
            rng.choice(["", "a", "é", "z", "ab", str(rng.randrange(999)), chr(rng.randrange(0x10000, 0x10FFFF))]) for _ in chosen
        ]
        for scope, name, node in zip(chosen, given, nodes.add(chosen, given).tolist(), strict=True):
            if scope != EVENT:
                keys[int(nodes.arrays.agent[node])] = (name, scopes[scope])
        places.settle(nodes, rank)
        ordered = list(places)
        assert ordered == sorted(keys, key=keys.__getitem__)
        numbers = [int(places.number[agent]) for agent in ordered]
        assert numbers == sorted(set(numbers))


@pytest.mark.promise("G-5")
def test_agents_that_always_squeeze_in_before_the_same_one_find_a_place() -> None:
    nodes, places, rank = Nodes(look_alike), Places(), np.zeros(1, np.int32)
    names = [f"{number:04}" for number in range(2_000)]
    for name in ["zz", *names]:
        nodes.add([0], [name])
        places.settle(nodes, rank)
    ordered = [nodes.name(int(nodes.arrays.node[agent])) for agent in places]
    assert ordered == [*names, "zz"]
