"""``python -m tests.compile_kernels``: compile the kernels into numba's cache, where every process of a test run then finds them.

It takes half a minute of work, which each worker and each server under test would otherwise do again, within bounds of its own.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from graphsvc.audit.local import audit
from graphsvc.columns import in_columns
from graphsvc.declarations.bulk import read_columns
from graphsvc.declarations.files import write_file
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.service import GraphService
from graphsvc.store.memory import MemoryStore


def main() -> None:
    service = GraphService(MemoryStore(patience_s=10.0), LimitPolicy(default=Limits(), ceiling=Limits()))
    other = AgentVersion(parse_agent("acme:reviewer"), 1, declare(["review.done"], ["code.pushed"]))
    service.import_versions([other])
    service.check(parse_agent("acme:developer"), declare(["code.pushed"], ["review.done"]), EVERYTHING)
    service.close()
    loop = [other, AgentVersion(parse_agent("acme:developer"), 1, declare(["code.pushed"], ["review.done"]))]
    assert list(audit(in_columns(loop), EVERYTHING))
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "loop.parquet")
        write_file(path, loop)
        assert list(read_columns([path]))


if __name__ == "__main__":
    main()
