"""read_artifact: the only way to the content of an artifact, by its name in the contract of the run's opening step (A-4 to A-6)."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import (
    DAMAGED,
    NOT_THERE,
    Artifact,
    Availability,
    Declassification,
    Entry,
    availability,
    in_force,
    read_labels,
)
from agentplat.domain.errors import ContentDamaged
from agentplat.domain.labels import parse_labels
from agentplat.domain.steps import ResultKind
from agentplat.domain.times import now_ms
from agentplat.domain.tools import READ_ARTIFACT, Asked, Effect, Given, Move, Place, ToolSpec
from agentplat.store.port import Store, Work
from agentplat.usecases.tool import Tool

SPEC = ToolSpec(
    name=READ_ARTIFACT,
    description="Reads an artifact that the event which started this run names. Takes its name, no ref and no digest.",
    schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"name": {"type": "string", "description": "A name of the event's contract."}},
        "required": ["name"],
        "additionalProperties": False,
    },
    effect=Effect.READ,
    longest_ms=10_000,
    # What is read brings the labels of its origin along, and there is nothing else in a result.
    labels=frozenset(),
    place=Place(modes=None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArtifact(Tool):
    """The tool."""

    store: Store
    content: ContentStore

    @property
    @override
    def spec(self) -> ToolSpec:
        return SPEC

    def _entry(self, asked: Asked) -> Entry | None:
        name = asked.arguments.get("name")
        return None if asked.delivery is None or not isinstance(name, str) else asked.delivery.entry(name)

    @override
    def fault(self, asked: Asked) -> str | None:
        if self._entry(asked) is not None:
            return None
        if asked.delivery is None:
            return "no event opened this run, so that there is no artifact for it to read"
        # What was asked for is not repeated: it may be a ref that was guessed right, and no answer may tell.
        names = ", ".join(entry.name for entry in asked.delivery.artifacts) or "none"
        return f"the event's contract has no artifact of this name; its names: {names}"

    @override
    def artifact(self, asked: Asked) -> str | None:
        entry = self._entry(asked)
        return None if entry is None else entry.name

    def _artifact(self, work: Work, entry: Entry) -> Artifact | None:
        if entry.missing or entry.source_run is None:
            return None
        return work.artifacts.find(entry.source_run, entry.name)

    @override
    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        entry = self._entry(asked)
        artifact = None if entry is None else self._artifact(work, entry)
        if entry is None or artifact is None:
            return ()
        # The contract and the artifact say the same, unless somebody wrote to the database past this software; both count.
        return (Move(labels=artifact.labels | parse_labels(entry.labels), into=asked.run.agent.scope),)

    @override
    def __call__(self, asked: Asked) -> Given:
        entry = self._entry(asked)
        assert entry is not None  # the Gate asked `fault` before
        with self.store.reading() as work:
            artifact = self._artifact(work, entry)
            acts = [] if artifact is None else in_force(work.artifacts.declassifications(artifact), now_ms())
        return self._given(entry, artifact, acts)

    def _given(self, entry: Entry, artifact: Artifact | None, acts: list[Declassification]) -> Given:
        standing = availability(artifact)
        if artifact is None or standing in NOT_THERE:
            labels = parse_labels(entry.labels) if standing is Availability.ERASED else frozenset()
            return Given(result=ResultKind.FAILED, labels=labels, reason=NOT_THERE[standing])
        labels = read_labels(artifact.labels, acts)
        try:
            if artifact.blob.digest != entry.digest:
                raise ContentDamaged(artifact.blob.digest)
            data = self.content.get(artifact.blob)
        except ContentDamaged:
            return Given(result=ResultKind.FAILED, labels=labels, reason=DAMAGED)
        lifted = [act for act in acts if act.label in {label.text for label in artifact.labels}]
        told = ", ".join(f"{act.label} (declassification {act.id} by {act.by})" for act in lifted)
        reason = f"read without {told}" if told else None
        return Given(result=ResultKind.DONE, data=data, labels=labels, reason=reason, copy_of=artifact)
