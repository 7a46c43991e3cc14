"""Pages of agents and their versions: the list, one agent, one version with the warning that stays with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from agentplat.domain.outbox import Entry, EntryState
from agentplat.domain.registry import Version
from agentplat.domain.scopes import Ref
from agentplat.studio.manifests import as_yaml
from agentplat.studio.rendering import Page, agent_path
from agentplat.studio.reports import ReportView, report_view
from agentplat.studio.visitors import Actor, NamedRef, Reader, go_to
from agentplat.usecases.list_agents import ListedAgent
from agentplat.usecases.names import check_ref, check_scope

router = APIRouter()

_PAGE = 100
_VERSIONS = 50

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsPage(Page):
    """The agents that a person may read. scope: which of them, empty for all. following: the last one, where there are more."""

    template: ClassVar[str] = "agents.html"
    agents: tuple[ListedAgent, ...]
    scope: str
    scopes: tuple[str, ...]
    following: str | None
    publishes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPage(Page):
    """One agent. current: its published version. acts: whether the person may publish, pause and retire it."""

    template: ClassVar[str] = "agent.html"
    agent: Ref
    number: int | None
    paused: bool
    unsettled: Entry | None
    current: Version | None
    description: str
    report: ReportView | None
    versions: tuple[Version, ...]
    earlier: int | None
    acts: bool
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPage(Page):
    """One version. done: what has just happened to it: published, current or empty. manifest: as YAML."""

    template: ClassVar[str] = "version.html"
    version: Version
    is_current: bool
    report: ReportView
    manifest: str
    acts: bool
    done: str


@router.get("/agents", response_model=None)
def agents(found: Reader, scope: str = "", after: str | None = None) -> Response:
    """The list, by scope, then name."""
    within = check_scope(scope, "scope") if scope else ""
    begin = None if after is None else check_ref(after, "after")
    listed = found.cases.list_agents(found.person, begin, _PAGE, within or None)
    page = AgentsPage(
        agents=tuple(listed),
        scope=within,
        scopes=found.person.scopes,
        following=listed[-1].agent.ref.text if len(listed) == _PAGE else None,
        publishes=any(found.person.may_publish(one) for one in found.person.scopes),
    )
    return found.show(page, "agents")


@router.get("/agents/{ref}", response_model=None)
def agent(found: Reader, ref: NamedRef, below: Annotated[int | None, Query(ge=1)] = None) -> Response:
    """One agent with its versions, newest first."""
    listed, current = found.cases.list_agents.one(found.person, ref)
    versions = found.cases.list_agents.versions(found.person, ref, below, _VERSIONS)
    report = None if current is None else found.cases.read_report(found.person, ref, current.number)
    head = listed.unsettled
    page = AgentPage(
        agent=ref,
        number=listed.agent.current,
        paused=listed.agent.paused,
        unsettled=head,
        current=current,
        description="" if current is None else str(current.content.manifest["metadata"].get("description") or ""),
        report=None if report is None else report_view(report, found.language),
        versions=tuple(versions),
        earlier=versions[-1].number if len(versions) == _VERSIONS else None,
        acts=found.person.may_publish(ref.scope),
        refused=head is not None and head.state is EntryState.SET_ASIDE,
    )
    return found.show(page, "agents")


@router.get("/agents/{ref}/versions/{number}", response_model=None)
def version(found: Reader, ref: NamedRef, number: Number, done: str = "") -> Response:
    """One version with its report."""
    listed, _ = found.cases.list_agents.one(found.person, ref)
    shown = found.cases.list_agents.version(found.person, ref, number)
    page = VersionPage(
        version=shown,
        is_current=listed.agent.current == number,
        report=report_view(found.cases.read_report(found.person, ref, number), found.language),
        manifest=as_yaml(shown.content.manifest),
        acts=found.person.may_publish(ref.scope),
        done=done if done in ("published", "current") else "",
    )
    return found.show(page, "agents")


@router.post("/agents/{ref}/pause", response_model=None)
def pause(found: Actor, ref: NamedRef) -> Response:
    """Let the agent's triggers start nothing."""
    found.cases.pause_agent(found.person, ref, True)
    return go_to(agent_path(ref))


@router.post("/agents/{ref}/resume", response_model=None)
def resume(found: Actor, ref: NamedRef) -> Response:
    """Let the agent's triggers start it again."""
    found.cases.pause_agent(found.person, ref, False)
    return go_to(agent_path(ref))


@router.post("/agents/{ref}/retire", response_model=None)
def retire(found: Actor, ref: NamedRef) -> Response:
    """Take the agent out of service."""
    found.cases.retire_agent(found.person, ref)
    return go_to(agent_path(ref))
