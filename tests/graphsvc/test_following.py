"""Keeping up with other replicas while publications take long."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from typing_extensions import override

from graphsvc.__main__ import _following
from graphsvc.domain.errors import Overloaded
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.kernels import reference
from graphsvc.service import GraphService
from graphsvc.settings import load
from graphsvc.store.opening import open_store
from tests.graphsvc.folding import version_of
from tests.graphsvc.rpc.serving import PATIENCE_S, wait_until
from tests.oracle import agent


class Watched(GraphService):
    """A service that tells when it was too busy to catch up."""

    refused = threading.Event()

    @override
    def catch_up(self) -> int:
        try:
            return super().catch_up()
        except Overloaded:
            self.refused.set()
            raise


@pytest.mark.promise("G-27")
def test_a_replica_that_was_too_busy_to_catch_up_goes_on_following(tmp_path: Path) -> None:
    url, policy = f"sqlite:///{tmp_path / 'graph.db'}", LimitPolicy(default=Limits(), ceiling=Limits())
    settings = load({"follow_interval_s": 0.01}, None)
    with (
        closing(Watched(open_store(url), policy, reference.search, patience_s=0.01)) as busy,
        closing(GraphService(open_store(url), policy, reference.search)) as other,
        _following(settings, busy),
    ):
        with busy._turn():
            assert busy.refused.wait(PATIENCE_S)
        other.import_versions([version_of(agent("a", ["x"], ["y"], "acme"))])
        wait_until(lambda: busy.revision == other.revision == 1, "the replica follows the other one")
