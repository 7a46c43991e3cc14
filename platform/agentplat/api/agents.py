"""Routes of agents, their versions and reports."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from agentplat.api.callers import MANIFEST_BODY, Caller, Manifest, NamedRef, Served
from agentplat.api.models import (
    AgentDetailsOut,
    AgentOut,
    AgentsOut,
    PausedOut,
    PreviewOut,
    PreviewsOut,
    PublicationOut,
    PublicationsOut,
    ReportOut,
    ResumeDeliveryIn,
    RetirementOut,
    VersionOut,
    VersionsOut,
)
from agentplat.domain.languages import Language
from agentplat.usecases.names import check_ref

router = APIRouter(prefix="/v1", tags=["agents"])

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
PageSize = Annotated[int, Query(ge=1, le=1_000, description="most entries of a page")]
Tongue = Annotated[Language, Query(description="language of the texts")]


@router.post("/agents:publish", openapi_extra=MANIFEST_BODY)
def publish(
    served: Served,
    access: Caller,
    given: Manifest,
    language: Tongue = Language.EN,
    expected_version: Annotated[int | None, Query(ge=1, description="the number that the new version must get")] = None,
) -> PublicationsOut:
    """Publish every manifest of the body, all or none; the answer carries each one's report, or says that it comes later."""
    made = served.use_cases.publish_version(access, given.manifest, given.source, expected_version)
    return PublicationsOut(versions=[PublicationOut.made(publication, language) for publication in made])


@router.post("/agents:preview", openapi_extra=MANIFEST_BODY)
def preview(served: Served, access: Caller, given: Manifest, language: Tongue = Language.EN) -> PreviewsOut:
    """What publishing would tell, what it would change, and what to write in listeners; nothing is stored."""
    previews = served.use_cases.preview_version(access, given.manifest, given.source)
    return PreviewsOut(previews=[PreviewOut.of(found, language) for found in previews])


@router.get("/agents")
def list_agents(served: Served, access: Caller, after: str | None = None, page_size: PageSize = 100) -> AgentsOut:
    """The agents that the caller may read, by scope, then name."""
    begin = None if after is None else check_ref(after, "after")
    page = served.use_cases.list_agents(access, begin, page_size)
    following = page[-1].agent.ref.text if len(page) == page_size else None
    return AgentsOut(agents=[AgentOut.of(listed) for listed in page], next=following)


@router.get("/agents/{ref}")
def read_agent(served: Served, access: Caller, ref: NamedRef) -> AgentDetailsOut:
    """One agent with its published version."""
    listed, current = served.use_cases.list_agents.one(access, ref)
    details = None if current is None else VersionOut.of(current)
    return AgentDetailsOut(current=details, **AgentOut.of(listed).model_dump())


@router.get("/agents/{ref}/versions")
def list_versions(
    served: Served, access: Caller, ref: NamedRef, below: Annotated[int | None, Query(ge=1)] = None, page_size: PageSize = 20
) -> VersionsOut:
    """The agent's versions, newest first."""
    page = served.use_cases.list_agents.versions(access, ref, below, page_size)
    following = page[-1].number if len(page) == page_size else None
    return VersionsOut(versions=[VersionOut.of(version) for version in page], next=following)


@router.get("/agents/{ref}/versions/{number}")
def read_version(served: Served, access: Caller, ref: NamedRef, number: Number) -> VersionOut:
    """One version."""
    return VersionOut.of(served.use_cases.list_agents.version(access, ref, number))


@router.get("/agents/{ref}/versions/{number}/report")
def read_report(served: Served, access: Caller, ref: NamedRef, number: Number, language: Tongue = Language.EN) -> ReportOut:
    """The version's report as its publisher saw it, or a fresh one for a caller who may not read all of that."""
    return ReportOut.of(served.use_cases.read_report(access, ref, number), language)


@router.post("/agents/{ref}/retire")
def retire(served: Served, access: Caller, ref: NamedRef) -> RetirementOut:
    """Take the agent out of service and out of the graph; a new version brings it back."""
    done = served.use_cases.retire_agent(access, ref)
    return RetirementOut(agent=ref.text, created=done.created, delivered=done.delivered)


@router.post("/agents/{ref}/pause")
def pause(served: Served, access: Caller, ref: NamedRef) -> PausedOut:
    """Keep the agent in the graph but let its triggers start nothing."""
    return PausedOut(agent=ref.text, paused=True, changed=served.use_cases.pause_agent(access, ref, True))


@router.post("/agents/{ref}/resume")
def resume(served: Served, access: Caller, ref: NamedRef) -> PausedOut:
    """Let the agent's triggers start it again."""
    return PausedOut(agent=ref.text, paused=False, changed=served.use_cases.pause_agent(access, ref, False))


@router.post("/agents/{ref}/resume-delivery")
def resume_delivery(served: Served, access: Caller, ref: NamedRef, given: Annotated[ResumeDeliveryIn, Body()]) -> AgentDetailsOut:
    """Try a publication again that the graph service refused, or skip it, so that the agent's later ones are delivered."""
    served.use_cases.resume_delivery(access, ref, given.skip)
    return read_agent(served, access, ref)
