"""Pages of runs: the list, and one run with its trail as a timeline and its place in its chain (U-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Path, Query
from starlette.responses import JSONResponse, Response

from agentplat.domain.approvals import Approval
from agentplat.domain.budgets import Unit
from agentplat.domain.deliveries import Outcome
from agentplat.domain.insights import LoggedRun, RunFilter
from agentplat.domain.scopes import Ref
from agentplat.domain.shown_runs import ShownRun, ShownStep
from agentplat.domain.steps import StepKind
from agentplat.studio.rendering import Page, part_of
from agentplat.studio.visitors import Actor, NamedRef, Reader, Visitor, go_to
from agentplat.usecases.names import check_ref
from agentplat.usecases.show_chain import ChainRun, ShownChain, Stop
from agentplat.usecases.tell_runs import run_text, shown_step_text

router = APIRouter()

RUNS, STEPS = 50, 500
RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
After = Annotated[int, Query(ge=0, le=2**31 - 1)]

_QUIET = frozenset({StepKind.BUDGET_RESERVED, StepKind.BUDGET_SETTLED, StepKind.RESUMED})
_ALARMING = frozenset({"failed", "cancelled", "block", "refused", "hop_limit", "chain_unknown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step in words. tone: good, bad, warn, quiet or empty. digest: of the content that it is about, empty for none."""

    number: int
    kind: str
    at: int
    text: str
    tone: str
    labels: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactView:
    """An artifact by reference: never its content."""

    name: str
    ref: str
    digest: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage(Page):
    """The runs that a person may read, newest first. agent: of this one alone."""

    template: ClassVar[str] = "runs.html"
    runs: tuple[LoggedRun, ...]
    agent: Ref | None
    following: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage(Page):
    """One run. outcomes: what it opened or was kept from opening. stop: why its events were withheld.

    approval: what it waits for, where the person may answer. last: the number of the last step shown. more: whether others follow.
    """

    template: ClassVar[str] = "run.html"
    shown: ShownRun
    title: str
    steps: tuple[StepView, ...]
    artifacts: tuple[ArtifactView, ...]
    spent: Mapping[Unit, int]
    chain: ShownChain
    outcomes: tuple[Outcome, ...]
    stop: Stop | None
    approval: Approval | None
    last: int
    more: bool
    cancels: bool


@router.get("/runs", response_model=None)
def runs(found: Reader, agent: str = "", before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None) -> Response:
    """The list."""
    ref = check_ref(agent, "agent") if agent else None
    which = RunFilter(scopes=found.person.scopes, agent=ref)
    log = found.cases.monitor_runs.log(found.person, which, before, RUNS)
    following = log[-1].run.id if len(log) == RUNS else None
    return found.show(RunsPage(runs=tuple(log), agent=ref, following=following), "runs")


@router.post("/agents/{ref}/runs", response_model=None)
def open_run(found: Actor, ref: NamedRef) -> Response:
    """Open a run of the agent's published version."""
    run = found.cases.open_run(found.person, ref, found.form.get("input", "").strip() or None)
    return go_to(f"/runs/{run.id}")


@router.get("/runs/{run_id}", response_model=None)
def run(found: Reader, run_id: RunId, after: After = 0) -> Response:
    """One run, from behind a step on."""
    return found.show(_page(found, run_id, after), "runs")


@router.get("/runs/{run_id}/steps", response_model=None)
def steps(found: Reader, run_id: RunId, after: After = 0) -> Response:
    """What of the page came since a step, for a page that is open: the steps behind it, and what stands above and below them."""
    page = _page(found, run_id, after)
    frame = found.frame("runs")
    parts = {name: part_of(frame, "run_parts.html", name, page=page) for name in ("head", "facts", "steps", "after")}
    return JSONResponse({**parts, "last": page.last, "more": page.more, "ended": page.shown.run.ended})


@router.get("/runs/{run_id}/trail.json", response_model=None)
def raw(found: Reader, run_id: RunId, after: After = 0) -> Response:
    """The trail as JSON, as far as the reader may see it."""
    shown, listed = found.cases.read_runs.trail(found.person, run_id, after, STEPS)
    following = listed[-1].number if len(listed) == STEPS else None
    return JSONResponse({"run": shown.id, "steps": list(map(_raw, listed)), "next": following})


@router.post("/runs/{run_id}/cancel", response_model=None)
def cancel(found: Actor, run_id: RunId) -> Response:
    """Cancel the run."""
    found.cases.cancel_run(found.person, run_id)
    return go_to(f"/runs/{run_id}")


def _raw(step: ShownStep) -> dict[str, Any]:
    return {
        "number": step.number,
        "kind": step.kind.value,
        "at": step.at,
        "body": dict(step.body),
        "hidden": list(step.hidden),
        "previous": step.previous,
        "hash": step.hash,
    }


def _page(found: Visitor, run_id: int, after: int) -> RunPage:
    person, cases = found.person, found.cases
    shown = cases.read_runs.one(person, run_id)
    current, listed = cases.read_runs.trail(person, run_id, after, STEPS)
    # The whole trail tells of artifacts; a page shows a part of it.
    artifacts = _artifacts(listed if after == 0 else cases.read_runs.trail(person, run_id, 0, after + STEPS)[1])
    chain = cases.show_chain(person, run_id)
    own: ChainRun | None = next((one for one in chain.runs if one.id == run_id), None)
    return RunPage(
        shown=shown,
        title=run_text(shown, found.language),
        steps=tuple(_step(step, found) for step in listed),
        artifacts=artifacts,
        spent=cases.monitor_runs.spent(person, run_id),
        chain=chain,
        outcomes=() if own is None else own.outcomes,
        stop=next((stop for stop in chain.stops if stop.run_id == run_id), None),
        approval=cases.governing.approvals.open_for(person, run_id),
        last=listed[-1].number if listed else after,
        more=len(listed) == STEPS and current.steps > after + STEPS,
        cancels=person.may_publish(shown.run.agent.scope) and not shown.run.ended,
    )


def _step(step: ShownStep, found: Visitor) -> StepView:
    body = step.body
    words = {str(body.get(name, "")) for name in ("state", "ruling", "result")} | {str((body.get("withheld") or {}).get("why", ""))}
    refused = step.kind is StepKind.APPROVAL_GIVEN and not body["granted"]
    if words & _ALARMING or refused or step.kind is StepKind.CONTRACT_REJECTED:
        tone = "bad"
    elif step.kind in (StepKind.WAITING, StepKind.APPROVAL_ASKED) or "needs_approval" in words:
        tone = "warn"
    else:
        tone = "quiet" if step.kind in _QUIET or "allow" in words else "good" if step.kind is StepKind.CLOSING else ""
    content = body.get("content") or body.get("output") or body.get("arguments") or body.get("input") or {}
    return StepView(
        number=step.number,
        kind=step.kind.value,
        at=step.at,
        text=shown_step_text(step, found.language),
        tone=tone,
        labels=tuple(body.get("labels", ())),
        digest=str(content.get("digest", "")),
    )


def _artifacts(listed: list[ShownStep]) -> tuple[ArtifactView, ...]:
    published = (step.body for step in listed if step.kind is StepKind.ARTIFACT_PUBLISHED)
    return tuple(
        ArtifactView(name=body["name"], ref=body["ref"], digest=body["digest"], labels=tuple(body["labels"])) for body in published
    )
