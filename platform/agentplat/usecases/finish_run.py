"""Ending a run: with an answer and artifacts, or as failed (A-1, A-2, R-7, R-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import FINAL_ANSWER, Answer, Blob
from agentplat.domain.chains import AtHopLimit, position_of, withheld
from agentplat.domain.errors import ContractUnmet, InvalidInput, Violation
from agentplat.domain.labels import texts
from agentplat.domain.runs import Run, RunState
from agentplat.domain.steps import ArtifactPublished, Closing, WithheldEvents, WithheldWhy
from agentplat.domain.times import now_ms
from agentplat.loop_check import check_name
from agentplat.store.port import Store, Work
from agentplat.usecases.keeping import keep_named
from agentplat.usecases.look_back import loop_gone_round
from agentplat.usecases.tell_space import end_run

MOST_ARTIFACTS = 100
MOST_ARTIFACT_BYTES = 16 * 1024 * 1024
MOST_REASON_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRun:
    """Ends runs, for whoever holds them."""

    store: Store
    content: ContentStore

    def __call__(self, run: Run, answer: Answer) -> Run:
        """Publish the answer and the artifacts, and finish.

        Everything of the trail and the state is stored at once, after the bytes are durable. Raises InvalidInput with every fault
        of the answer, ContractUnmet where a strict contract asks for an output that was not accepted, LeaseLost,
        ContentUnavailable, StoreUnavailable.
        """
        named, dropped = _checked(answer)
        blobs = {name: self.content.put(data) for name, data in named.items()}
        with self.store.writing() as work:
            _demand_output(work, run)
            at = now_ms()
            keep_named(work, self.content, {blobs[name]: data for name, data in named.items()})
            run = self._publish(work, run, blobs, at)
            return end_run(work, run, self._closing(work, run, dropped), at, answer.summary)

    def fail(self, run: Run, reason: str) -> Run:
        """End the run as failed; it publishes nothing. Raises LeaseLost, StoreUnavailable."""
        with self.store.writing() as work:
            closing = Closing(state=RunState.FAILED, reason=reason[:MOST_REASON_CHARACTERS])
            return end_run(work, run, closing, now_ms())

    def _publish(self, work: Work, run: Run, blobs: Mapping[str, Blob], at: int) -> Run:
        found = [work.artifacts.publish(run, name, blob, run.labels, at) for name, blob in sorted(blobs.items())]
        steps = [
            ArtifactPublished(
                name=artifact.name,
                ref=artifact.blob.ref,
                digest=artifact.blob.digest,
                source_run=run.id,
                labels=texts(artifact.labels),
            )
            for artifact in found
        ]
        return work.runs.append(run, steps, at)

    def _closing(self, work: Work, run: Run, dropped: tuple[str, ...]) -> Closing:
        # The version that was executed, whatever was published meanwhile.
        version = work.registry.version(work.registry.by_id(run.agent_id), run.number)
        events = () if version is None else tuple(emission.event for emission in version.content.emits)
        held_back = _held_back(work, run, events) if events else None
        published = () if held_back else events
        return Closing(state=RunState.FINISHED, published=published, withheld=held_back, dropped=dropped)


def _demand_output(work: Work, run: Run) -> None:
    """Raises ContractUnmet. It tells an output that was rejected from one that never came (D-12)."""
    contract = work.contracts.of_run(run.id)
    hindrance = None if contract is None else contract.hindrance
    if hindrance is not None:
        raise ContractUnmet(hindrance)


def _held_back(work: Work, run: Run, events: tuple[str, ...]) -> WithheldEvents | None:
    """Why the events stay where they are; None where they leave."""
    reason = withheld(position_of(run), work.chains.limits())
    if reason is None:
        return None
    if isinstance(reason, AtHopLimit):
        loop = loop_gone_round(work, run)
        return WithheldEvents(events=events, why=WithheldWhy.HOP_LIMIT, chain=reason.chain, limit=reason.limit, loop=loop)
    return WithheldEvents(events=events, why=WithheldWhy.CHAIN_UNKNOWN)


def _checked(answer: Answer) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The bytes by name, the final answer among them, and the names that are dropped. Raises InvalidInput with every fault."""
    faults: list[Violation] = []
    found: dict[str, bytes] = {}
    dropped: list[str] = []
    if len(answer.artifacts) > MOST_ARTIFACTS:
        faults.append(Violation(field="artifacts", reason="are too many", remedy=f"publish at most {MOST_ARTIFACTS}"))
    try:
        found[FINAL_ANSWER] = _bytes(answer.summary, "summary")
    except InvalidInput as error:
        faults.extend(error.violations)
    for given, text in answer.artifacts.items():
        field = f"artifacts.{given}"
        try:
            name, data = check_name(given, field), _bytes(text, field)
        except InvalidInput as error:
            faults.extend(error.violations)
            continue
        if name == FINAL_ANSWER:
            dropped.append(name)
        elif name in found:
            faults.append(Violation(field=field, reason="is published twice", remedy="give each artifact a name of its own"))
        else:
            found[name] = data
    if faults:
        raise InvalidInput(faults)
    return found, tuple(dropped)


def _bytes(text: str, field: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        remedy = "leave lone surrogates out"
        raise InvalidInput([Violation(field=field, reason="has a character that UTF-8 does not have", remedy=remedy)]) from None
    if len(data) > MOST_ARTIFACT_BYTES:
        remedy = f"use at most {MOST_ARTIFACT_BYTES} bytes of UTF-8"
        raise InvalidInput([Violation(field=field, reason=f"is {len(data)} bytes long", remedy=remedy)])
    return data
