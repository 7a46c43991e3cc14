"""A process that finishes a run while its content store's disk is full: python -m … URL CONTENT KIND.

KIND: ``disk`` where the folder lies on a disk too small for what is put, ``limit`` where the process limits the size of its files.
Prints ``refused`` where the store said so and the small artifact of a second try was kept.
"""

from __future__ import annotations

import resource
import signal
import sys
from contextlib import closing

from agentplat.content.opening import open_content
from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import ContentUnavailable
from agentplat.store.sql import open_store
from agentplat.usecases.finish_run import FinishRun

from tests.agentplat.run_records import leased

LARGE = "x" * 2_000_000


def main(url: str, folder: str, kind: str) -> None:
    """Finish the one run of the database, first with too much, then with little."""
    with closing(open_store(url)) as store:
        run = leased(store)
        finish = FinishRun(store=store, content=open_content(folder))
        if kind == "limit":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
        try:
            finish(run, Answer(summary="too much", artifacts={"large": LARGE}))
        except ContentUnavailable as error:
            print(f"refused: {error.reason}")
        else:
            raise SystemExit("a full disk was not noticed")
        with store.reading() as work:
            assert work.artifacts.of_run(run.id) == {}
            assert len(work.runs.trail(run.id)) == 1
        finish(run, Answer(summary="little"))


if __name__ == "__main__":
    main(*sys.argv[1:])
