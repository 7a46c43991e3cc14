"""The runner of pipelines: moves every pipeline in which something is to be done, for as long as it lives (D-16).

Any number may run on one database, in any number of processes; each worker process has one. One that is killed leaves the pipeline
as it was, and the next one goes on with it.
"""

from __future__ import annotations

import time

import structlog
from typing_extensions import override

from agentplat.background import Background
from agentplat.domain.errors import ContentUnavailable, StoreUnavailable
from agentplat.domain.outbox import Backoff
from agentplat.usecases.run_pipelines import RunPipelines

MOST_FAULTS = 5
"""How often moving a pipeline may end in disorder before it is ended as failed."""

_BACKOFF = Backoff(first_s=1.0, longest_s=60.0)

log = structlog.get_logger()


class PipelineRunner(Background):
    """poll_s: seconds between two looks."""

    def __init__(self, pipelines: RunPipelines, poll_s: float) -> None:
        super().__init__("pipelines")
        self._pipelines, self._poll_s = pipelines, poll_s
        self._faults: dict[int, int] = {}
        self._not_before: dict[int, float] = {}

    @override
    def _turn(self) -> float:
        try:
            self._look_through()
        except StoreUnavailable:
            log.warning("no pipelines can be moved: the database does not answer")
        except Exception:
            log.exception("moving pipelines failed by a fault of ours")
        return self._poll_s

    def _look_through(self) -> None:
        """Move each pipeline that is due, by id; one that can not be moved holds up no other."""
        after = 0
        while not self._stopping.is_set() and (due := self._pipelines.due(after)):
            for pipeline_id in due:
                if not self._stopping.is_set() and self._not_before.get(pipeline_id, 0.0) <= time.monotonic():
                    self._move(pipeline_id)
            after = due[-1]

    def _move(self, pipeline_id: int) -> None:
        try:
            moved = self._pipelines(pipeline_id)
        except StoreUnavailable:
            raise
        except ContentUnavailable as error:
            log.warning("a pipeline waits: the content store does not answer", pipeline=pipeline_id, reason=error.reason)
            self._wait(pipeline_id, 1)
        except Exception:
            faults = self._faults[pipeline_id] = self._faults.get(pipeline_id, 0) + 1
            log.exception("a pipeline could not be moved", pipeline=pipeline_id, attempts=faults)
            self._wait(pipeline_id, faults)
            if faults >= MOST_FAULTS:
                self._pipelines.give_up(pipeline_id)
                self._forget(pipeline_id)
        else:
            self._forget(pipeline_id)
            if moved is not None:
                log.info("pipeline moved", pipeline=pipeline_id, state=moved.state)

    def _wait(self, pipeline_id: int, attempts: int) -> None:
        self._not_before[pipeline_id] = time.monotonic() + _BACKOFF.wait_s(attempts, 0.0)

    def _forget(self, pipeline_id: int) -> None:
        self._faults.pop(pipeline_id, None)
        self._not_before.pop(pipeline_id, None)
