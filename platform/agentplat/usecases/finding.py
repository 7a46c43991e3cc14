"""Finding what a caller names. What they may not read is not there for them (O-5)."""

from __future__ import annotations

from dataclasses import replace

from agentplat.domain.access import Access, Person, Role
from agentplat.domain.errors import NotFound
from agentplat.domain.registry import Agent, Version
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.store.port import Work


def readable_agent(work: Work, access: Access, ref: Ref) -> Agent:
    """The agent. Raises NotFound where it is not there or not readable."""
    agent = work.registry.find(ref) if access.may_read(ref.scope) else None
    if agent is None:
        raise NotFound
    return agent


def readable_version(work: Work, access: Access, ref: Ref, number: int) -> Version:
    """The version. Raises NotFound where it is not there or not readable."""
    version = work.registry.version(readable_agent(work, access, ref), number)
    if version is None:
        raise NotFound
    return redacted(access, version)


def redacted(access: Access, version: Version) -> Version:
    """The version without a publisher whose home scope the reader may not read."""
    return replace(version, publisher=access.visible(version.publisher))


def publishable_agent(work: Work, access: Access, ref: Ref) -> Agent:
    """The agent, held until the transaction ends. Raises NotFound where it is not readable, AccessDenied where only read."""
    readable_agent(work, access, ref)
    access.demand_publishing(ref.scope)
    return work.registry.hold(ref)


def readable_run(work: Work, access: Access, run_id: int) -> Run:
    """The run. Raises NotFound where it is not there or its agent is not readable."""
    run = work.runs.find(run_id)
    if run is None or not access.may_read(run.agent.scope):
        raise NotFound
    return run


def managed_person(work: Work, access: Access, ref: Ref) -> Person:
    """The person, if the caller is an admin of their home scope. Raises NotFound where they are not there or not the caller's."""
    person = work.people.find(ref) if access.may(Role.ADMIN, ref.scope) else None
    if person is None:
        raise NotFound
    return person
