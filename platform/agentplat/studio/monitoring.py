"""Monitoring: who does what just now, and what a period came to (U-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from agentplat.domain.errors import InvalidInput, Violation, phrase
from agentplat.domain.insights import LoggedRun, RunFilter, Totals
from agentplat.domain.runs import RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.studio.places import Place
from agentplat.studio.rendering import Page, part_of
from agentplat.studio.visitors import Reader, Visitor
from agentplat.usecases.monitor_runs import Roster
from agentplat.usecases.names import check_ref, check_scope

router = APIRouter()

HOUR_MS = 3_600_000
PERIODS = {"1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS, "30d": 30 * 24 * HOUR_MS}
_RUNS = 50

Before = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage(Page):
    """The agents and what they do. path: of this page, for the filter and for what comes in later."""

    template: ClassVar[str] = "live.html"
    path: str
    place: Place | None
    scope: str
    scopes: tuple[str, ...]
    roster: Roster
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightsPage(Page):
    """The run log of a period, and what it came to against the period before."""

    template: ClassVar[str] = "insights.html"
    path: str
    place: Place | None
    scope: str
    scopes: tuple[str, ...]
    period: str
    periods: tuple[str, ...]
    agent: Ref | None
    state: str
    states: tuple[RunState, ...]
    log: tuple[LoggedRun, ...]
    now: Totals
    before: Totals
    following: str


@router.get("/monitoring/live", response_model=None)
def live(found: Reader, scope: str = "") -> Response:
    """The live roster of a scope."""
    return found.show(live_page(found, scope), "live")


@router.get("/monitoring/live/rows", response_model=None)
def live_rows(found: Reader, scope: str = "") -> Response:
    """The roster as it is now, for a page that is open."""
    return JSONResponse({"rows": part_of(found.frame("live"), "live_parts.html", "rows", page=live_page(found, scope))})


def live_page(found: Visitor, scope: str, path: str = "/monitoring/live", place: Place | None = None) -> LivePage:
    """The roster of a scope. place: the workspace that the page belongs to, None for none."""
    within = check_scope(scope, "scope") if scope else ""
    roster = found.cases.monitor_runs.roster(found.person, within or None)
    return LivePage(path=path, place=place, scope=within, scopes=found.person.scopes, roster=roster, now=now_ms())


@router.get("/monitoring/insights", response_model=None)
def insights(
    found: Reader, scope: str = "", period: str = "7d", agent: str = "", state: str = "", before: Before = None
) -> Response:
    """What the runs of a period came to."""
    asked = InsightsQuery(scope=scope, period=period, agent=agent, state=state, before=before)
    return found.show(insights_page(found, asked), "insights")


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightsQuery:
    """What somebody wants to know."""

    scope: str = ""
    period: str = "7d"
    agent: str = ""
    state: str = ""
    before: int | None = None


def insights_page(
    found: Visitor, asked: InsightsQuery, path: str = "/monitoring/insights", place: Place | None = None
) -> InsightsPage:
    """What the runs came to. place: the workspace that the page belongs to, None for none."""
    scope, period, agent, state, before = asked.scope, asked.period, asked.agent, asked.state, asked.before
    within = check_scope(scope, "scope") if scope else ""
    ref = check_ref(agent, "agent") if agent else None
    span, states = _span(period), _states(state)
    end = now_ms()
    scopes = found.person.scopes if not within else found.person.scopes_in(within)
    which = RunFilter(scopes=scopes, since=end - span, until=end, agent=ref, states=states)
    earlier = RunFilter(scopes=scopes, since=end - 2 * span, until=end - span, agent=ref, states=states)
    log = found.cases.monitor_runs.log(found.person, which, before, _RUNS)
    more = {"scope": within, "period": period, "agent": agent, "state": state, "before": log[-1].run.id if log else ""}
    return InsightsPage(
        path=path,
        place=place,
        scope=within,
        scopes=found.person.scopes,
        period=period,
        periods=tuple(PERIODS),
        agent=ref,
        state=state,
        states=tuple(RunState),
        log=tuple(log),
        now=found.cases.monitor_runs.totals(found.person, which),
        before=found.cases.monitor_runs.totals(found.person, earlier),
        following=urlencode(more) if len(log) == _RUNS else "",
    )


def _span(period: str) -> int:
    if period not in PERIODS:
        remedy = phrase("choose one of %(words)s", words=", ".join(PERIODS))
        raise InvalidInput([Violation(field="period", reason=phrase("is %(given)s", given=repr(period)), remedy=remedy)])
    return PERIODS[period]


def _states(state: str) -> tuple[RunState, ...]:
    if state and state not in set(RunState):
        remedy = phrase("choose one of %(words)s", words=", ".join(RunState))
        raise InvalidInput([Violation(field="state", reason=phrase("is %(given)s", given=repr(state)), remedy=remedy)])
    return (RunState(state),) if state else ()
