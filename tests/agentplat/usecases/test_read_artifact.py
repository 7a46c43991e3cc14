"""read_artifact on real stores: names of the contract and nothing else, with the labels of their origin."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentplat.content.folder import FolderContent
from agentplat.domain.access import Role
from agentplat.domain.artifacts import FINAL_ANSWER, Answer, Blob, Entry
from agentplat.domain.budgets import holders
from agentplat.domain.errors import AccessDenied, InvalidInput, NotFound
from agentplat.domain.labels import parse_labels, texts
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import ArtifactPublished, Closing, GateRuling, Opening, ResultKind, ToolCall, ToolResult
from agentplat.domain.times import now_ms
from agentplat.store.sql import SqlStore
from agentplat.usecases.call_tool import MOST_NAME_CHARACTERS
from agentplat.usecases.declassify_artifact import DeclassifyArtifact
from agentplat.usecases.erase_artifact import EraseArtifact
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.lease_run import LeaseRun
from agentplat.usecases.open_run import OpenRun
from typing_extensions import override

from tests.agentplat.access_records import access
from tests.agentplat.run_records import fault_of, stored
from tests.agentplat.tool_records import Shop, emission, shop

TRIAGE, FIXER = Ref("acme/platform", "triage"), Ref("acme/platform", "fixer")
CONTRACT = ("triage_summary", "suspected_cause", "nothing", "letter", FINAL_ANSWER)
ARTIFACTS = {"triage_summary": "The API is healthy.", "nothing": "", "letter": "Dear Ms. A", "not_in_contract": "private notes"}
NAME = "triage_summary"


@pytest.fixture
def platform(store: SqlStore, tmp_path: Path) -> Shop:
    found = shop(store, tmp_path)
    found.publish(TRIAGE, emits=[emission("incident.triaged", *CONTRACT)])
    found.publish(FIXER, listens=["incident.triaged"])
    return found


def started(platform: Shop, marks: tuple[str, ...] = ()) -> tuple[Run, Run]:
    """A finished source, and the run that its event started."""
    source = platform.finish(platform.open(TRIAGE, parse_labels(marks)), ARTIFACTS, summary="Triaged.")
    listener = platform.deliver(source, "incident.triaged", FIXER)
    assert isinstance(listener, Run)
    return source, listener


@pytest.mark.promise("A-1", "A-3", "A-4")
def test_a_listener_is_told_names_refs_digests_source_and_labels_and_no_content(platform: Shop) -> None:
    source, listener = started(platform, ("untrusted",))
    opening = platform.trail(listener)[0]
    assert isinstance(opening, Opening)
    assert opening.delivery is not None
    told = opening.delivery
    assert (told.event, told.context, told.source_agent, told.source_run) == (
        "incident.triaged",
        "incident",
        TRIAGE.text,
        source.id,
    )
    assert tuple(entry.name for entry in told.artifacts) == CONTRACT
    assert told.entry("suspected_cause") == Entry(name="suspected_cause", missing=True)
    with platform.store.reading() as work:
        published = work.artifacts.of_run(source.id)
        bodies = [step.body for run in (source, listener) for step in work.runs.trail(run.id)]
    blob = published[NAME].blob
    labels = ("area:acme/platform", "untrusted")
    assert told.entry(NAME) == Entry(name=NAME, ref=blob.ref, digest=blob.digest, source_run=source.id, labels=labels)
    steps = [step for step in platform.trail(source) if isinstance(step, ArtifactPublished)]
    assert sorted(step.name for step in steps) == sorted([*ARTIFACTS, FINAL_ANSWER])
    for text in (*filter(None, ARTIFACTS.values()), "Triaged."):
        assert text not in "".join(bodies)
    # Being told of an artifact is not reading it.
    assert texts(listener.labels) == ("area:acme/platform",)


@pytest.mark.promise("A-5", "A-8")
def test_reading_a_name_of_the_contract_gives_the_content_and_the_labels_of_its_origin(platform: Shop) -> None:
    _, run = started(platform, ("untrusted", "personal"))
    run, result = platform.call(run, 1, "read_artifact", {"name": NAME})
    assert (result.result, platform.text(result)) == (ResultKind.DONE, "The API is healthy.")
    assert result.labels == ("area:acme/platform", "personal", "untrusted")
    assert texts(stored(platform.store, run.id).labels) == result.labels
    kinds = [type(step).__name__ for step in platform.trail(run)[1:]]
    assert kinds == ["ToolCall", "GateRuling", "BudgetReserved", "BudgetSettled", "ToolResult"]
    assert platform.ruling(run) == ("allow", "autonomy")
    [asked] = [step for step in platform.trail(run) if isinstance(step, ToolCall)]
    assert asked.artifact == NAME
    run, _ = platform.call(run, 2, "read_artifact", {"name": FINAL_ANSWER})
    closed = platform.finish(run, {"fix": "restart"})
    with platform.store.reading() as work:
        published = work.artifacts.of_run(closed.id)
        spent = {
            budget.holder.name: budget.spent
            for budget in work.budgets.of(holders(closed.agent_id, closed.agent, closed.id))
            if budget.unit == "tool_calls"
        }
    assert {texts(artifact.labels) for artifact in published.values()} == {("area:acme/platform", "personal", "untrusted")}
    assert spent == {"the installation": 2, "acme": 2, "acme/platform": 2, FIXER.text: 2, f"run {closed.id}": 2}


@pytest.mark.promise("A-5")
def test_a_ref_a_digest_or_any_other_name_is_refused_however_right_it_is(platform: Shop) -> None:
    source, run = started(platform)
    with platform.store.reading() as work:
        published = work.artifacts.of_run(source.id)
    blob, hidden = published[NAME].blob, published["not_in_contract"].blob
    guesses = [blob.ref, blob.digest, hidden.ref, hidden.digest, "not_in_contract", f"{source.id}/{NAME}", "../triage_summary", ""]
    reasons = set()
    for call, guess in enumerate(guesses, 1):
        run, result = platform.call(run, call, "read_artifact", {"name": guess})
        assert (result.result, result.content, result.labels) == (ResultKind.REFUSED, None, ())
        assert platform.ruling(run) == ("block", "arguments")
        reasons.add(result.reason)
    # One answer for all, so that none tells whether a guess was right.
    assert len(reasons) == 1
    run, result = platform.call(run, len(guesses) + 1, "read_artifact", {"name": NAME, "ref": hidden.ref})
    assert result.result is ResultKind.REFUSED
    run, result = platform.call(run, len(guesses) + 2, "read_artifact", {"ref": blob.ref})
    assert result.result is ResultKind.REFUSED
    with platform.store.reading() as work:
        trail = "".join(step.body for step in work.runs.trail(run.id, after=1))
    assert hidden.digest not in trail
    assert "not_in_contract" not in trail


@pytest.mark.promise("A-5")
def test_a_run_that_no_event_started_has_nothing_to_read(platform: Shop) -> None:
    started(platform)
    _, result = platform.call(platform.open(FIXER), 1, "read_artifact", {"name": NAME})
    assert (result.result, result.reason) == (
        ResultKind.REFUSED,
        "no event opened this run, so that there is no artifact for it to read",
    )


def _read(platform: Shop, run: Run, call: int, name: str) -> tuple[Run, ToolResult]:
    return platform.call(run, call, "read_artifact", {"name": name})


@pytest.mark.promise("A-6")
def test_missing_empty_erased_and_damaged_are_different_answers(platform: Shop) -> None:
    source, run = started(platform, ("personal",))
    admin = access(platform.store, "acme:ana", (Role.ADMIN, "acme"))
    erase = EraseArtifact(store=platform.store, content=platform.content)
    assert erase(admin, source.id, "letter", "asked for by its writer")
    assert not erase(admin, source.id, "letter", "asked for by its writer")
    with platform.store.reading() as work:
        damaged = work.artifacts.of_run(source.id)[NAME].blob
        assert [act.act for act in work.acts.page(["acme"], None, 10)][:1] == ["erase"]
    (platform.content._file(damaged)).write_bytes(b"The API is healthy!")
    answers = {}
    for call, name in enumerate(("suspected_cause", "nothing", "letter", NAME), 1):
        run, result = _read(platform, run, call, name)
        answers[name] = (result.result, result.content is not None, (result.reason or "").partition(":")[0], result.labels)
    labels = ("area:acme/platform", "personal")
    assert answers == {
        "suspected_cause": (ResultKind.FAILED, False, "missing", ()),
        "nothing": (ResultKind.DONE, True, "", labels),
        "letter": (ResultKind.FAILED, False, "erased", labels),
        NAME: (ResultKind.FAILED, False, "damaged", labels),
    }


@pytest.mark.promise("A-6")
def test_erased_bytes_go_when_nothing_else_needs_them_and_are_not_named_again_without_being_there(platform: Shop) -> None:
    source, _ = started(platform)
    other = platform.finish(platform.open(TRIAGE), {"copy": ARTIFACTS["letter"]})
    admin = access(platform.store, "acme:ana", (Role.ADMIN, "acme"))
    erase = EraseArtifact(store=platform.store, content=platform.content)
    with platform.store.reading() as work:
        blob = work.artifacts.of_run(source.id)["letter"].blob
    assert erase(admin, source.id, "letter", "asked for")
    assert platform.content.has(blob)
    assert erase(admin, other.id, "copy", "asked for")
    assert not platform.content.has(blob)
    run = platform.open(TRIAGE)
    platform.finish(run, {"letter": ARTIFACTS["letter"]})
    assert platform.content.get(blob) == b"Dear Ms. A"


@pytest.mark.promise("A-6", "A-7")
def test_bytes_that_are_erased_just_before_they_are_named_again_are_there_all_the_same(platform: Shop, tmp_path: Path) -> None:
    source, _ = started(platform)
    admin = access(platform.store, "acme:ana", (Role.ADMIN, "acme"))
    erase = EraseArtifact(store=platform.store, content=platform.content)

    class ErasedAtOnce(FolderContent):
        """A folder in which somebody erases the bytes between their being put and their being named."""

        @override
        def put(self, data: bytes) -> Blob:
            blob = super().put(data)
            with platform.store.reading() as work:
                named = work.artifacts.find(source.id, "letter")
            if data == b"Dear Ms. A" and named is not None and named.erased_at is None:
                erase(admin, source.id, "letter", "asked for")
            return blob

    run = platform.open(TRIAGE)
    answer = Answer(summary="s", artifacts={"letter": "Dear Ms. A"})
    FinishRun(store=platform.store, content=ErasedAtOnce(tmp_path / "content"))(run, answer)
    with platform.store.reading() as work:
        [old, new] = [work.artifacts.of_run(which.id)["letter"] for which in (source, run)]
    assert (old.erased_at is None, new.erased_at) == (False, None)
    assert platform.content.get(new.blob) == b"Dear Ms. A"


@pytest.mark.promise("A-6")
def test_what_is_erased_while_it_is_being_read_does_not_come_back_as_a_copy(platform: Shop, tmp_path: Path) -> None:
    source, run = started(platform, ("personal",))
    admin = access(platform.store, "acme:ana", (Role.ADMIN, "acme"))
    erase = EraseArtifact(store=platform.store, content=platform.content)

    class ErasedWhileRead(FolderContent):
        """A folder in which somebody erases the letter between its being read and its being kept as a result."""

        @override
        def get(self, blob: Blob) -> bytes:
            data = super().get(blob)
            erase(admin, source.id, "letter", "asked for")
            return data

    with platform.store.reading() as work:
        blob = work.artifacts.of_run(source.id)["letter"].blob
    slow = Shop(store=platform.store, content=ErasedWhileRead(tmp_path / "content"), tools={})
    run, result = slow.call(run, 1, "read_artifact", {"name": "letter"})
    assert (result.result, result.content, (result.reason or "").partition(":")[0]) == (ResultKind.FAILED, None, "erased")
    assert result.labels == ("area:acme/platform", "personal")
    assert not platform.content.has(blob)


@pytest.mark.promise("A-6")
def test_what_the_opener_of_a_run_wrote_is_erased_and_the_run_is_told_nothing_of_it(platform: Shop) -> None:
    author = access(platform.store, "acme:ana", (Role.AUTHOR, "acme"), (Role.ADMIN, "acme"))
    opened = [
        OpenRun(store=platform.store, content=platform.content)(author, TRIAGE, text) for text in ("Dear Ms. A", "Dear Ms. A", None)
    ]
    with platform.store.reading() as work:
        given = work.runs.input(opened[0].id)
    assert given is not None
    erase = EraseArtifact(store=platform.store, content=platform.content)
    assert erase.input(author, opened[0].id, "asked for")
    assert platform.content.has(given[0])
    assert erase.input(author, opened[1].id, "asked for")
    assert not erase.input(author, opened[1].id, "asked for")
    assert not platform.content.has(given[0])
    with pytest.raises(NotFound):
        erase.input(author, opened[2].id, "asked for")
    with pytest.raises(AccessDenied):
        erase.input(access(platform.store, "acme:bo", (Role.AUTHOR, "acme")), opened[1].id, "why")
    lease = LeaseRun(store=platform.store, content=platform.content, lease_s=60)
    held = lease.prepare(platform.lease())
    assert (held.run.id, held.input) == (opened[0].id, None)
    assert fault_of(platform.store, opened[0].id) is None


@pytest.mark.promise("A-6")
def test_only_an_admin_of_the_scope_erases_and_says_why(platform: Shop) -> None:
    source, _ = started(platform)
    erase = EraseArtifact(store=platform.store, content=platform.content)
    with pytest.raises(AccessDenied):
        erase(access(platform.store, "acme:bo", (Role.AUTHOR, "acme")), source.id, "letter", "why")
    with pytest.raises(NotFound):
        erase(access(platform.store, "globex:eve", (Role.ADMIN, "globex")), source.id, "letter", "why")
    admin = access(platform.store, "acme:ana", (Role.ADMIN, "acme"))
    with pytest.raises(NotFound):
        erase(admin, source.id, "no such", "why")
    with pytest.raises(InvalidInput, match="reason"):
        erase(admin, source.id, "letter", " ")
    with platform.store.reading() as work:
        assert work.artifacts.of_run(source.id)["letter"].erased_at is None


@pytest.mark.promise("A-11")
def test_a_person_lifts_a_label_of_one_artifact_for_a_while_and_it_is_recorded(platform: Shop) -> None:
    source, run = started(platform, ("untrusted", "personal"))
    declassify = DeclassifyArtifact(store=platform.store)
    approver = access(platform.store, "acme:ana", (Role.APPROVER, "acme/platform"))
    act = declassify(approver, source.id, NAME, "untrusted", "read and found harmless", now_ms() + 3_600_000)
    run, result = _read(platform, run, 1, NAME)
    assert result.labels == ("area:acme/platform", "personal")
    assert result.reason == f"read without untrusted (declassification {act.id} by acme:ana)"
    with platform.store.reading() as work:
        [recorded] = [found for found in work.acts.page(["acme"], None, 10) if found.act == "declassify"]
    assert recorded.details["reason"] == "read and found harmless"
    # The other artifacts of the run, and runs that read it before, are as they were.
    run, result = _read(platform, run, 2, "nothing")
    assert "untrusted" in result.labels
    assert "untrusted" in texts(stored(platform.store, run.id).labels)


@pytest.mark.promise("A-11")
def test_a_label_that_was_lifted_counts_again_when_its_time_is_over(platform: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    source, run = started(platform, ("untrusted",))
    approver = access(platform.store, "acme:ana", (Role.APPROVER, "acme/platform"))
    until = now_ms() + 3_600_000
    DeclassifyArtifact(store=platform.store)(approver, source.id, NAME, "untrusted", "harmless", until)
    monkeypatch.setattr("agentplat.usecases.read_artifact.now_ms", lambda: until)
    _, result = _read(platform, run, 1, NAME)
    assert result.labels == ("area:acme/platform", "untrusted")


@pytest.mark.promise("A-11")
@pytest.mark.parametrize(
    ("label", "until", "field"),
    [("area:acme/platform", 1, "label"), ("company:acme", 1, "label"), ("secret", 1, "label"), ("untrusted", -1, "until")],
)
def test_no_label_of_a_place_is_lifted_and_none_that_is_not_there(platform: Shop, label: str, until: int, field: str) -> None:
    source, _ = started(platform, ("untrusted",))
    approver = access(platform.store, "acme:ana", (Role.APPROVER, "acme"))
    with pytest.raises(InvalidInput) as refusal:
        DeclassifyArtifact(store=platform.store)(approver, source.id, NAME, label, "why", now_ms() + until * 3_600_000)
    assert [violation.field for violation in refusal.value.violations] == [field]
    author = access(platform.store, "acme:bo", (Role.AUTHOR, "acme"))
    with pytest.raises(AccessDenied):
        DeclassifyArtifact(store=platform.store)(author, source.id, NAME, "untrusted", "why", now_ms() + 1_000)
    with platform.store.reading() as work:
        assert work.artifacts.declassifications(work.artifacts.of_run(source.id)[NAME]) == []


@pytest.mark.promise("A-2")
def test_an_artifact_named_final_answer_is_dropped_and_the_trail_says_so(platform: Shop) -> None:
    run = platform.finish(platform.open(TRIAGE), {FINAL_ANSWER: "something else", "x": "y"}, summary="The answer.")
    closing = platform.trail(run)[-1]
    assert isinstance(closing, Closing)
    assert (run.state.value, closing.dropped) == ("finished", (FINAL_ANSWER,))
    listener = platform.deliver(run, "incident.triaged", FIXER)
    assert isinstance(listener, Run)
    _, result = _read(platform, listener, 1, FINAL_ANSWER)
    assert platform.text(result) == "The answer."


@pytest.mark.promise("A-12")
def test_whatever_a_model_calls_a_tool_no_trail_holds_it_unbounded(platform: Shop) -> None:
    run = platform.open(FIXER)
    for call, name in enumerate(("x" * (MOST_NAME_CHARACTERS + 1), "a\nb", "\ud800"), 1):
        run, result = platform.call(run, call, name, {})
        assert result.reason == "this run has no tool '(unreadable)'"
    assert all(step.tool == "(unreadable)" for step in platform.trail(run) if isinstance(step, ToolCall))
    for wrong in ({"x": float("nan")}, {"x": "\ud800"}, {"x": 2**60}, _deep(100)):
        with pytest.raises(InvalidInput, match="arguments"):
            platform.call(run, 9, "look", wrong)
    assert len([step for step in platform.trail(run) if isinstance(step, GateRuling)]) == 3


def _deep(levels: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(levels):
        found = {"x": found}
    return found
