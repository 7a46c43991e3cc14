"""Names mean nothing but their order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from graphsvc.domain.limits import Limits
from graphsvc.domain.names import parse_agent
from graphsvc.graph import Kernel
from tests.oracle import Agent
from tests.properties.worlds import NAMES, SCOPES, World, kernels, limits, renamed, worlds

# No two of these look alike, before or after.
EVENTS = ("alpha", "bravo", "charlie", "delta", "echo", "never emitted")
OTHER_EVENTS = dict(zip(EVENTS, ("b", "bb", "c", "ç", "ד", "😀"), strict=True))
OTHER_NAMES = dict(zip(sorted(NAMES), ("1", "11", "12", "2", "Z", "aa", "ab", "b"), strict=True))
OTHER_SCOPES = {
    "*": "*",
    "acme": "corp",
    "acme/finance": "corp/1",
    "acme/platform": "corp/2",
    "globex": "umbrella",
    "globex/platform": "umbrella/x",
}


def test_the_other_names_keep_the_order() -> None:
    for names in (OTHER_EVENTS, OTHER_NAMES, OTHER_SCOPES):
        assert [names[name] for name in sorted(names)] == sorted(names.values())
    assert set(OTHER_SCOPES) == set(SCOPES)


@pytest.mark.promise("G-5", "G-11")
@settings(max_examples=150)
@given(worlds(EVENTS[:-1]), limits, kernels)
def test_names_that_keep_their_order_give_the_same_report_in_other_words(world: World, limits: Limits, kernel: Kernel) -> None:
    refs = {one.ref if isinstance(one, Agent) else one.text for one in (*world.history, world.proposed)}
    agents = {ref: (OTHER_NAMES[parse_agent(ref).name], OTHER_SCOPES[parse_agent(ref).scope.text]) for ref in refs}
    other = renamed(world, agents, lambda _, event: OTHER_EVENTS[event])
    other = World(history=other.history, proposed=other.proposed, reader=tuple(OTHER_SCOPES[scope] for scope in world.reader))

    words = {ref: f"{scope}:{name}" for ref, (name, scope) in agents.items()} | OTHER_EVENTS

    def translated(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: item if key in ("verification", "proof", "kind", "digest") else translated(item) for key, item in value.items()
            }
        if isinstance(value, list):
            return [translated(item) for item in value]
        return words[value] if isinstance(value, str) else value

    before, after = world.report(limits, kernel).as_json(), other.report(limits, kernel).as_json()
    del before["digest"], after["digest"]
    assert json.dumps(translated(before)) == json.dumps(after)
