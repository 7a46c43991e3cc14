"""Routes of chains, their limits and the dispatcher."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime

from agentplat.api.agents import PageSize
from agentplat.api.callers import Caller, Served
from agentplat.api.dispatch_models import ChainOut, LimitsIn, LimitsOut, ReconciliationOut, ResumedOut, StatusOut

router = APIRouter(prefix="/v1", tags=["dispatch"])

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
Moment = Annotated[AwareDatetime | None, Query(description="RFC 3339 with its offset, such as 2026-03-01T12:30:00Z")]


def _ms(moment: datetime) -> int:
    return (moment - _FIRST) // timedelta(milliseconds=1)


@router.get("/dispatch")
def read_status(
    served: Served, access: Caller, after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0, page_size: PageSize = 100
) -> StatusOut:
    """What waits to be dispatched and what was set aside, in the scopes that the caller audits."""
    backlog, aside = served.use_cases.watch_dispatch.status(access, after, page_size)
    return StatusOut.of(backlog, aside, page_size)


@router.get("/dispatch/reconciliation")
def reconcile(served: Served, access: Caller, since: Moment = None, until: Moment = None) -> ReconciliationOut:
    """The account over every run that finished in a period, to the present where `until` is left out."""
    begin, end = _ms(since or _FIRST), _ms(until or datetime.now(UTC)) + (until is None)
    return ReconciliationOut.of(begin, end, served.use_cases.watch_dispatch.reconcile(access, begin, end))


@router.post("/dispatch/{run}/resume")
def resume(served: Served, access: Caller, run: RunId) -> ResumedOut:
    """Let a finished run that was set aside be tried again."""
    served.use_cases.watch_dispatch.resume(access, run)
    return ResumedOut(run=run)


@router.get("/limits")
def read_limits(served: Served, _: Caller) -> LimitsOut:
    """The limits of chains, which are the same for every worker."""
    return LimitsOut.of(served.use_cases.set_limits.read())


@router.patch("/limits")
def set_limits(served: Served, access: Caller, given: LimitsIn) -> LimitsOut:
    """Set limits of chains, for every worker at once."""
    return LimitsOut.of(served.use_cases.set_limits(access, given.hops, given.runs))


@router.get("/chains/{run}")
def read_chain(served: Served, access: Caller, run: RunId) -> ChainOut:
    """The chain that a run is of: its runs, what became of their deliveries, where and why it stopped, and who listens to whom."""
    return ChainOut.of(served.use_cases.show_chain(access, run))
