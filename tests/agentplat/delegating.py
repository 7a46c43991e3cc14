"""A process that delegates for held runs: python -m … DATABASE FOLDER WORKSPACE SPACE KILL RUN…; prints what came of each.

KILL: ``never``; ``before`` or ``after`` ends it with SIGKILL around the moment that its first delegation sets budgets aside.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from agentplat.domain.budgets import Budget, Unit
from agentplat.domain.errors import StoreUnavailable
from agentplat.store.budgets import SqlBudgets
from agentplat.store.sql import open_store

from tests.agentplat.delegation_records import Desk

BUDGET = {"tokens": 3}


def _die_around(when: str) -> None:
    """Let this process be killed in the middle of its first delegation."""
    inner = SqlBudgets.set_aside

    def killed(
        self: SqlBudgets, run_id: int, delegator_run_id: int, amounts: Mapping[Unit, int], budgets: Sequence[Budget]
    ) -> None:
        if when == "after":
            inner(self, run_id, delegator_run_id, amounts, budgets)
        os.kill(os.getpid(), signal.SIGKILL)

    SqlBudgets.set_aside = killed  # type: ignore[method-assign]


def main(url: str, folder: str, workspace_id: str, space_id: str, when: str, *runs: str) -> None:
    """Delegate once for each run, several at once."""
    if when != "never":
        _die_around(when)
    with closing(open_store(url)) as store:
        with store.reading() as work:
            workspace, space = work.workspaces.find(int(workspace_id)), work.spaces.find(int(space_id))
        assert workspace is not None
        assert space is not None
        desk = Desk(store=store, folder=Path(folder), workspace=workspace, space=space)

        def delegate(run_id: str) -> None:
            given = {"agent": "B", "title": f"for {run_id}", "description": "do it", "budget": BUDGET}
            while True:
                # A database that is busy for long is asked again with the same call, as a worker does.
                with contextlib.suppress(StoreUnavailable):
                    _, result = desk.call(desk.now(int(run_id)), 1, "delegate_task", given)
                    break
            print(json.dumps([int(run_id), result.result.value, result.reason]), flush=True)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(delegate, runs))


if __name__ == "__main__":
    main(*sys.argv[1:])
