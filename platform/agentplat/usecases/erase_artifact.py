"""Erasing the content of an artifact: a person's recorded act that nobody takes back (A-6)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access, Role
from agentplat.domain.errors import Unauthenticated
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.finding import readable_artifact
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
        if access.person is None:
            raise Unauthenticated
        with self.store.writing() as work:
            run, artifact = readable_artifact(work, access, run_id, name)
            access.demand(Role.ADMIN, run.agent.scope)
            said = check_reason(reason)
            work.artifacts.guard([artifact.blob.digest])
            new = work.artifacts.erase(artifact, access.person, now_ms())
            if new:
                details = {"run": run.id, "artifact": artifact.name, "digest": artifact.blob.digest, "reason": said}
                work.acts.record(now_ms(), access.person, "erase", run.agent, details)
            # Asked again, the bytes go again: the process may have ended between the bytes and the commit, or before both.
            if not work.artifacts.is_needed(artifact.blob.digest):
                self.content.erase(artifact.blob)
            return new
