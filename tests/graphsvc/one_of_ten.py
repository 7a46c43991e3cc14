"""One process of many that make the same publication; prints the digests of its reports as JSON.

Arguments: the store's URL, the kernel, a seed for the order in which readable agents arrive, one for the order of the hidden ones.
"""

from __future__ import annotations

import json
import random
import sys
from contextlib import closing

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.service import GraphService
from graphsvc.store.opening import open_store
from tests.graphsvc.folding import KERNELS, reader, version_of
from tests.oracle import Agent, agent

EVENTS = [f"event {i}" for i in range(12)]
# An event of its own for each hidden agent, so that their order shows in the hops.
SECRET = [f"from {i}" for i in range(6)]
HUB = agent("hub", [*EVENTS[:4], *SECRET], EVENTS[4:8], "acme/platform")


def catalogue() -> tuple[list[Agent], list[Agent]]:
    """Readable agents and hidden ones."""
    rng = random.Random(11)
    places = ["acme", "acme/platform", "acme/finance"]
    seen = [agent(f"a{i % 20}", rng.sample(EVENTS, 2), rng.sample(EVENTS, 2), places[i // 20]) for i in range(60)]
    hidden = [agent(f"h{i}", [EVENTS[4]], [SECRET[i], EVENTS[5]], "globex") for i in range(6)]
    return seen, hidden


def arrivals(order: int, hidden_order: int) -> list[Agent]:
    """All agents in one order of arrival; that of the hidden ones among themselves depends on nothing but their seed."""
    seen, hidden = catalogue()
    random.Random(hidden_order).shuffle(hidden)
    rng = random.Random(order)
    rng.shuffle(seen)
    places = sorted(rng.sample(range(len(seen) + len(hidden)), len(hidden)))
    for place, one in zip(places, hidden, strict=True):
        seen.insert(place, one)
    return seen


def main(url: str, kernel: str, order: str, hidden_order: str) -> None:
    policy = LimitPolicy(default=Limits(max_loops=40), ceiling=Limits(max_loops=40))
    with closing(GraphService(open_store(url), policy, KERNELS[kernel])) as service:
        for one in arrivals(int(order), int(hidden_order)):
            service.publish(version_of(one), EVERYTHING)
        published = service.publish(version_of(HUB), EVERYTHING)
        version = version_of(HUB)
        part = service.check(version.agent, version.declaration, reader(["acme"]))
        answer = {
            "everything": published.report.digest,
            "acme": part.digest,
            "loops": len(published.report.loops),
            "hidden": sum(one is None for loop in part.loops for one in loop.agents),
            "words": hash("a text"),
        }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
