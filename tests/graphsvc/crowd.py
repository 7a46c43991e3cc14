"""One process that loads an event with very many emitters and listeners and checks agents around it; prints what it found and used.

Argument: how many emit the event, and how many hear it.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.service import GraphService
from graphsvc.store.opening import MEMORY, open_store

HUB = "crowded"
BOTH = declare([HUB], [HUB])


def ref(name: str) -> AgentRef:
    return AgentRef(Scope(), name)


def versions(count: int) -> Iterator[AgentVersion]:
    """`count` agents that emit the event and as many that hear it; `twin` does both, and one listener more leads back to `far`."""
    for i in range(count - 1):
        yield AgentVersion(ref(f"emitter {i}"), 1, declare([HUB], []))
        yield AgentVersion(ref(f"listener {i}"), 1, declare(["back"] if i == count // 2 else [], [HUB]))
    yield AgentVersion(ref("twin"), 1, BOTH)


def peak_bytes() -> int:
    """The most memory that this process ever held. What `getrusage` tells of Linux processes includes their parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(count: str) -> None:
    policy = LimitPolicy(default=Limits(), ceiling=Limits(max_visits=10_000_000))
    with closing(GraphService(open_store(MEMORY), policy)) as service:
        done = service.import_versions(versions(int(count)))
        sizes = service.status(EVERYTHING).sizes
        assert sizes is not None
        asked = {"self": ("self", BOTH), "far": ("far", declare([HUB], ["back"])), "twin": ("twin", BOTH)}
        reports: dict[str, Any] = {}
        for name, (agent, declaration) in asked.items():
            reports[name] = service.check(ref(agent), declaration, EVERYTHING, max_visits=10_000_000).as_json()
    print(json.dumps({"created": done.created, "incidences": sizes.incidences, "peak_bytes": peak_bytes(), "reports": reports}))


if __name__ == "__main__":
    main(*sys.argv[1:])
