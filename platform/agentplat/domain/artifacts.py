"""Artifacts by reference: names, refs, digests, source runs and labels, and never the bytes (A-1 to A-6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentplat.domain.canonical import digest
from agentplat.domain.labels import Labels, parse_labels, texts
from agentplat.domain.registry import Emission

FINAL_ANSWER = "final_answer"
"""The built-in artifact: the summary that a run finished with (A-2)."""

_SCHEME = "sha256:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes in the content store. ref: where they are kept there. digest: SHA-256 in hexadecimal. size: in bytes."""

    ref: str
    digest: str
    size: int


def blob_of(data: bytes) -> Blob:
    """What these bytes are called in the content store; equal bytes are kept once."""
    hashed = digest(data)
    return Blob(ref=f"{_SCHEME}{hashed}", digest=hashed, size=len(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a run finishes with. artifacts: texts by name; one named `final_answer` is dropped (A-2)."""

    summary: str
    artifacts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A published artifact. erased_at: milliseconds since 1970, UTC, where its bytes were taken away on purpose."""

    id: int
    run_id: int
    name: str
    blob: Blob
    labels: Labels
    published_at: int
    erased_at: int | None


class Availability(StrEnum):
    """What there is under a name; three of the four have no content, and are three different answers (A-6)."""

    PRESENT = "present"
    EMPTY = "empty"
    MISSING = "missing"
    ERASED = "erased"


def availability(artifact: Artifact | None) -> Availability:
    """How things stand with what a name of a contract names."""
    if artifact is None:
        return Availability.MISSING
    if artifact.erased_at is not None:
        return Availability.ERASED
    return Availability.PRESENT if artifact.blob.size else Availability.EMPTY


NOT_THERE = {
    Availability.MISSING: "missing: the source published no artifact of this name",
    Availability.ERASED: "erased: the content of this artifact was taken away on purpose",
}
"""The answers to a name without content. An empty artifact is there, and has a content of no bytes."""

DAMAGED = "damaged: the content of this artifact is lost or is not what was published, and is not served"
"""The answer where the content store does not have what it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declassification:
    """A person's act: until a moment, an artifact is read without one of its labels. Times in milliseconds since 1970, UTC."""

    id: int
    artifact_id: int
    label: str
    reason: str
    by: str
    at: int
    expires_at: int


def in_force(declared: Iterable[Declassification], now: int) -> list[Declassification]:
    """Those of the acts that count now."""
    return [act for act in declared if act.at <= now < act.expires_at]


def read_labels(labels: Labels, acts: Iterable[Declassification]) -> Labels:
    """What a reader of the artifact takes on while these acts are in force. Labels of a place stay: nothing lifts the barrier."""
    lifted = {act.label for act in acts}
    return frozenset(label for label in labels if label.scope is not None or label.text not in lifted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of a contract as it stood when the event left. A missing one has its name and nothing else (A-4)."""

    name: str
    missing: bool = False
    ref: str | None = None
    digest: str | None = None
    source_run: int | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a listener is told of the event that opened its run: names and where they come from, never content (A-4).

    context: the kind of context that the event declares. source_agent: its reference as text.
    """

    event: str
    source_agent: str
    source_run: int
    artifacts: tuple[Entry, ...]
    context: str | None = None

    def entry(self, name: str) -> Entry | None:
        """The entry of a name of the contract; None for any other text, a ref or digest too (A-5)."""
        return next((entry for entry in self.artifacts if entry.name == name), None)


def carried(delivery: Delivery) -> Labels:
    """The labels of all that an event carries, which the barrier is asked about before anything of it is stored (A-9)."""
    return parse_labels(label for entry in delivery.artifacts for label in entry.labels)


def _entry(name: str, artifact: Artifact | None) -> Entry:
    if artifact is None:
        return Entry(name=name, missing=True)
    return Entry(
        name=name,
        ref=artifact.blob.ref,
        digest=artifact.blob.digest,
        source_run=artifact.run_id,
        labels=texts(artifact.labels),
    )


def resolve(emission: Emission, source_agent: str, source_run: int, published: Mapping[str, Artifact]) -> Delivery:
    """The event's contract against what its source published. published: the source run's artifacts by name."""
    return Delivery(
        event=emission.event,
        context=emission.context,
        source_agent=source_agent,
        source_run=source_run,
        artifacts=tuple(_entry(name, published.get(name)) for name in emission.artifacts),
    )
