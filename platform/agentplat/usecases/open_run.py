"""Opening a run by a person (R-1, R-3). Runs that other runs open come from the dispatcher."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access, Person
from agentplat.domain.actions import driver_of
from agentplat.domain.artifacts import Blob
from agentplat.domain.chains import OpenedBy
from agentplat.domain.contracts import OutputContract
from agentplat.domain.errors import Conflict, InvalidInput, Unauthenticated, Violation, phrase
from agentplat.domain.labels import Labels, crossing, join, label_of
from agentplat.domain.registry import Version
from agentplat.domain.runs import NewRun, Run
from agentplat.domain.scopes import Ref
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import readable_agent
from agentplat.usecases.keeping import keep_named

MOST_INPUT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """Opens runs of the published version of an agent, at hop 0 of a chain of their own."""

    store: Store
    content: ContentStore

    def __call__(
        self,
        access: Access,
        ref: Ref,
        text: str | None = None,
        labels: Labels = frozenset(),
        contract: OutputContract | None = None,
    ) -> Run:
        """Open a run. text: what the agent is to work on, None for nothing. labels: what the text is labelled with (A-8).

        contract: what the run's output has to fit (D-10).

        Raises NotFound where the agent is not readable, AccessDenied where the caller may not publish in its scope, Conflict where
        it has no published version, InvalidInput, Unauthenticated, ContentUnavailable, StoreUnavailable.
        """
        if access.person is None:
            raise Unauthenticated
        with self.store.reading() as work:
            self._version(work, access, ref)
        # The barrier comes before anything of the input is stored.
        _demand_passage(labels, ref)
        data = None if text is None else _bytes(text)
        # Durable before anything names it; bytes that a failure below leaves behind are named by nobody.
        given = None if data is None else self.content.put(data)
        with self.store.writing() as work:
            if data is not None and given is not None:
                keep_named(work, self.content, {given: data})
            run = work.runs.open(self._new(self._version(work, access, ref), access.person, given, labels), now_ms())
            if run is None:
                raise AssertionError("only a delivery can have opened its run before")
            if contract is not None:
                work.contracts.declare(run.id, contract.schema, contract.mode)
        return run

    def _version(self, work: Work, access: Access, ref: Ref) -> Version:
        agent = readable_agent(work, access, ref)
        access.demand_publishing(ref.scope)
        version = None if agent.current is None else work.registry.version(agent, agent.current)
        if version is None:
            raise Conflict(phrase("%(agent)s has no published version; publish one first", agent=ref))
        return version

    def _new(self, version: Version, person: Person, given: Blob | None, labels: Labels) -> NewRun:
        return NewRun(
            agent=version.agent,
            number=version.number,
            driver=driver_of(version.content.manifest),
            opened_by=OpenedBy.PERSON,
            opener=person,
            on_behalf_of=person,
            labels=join(label_of(version.agent.ref.scope), labels),
            input=given,
        )


def _bytes(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data, reason = b"", phrase("has a character that UTF-8 does not have")
    else:
        reason = phrase("is %(size)s bytes long", size=len(data)) if len(data) > MOST_INPUT_BYTES else phrase("")
    if reason:
        remedy = phrase("use at most %(most)s bytes of UTF-8", most=MOST_INPUT_BYTES)
        raise InvalidInput([Violation(field="input", reason=reason, remedy=remedy)])
    return data


def _demand_passage(labels: Labels, ref: Ref) -> None:
    """Raises InvalidInput where the barrier keeps data with these labels from the agent's scope."""
    stopped = crossing(labels, ref.scope)
    if stopped is not None:
        remedy = "open a run of an agent in a scope that may carry the data"
        raise InvalidInput([Violation(field="labels", reason=f"{stopped.label} may not go there: {stopped.rule}", remedy=remedy)])
