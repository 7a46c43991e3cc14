"""Trails: any change to one is found, whichever part of it was changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from agentplat.domain.artifacts import Blob, Delivery, Entry, blob_of
from agentplat.domain.chains import OpenedBy
from agentplat.domain.runs import RunState, WaitingFor
from agentplat.domain.steps import (
    ApprovalAsked,
    ApprovalGiven,
    ArtifactPublished,
    Body,
    BudgetReserved,
    BudgetSettled,
    Closing,
    ContractAccepted,
    ContractRejected,
    GateRuling,
    ModelTurn,
    Opening,
    ResultKind,
    Resumed,
    Ruling,
    StepKind,
    TakenOver,
    ToolCall,
    ToolResult,
    Waiting,
    WithheldEvents,
    WithheldWhy,
    as_json,
    body_of,
    kind_of,
)
from agentplat.domain.trail import BEFORE_FIRST, Step, next_step, verify
from hypothesis import given
from hypothesis import strategies as st

BLOB: Blob = blob_of(b"content")
DELIVERED = Delivery(
    event="incident.triaged",
    context="incident",
    source_agent="acme:triage",
    source_run=3,
    artifacts=(
        Entry(name="cause", ref=BLOB.ref, digest=BLOB.digest, source_run=3, labels=("area:acme/platform", "untrusted")),
        Entry(name="never", missing=True),
    ),
)
OPENING = Opening(
    opened_by=OpenedBy.EVENT,
    agent="acme/platform:fixer",
    version=2,
    on_behalf_of="acme:ana",
    labels=("area:acme/platform",),
    hop=1,
    chain=3,
    source_run=3,
    delivery=DELIVERED,
    input=BLOB,
)
CLOSING = Closing(
    state=RunState.FINISHED,
    withheld=WithheldEvents(events=("a", "b"), why=WithheldWhy.HOP_LIMIT, chain=3, limit=8),
    dropped=("final_answer",),
)
BETWEEN: list[Body] = [
    TakenOver(attempt=2),
    ModelTurn(model="m", content=BLOB, tokens_read=10, tokens_written=3),
    ToolCall(call=1, tool="read_artifact", arguments=BLOB, artifact="cause"),
    GateRuling(call=1, ruling=Ruling.NEEDS_APPROVAL, rule="autonomy", reason="writes"),
    BudgetReserved(call=1, amounts={"tool_calls": 1}),
    ApprovalAsked(call=1, digest=BLOB.digest),
    Waiting(waiting_for=WaitingFor.APPROVAL, call=1),
    ApprovalGiven(call=1, digest=BLOB.digest, by="acme:bo", granted=True),
    Resumed(waited_for=WaitingFor.APPROVAL),
    ToolResult(call=1, result=ResultKind.DONE, labels=("untrusted",), content=BLOB),
    BudgetSettled(call=1, amounts={"tool_calls": 1}),
    ContractRejected(output=BLOB, faults=2, tries_left=2),
    ContractAccepted(output=BLOB),
    ArtifactPublished(name="final_answer", ref=BLOB.ref, digest=BLOB.digest, source_run=7, labels=("untrusted",)),
]
EVERY: list[Body] = [OPENING, *BETWEEN, CLOSING]
RUN = 7


def trail_of(*bodies: Body, run_id: int = RUN) -> list[Step]:
    found: list[Step] = []
    for body in bodies:
        found.append(next_step(run_id, len(found), found[-1].hash if found else None, body, 1_000 + len(found)))
    return found


WHOLE = trail_of(*EVERY)


def fault(trail: list[Step], ended: bool = True, steps: int = len(WHOLE), head: str | None = WHOLE[-1].hash) -> tuple[int, str]:
    found = verify(RUN, steps, head, ended, trail)
    assert found is not None
    return found.number, found.reason


@pytest.mark.promise("R-2")
def test_there_is_a_step_for_everything_that_happens() -> None:
    assert {kind_of(body) for body in EVERY} == set(StepKind)


@pytest.mark.promise("R-2")
@pytest.mark.parametrize("body", EVERY, ids=kind_of)
def test_every_step_reads_as_it_was_written(body: Body) -> None:
    values = as_json(body)
    assert body_of(kind_of(body), json.loads(json.dumps(values))) == body
    assert body_of(kind_of(body), {**values, "added_by_a_later_version": 1}) == body


@pytest.mark.promise("R-2")
def test_a_trail_as_it_was_written_has_no_fault() -> None:
    assert verify(RUN, len(WHOLE), WHOLE[-1].hash, True, WHOLE) is None
    assert WHOLE[0].previous == BEFORE_FIRST
    assert [step.number for step in WHOLE] == list(range(1, len(WHOLE) + 1))


@pytest.mark.promise("R-2")
@given(st.integers(0, len(WHOLE) - 1), st.sampled_from(["run_id", "number", "kind", "at", "body", "previous", "hash"]), st.data())
def test_any_change_of_any_field_of_any_step_is_found_at_that_step(i: int, field: str, data: st.DataObject) -> None:
    step = WHOLE[i]
    old = getattr(step, field)
    if field == "body":
        # Words, spelling and spaces: the very text is what was hashed.
        other = data.draw(st.sampled_from([old.replace(":", ": ", 1), '{"attempt":9}', "{", old.replace('"', "'", 1)]))
    elif isinstance(old, int):
        other = data.draw(st.integers(0, 10_000))
    elif field == "kind":
        other = data.draw(st.sampled_from(StepKind))
    else:
        other = data.draw(st.sampled_from([old[::-1], "f" * 64]))
    if other == old:
        return
    changed = [*WHOLE[:i], replace(step, **{field: other}), *WHOLE[i + 1 :]]
    assert fault(changed)[0] == i + 1


@pytest.mark.promise("R-2")
def test_steps_that_are_left_out_repeated_moved_or_added_are_found() -> None:
    for i in range(len(WHOLE)):
        assert fault(WHOLE[:i] + WHOLE[i + 1 :])[0] <= len(WHOLE)
        assert fault([*WHOLE[: i + 1], *WHOLE[i:]])[0] == i + 2
    swapped = [WHOLE[0], WHOLE[2], WHOLE[1], *WHOLE[3:]]
    assert fault(swapped) == (2, "step 2 is missing; step 3 follows")
    added = next_step(RUN, len(WHOLE), WHOLE[-1].hash, TakenOver(attempt=3), 1)
    assert fault([*WHOLE, added], steps=len(WHOLE) + 1, head=added.hash) == (len(WHOLE) + 1, "follows the closing step")


@pytest.mark.promise("R-2")
def test_a_trail_cut_off_at_its_end_is_found_whether_or_not_the_run_has_ended() -> None:
    number, reason = fault(WHOLE[:-2], ended=False)
    assert (number, "of which the last are not these" in reason) == (len(WHOLE) - 1, True)
    shorter = WHOLE[:-1]
    assert fault(shorter, steps=len(shorter), head=shorter[-1].hash) == (len(WHOLE), "the run has ended without a closing step")
    assert fault([]) == (1, "there is no opening step")


@pytest.mark.promise("R-2")
def test_a_trail_made_anew_from_the_middle_on_is_not_the_one_that_the_run_knows() -> None:
    forged = trail_of(OPENING, *BETWEEN[1:], CLOSING)
    assert verify(RUN, len(WHOLE), WHOLE[-1].hash, True, forged) is not None


@pytest.mark.promise("R-2")
def test_a_trail_of_another_run_is_not_taken_for_this_one() -> None:
    other = trail_of(*EVERY, run_id=RUN + 1)
    assert fault(other, head=other[-1].hash) == (1, "belongs to run 8")


@pytest.mark.promise("R-3")
def test_an_opening_step_without_a_hop_reads_as_one_whose_chain_is_not_recorded() -> None:
    values = {key: value for key, value in as_json(OPENING).items() if key not in ("hop", "chain")}
    read = body_of(StepKind.OPENING, values)
    assert isinstance(read, Opening)
    assert (read.hop, read.chain) == (None, None)
