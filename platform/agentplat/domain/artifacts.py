"""Artifacts by reference: names, refs, digests, source runs and labels, and never the bytes (A-1 to A-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentplat.domain.canonical import digest
from agentplat.domain.labels import Labels, texts
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
