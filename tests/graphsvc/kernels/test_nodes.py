"""Names become numbers and are found again, each in its own scope, whatever they are made of."""

from __future__ import annotations

import random

import pytest

from graphsvc.domain.notices import look_alike
from graphsvc.kernels.nodes import EVENT, UNKNOWN, Nodes

LETTERS = "abcdsS ABC_.-:07éſKß漢😀"


def names(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choices(LETTERS, k=rng.randrange(0, 9))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_a_name_keeps_the_number_that_it_got_first(seed: int) -> None:
    rng = random.Random(seed)
    nodes, known = Nodes(look_alike), dict[tuple[int, str], int]()
    for _ in range(60):
        given = names(rng, rng.randrange(0, 70))
        scopes = [rng.choice([EVENT, 0, 1, 900]) for _ in given]
        keys = list(zip(scopes, given, strict=True))
        assert nodes.find(scopes, given).tolist() == [known.get(key, UNKNOWN) for key in keys]
        for key, node in zip(keys, nodes.add(scopes, given).tolist(), strict=True):
            assert known.setdefault(key, node) == node
        assert nodes.count == len(known)
    assert sorted(known.values()) == list(range(len(known)))
    for (scope, name), node in known.items():
        agent = nodes.arrays.agent[node]
        assert nodes.name(node) == name
        assert (agent == EVENT) == (scope == EVENT)
        assert scope == EVENT or (nodes.arrays.scope[agent], nodes.arrays.node[agent]) == (scope, node)


@pytest.mark.promise("G-18")
@pytest.mark.parametrize("seed", range(5))
def test_events_that_look_alike_are_found_by_each_others_names(seed: int) -> None:
    rng = random.Random(seed)
    nodes, looks = Nodes(look_alike), dict[str, set[str]]()
    for _ in range(40):
        given = names(rng, 40)
        nodes.add([EVENT] * len(given), given)
        nodes.add([0] * len(given), given)  # an agent of that name is not an event
        for name in given:
            looks.setdefault(look_alike(name), set()).add(name)
    for look, events in looks.items():
        for event in events:
            assert sorted(nodes.alike(event)) == sorted(events), look


def test_hundreds_that_look_alike_are_all_found() -> None:
    nodes = Nodes(look_alike)
    spelt = ["code" + "." * dots + "ready" for dots in range(1, 300)]
    nodes.add([EVENT] * len(spelt), spelt)
    assert sorted(nodes.alike("CodeReady")) == sorted(spelt)
