"""Erasing the content of an artifact, or the input of a run: a person's recorded act that nobody takes back (A-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access, Person, Role
from agentplat.domain.artifacts import Blob
from agentplat.domain.errors import NotFound, Unauthenticated
from agentplat.domain.runs import Run
from agentplat.domain.times import now_ms
from agentplat.store.port import Store, Work
from agentplat.usecases.finding import readable_artifact, readable_run
from agentplat.usecases.texts import check_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseArtifact:
    """Takes contents away."""

    store: Store
    content: ContentStore

    def __call__(self, access: Access, run_id: int, name: str, reason: str) -> bool:
        """Erase; False where it was erased already. Name, ref, digest and labels stay, for the trail to be whole.

        Equal bytes are kept once, so they go when nothing else that was not erased needs them; results of calls that read the
        artifact are the same bytes and go with them. Raises NotFound where the run or the artifact is not readable, AccessDenied
        where the caller is no admin of its scope, InvalidInput, Unauthenticated, ContentUnavailable, StoreUnavailable.
        """
        with self.store.writing() as work:
            run, artifact = readable_artifact(work, access, run_id, name)
            person = _demand(access, run)
            said = check_reason(reason)
            work.artifacts.guard([artifact.blob.digest])
            new = work.artifacts.erase(artifact, person, now_ms())
            self._finish(work, run, artifact.blob, {"artifact": artifact.name, "reason": said} if new else None, person)
            return new

    def input(self, access: Access, run_id: int, reason: str) -> bool:
        """Erase what the opener of a run wrote; False where it was erased already. The opening step keeps its ref and digest.

        Raises NotFound where the run is not readable or has no input, else as erasing an artifact does.
        """
        with self.store.writing() as work:
            run = readable_run(work, access, run_id)
            person = _demand(access, run)
            said = check_reason(reason)
            given = work.runs.input(run_id)
            if given is None:
                raise NotFound
            blob, _ = given
            work.artifacts.guard([blob.digest])
            new = work.artifacts.erase_input(run, person, now_ms())
            self._finish(work, run, blob, {"input": True, "reason": said} if new else None, person)
            return new

    def _finish(self, work: Work, run: Run, blob: Blob, details: Mapping[str, Any] | None, person: Person) -> None:
        """Record the act where it is new, and take the bytes away where nothing needs them any more.

        Asked again, the bytes go again: the process may have ended between the bytes and the commit, or before both.
        """
        if details is not None:
            work.acts.record(now_ms(), person, "erase", run.agent, {"run": run.id, "digest": blob.digest, **details})
        if not work.artifacts.is_needed(blob.digest):
            self.content.erase(blob)


def _demand(access: Access, run: Run) -> Person:
    """The person who may erase what the run has. Raises AccessDenied, Unauthenticated."""
    if access.person is None:
        raise Unauthenticated
    access.demand(Role.ADMIN, run.agent.scope)
    return access.person
