"""Declassifying: a person's recorded act on one artifact: who, why, which label, until when (A-11)."""

from __future__ import annotations

from dataclasses import dataclass

from agentplat.domain.access import Access, Role
from agentplat.domain.artifacts import Declassification
from agentplat.domain.errors import InvalidInput, Unauthenticated, Violation
from agentplat.domain.labels import Labels, parse_label, texts
from agentplat.domain.times import now_ms
from agentplat.store.port import Store
from agentplat.usecases.finding import readable_artifact
from agentplat.usecases.texts import check_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclassifyArtifact:
    """Lets an artifact be read without one of its labels for a while."""

    store: Store

    def __call__(self, access: Access, run_id: int, name: str, label: str, reason: str, until: int) -> Declassification:
        """Declassify. until: milliseconds since 1970, UTC; from then on the label counts again.

        What was read before keeps the label, and so does all that came of it. Raises NotFound where the run or the artifact is not
        readable, AccessDenied where the caller is no approver of its scope, InvalidInput, Unauthenticated, StoreUnavailable.
        """
        if access.person is None:
            raise Unauthenticated
        with self.store.writing() as work:
            run, artifact = readable_artifact(work, access, run_id, name)
            access.demand(Role.APPROVER, run.agent.scope)
            at, said = now_ms(), check_reason(reason)
            _check(label, artifact.labels, until, at)
            act = work.artifacts.declassify(artifact, label, said, access.person, at, until)
            details = {"run": run.id, "artifact": artifact.name, "label": label, "reason": said, "until": until}
            work.acts.record(at, access.person, "declassify", run.agent, details)
            return act


def _check(label: str, labels: Labels, until: int, now: int) -> None:
    """Raises InvalidInput with every fault."""
    faults: list[Violation] = []
    found = parse_label(label)
    if found.scope is not None:
        remedy = "connect agents in a scope that may carry the data, or publish an agent on purpose in a wider scope"
        faults.append(Violation(field="label", reason=f"{label} is of a place, and nothing lifts the barrier", remedy=remedy))
    elif found not in labels:
        remedy = f"it has: {', '.join(texts(labels)) or 'none'}"
        faults.append(Violation(field="label", reason=f"the artifact does not have the label {label}", remedy=remedy))
    if until <= now:
        faults.append(Violation(field="until", reason="is not in the future", remedy="say until when the label is to be lifted"))
    if faults:
        raise InvalidInput(faults)
