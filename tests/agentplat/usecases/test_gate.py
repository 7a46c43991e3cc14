"""The Gate before every call, on real stores: what is ruled, what runs, and what the trail says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.access import Access, Role
from agentplat.domain.artifacts import blob_of
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.errors import AccessDenied, Conflict, ContentDamaged, LeaseLost, NotFound, RunFailed, RunWaits
from agentplat.domain.labels import parse_labels, texts
from agentplat.domain.runs import Run, RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import (
    ApprovalAsked,
    ApprovalGiven,
    Closing,
    GateRuling,
    ResultKind,
    Resumed,
    ToolCall,
    ToolResult,
    Waiting,
)
from agentplat.domain.tools import UNTRUSTED, Asked, Effect, Given
from agentplat.store.migrating import migrate
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.call_tool import DISORDER, UNKNOWN
from agentplat.usecases.decide_approval import DecideApproval
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from tests.agentplat.access_records import access
from tests.agentplat.run_records import execute, fault_of, stored
from tests.agentplat.tool_records import Noting, Shop, changed, shop, tools

DEVELOPER = Ref("acme/platform", "developer")
APPROVER = (Role.APPROVER, "acme/platform")


@pytest.fixture
def platform(store: SqlStore, tmp_path: Path) -> Shop:
    found = shop(store, tmp_path)
    found.publish(DEVELOPER)
    return found


def _approvals(platform: Shop) -> DecideApproval:
    return DecideApproval(store=platform.store, content=platform.content)


def _asked(platform: Shop, tool: str = "pay", **arguments: Any) -> tuple[Run, int, str]:
    """A run that waits for an approval: the run, the question and its digest."""
    run = platform.waits(platform.open(DEVELOPER), 1, tool, {"text": "100", **arguments})
    [asked] = [step for step in platform.trail(run) if isinstance(step, ApprovalAsked)]
    with platform.store.reading() as work:
        question = work.approvals.of_call(run.id, 1)
    assert question is not None
    return run, question.id, asked.digest


@pytest.mark.promise("A-12", "A-13")
@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("nothing", {"text": "x"}, "capability"),
        ("absent", {"text": "x"}, "capability"),
        ("look", {}, "arguments"),
        ("look", {"text": 5}, "arguments"),
        ("look", {"text": "x", "labels": []}, "arguments"),
        ("send", {"text": "x"}, "barrier"),
        ("vague", {"text": "x"}, "policy"),
    ],
)
def test_what_a_rule_blocks_does_not_run_and_the_trail_names_the_rule(
    platform: Shop, tool: str, arguments: dict[str, Any], rule: str
) -> None:
    run, result = platform.call(platform.open(DEVELOPER), 1, tool, arguments)
    assert (result.result, platform.ruling(run)) == (ResultKind.REFUSED, ("block", rule))
    assert all(not made.done for made in platform.tools.values())
    assert [type(step) for step in platform.trail(run)[1:]] == [ToolCall, GateRuling, ToolResult]
    with platform.store.reading() as work:
        assert work.budgets.open_calls(run.id) == {}
    platform.finish(run)
    assert fault_of(platform.store, run.id) is None


@pytest.mark.promise("A-12")
def test_untrusted_data_and_an_irreversible_tool_are_kept_apart(platform: Shop) -> None:
    run, result = platform.call(platform.open(DEVELOPER), 1, "web", {"text": "x"})
    assert result.labels == ("untrusted",)
    for call, tool in enumerate(("delete", "pay"), 2):
        run, result = platform.call(run, call, tool, {"text": "x"})
        assert (result.result, platform.ruling(run)) == (ResultKind.REFUSED, ("block", "taint"))
    run, result = platform.call(run, 4, "note", {"text": "x"})
    assert result.result is ResultKind.DONE
    assert [len(platform.tools[name].done) for name in ("delete", "pay", "note")] == [0, 0, 1]


@pytest.mark.promise("A-8", "A-12")
def test_a_write_that_was_done_is_not_done_again_and_gives_what_it_gave(platform: Shop) -> None:
    platform.tools["note"].given = Given(result=ResultKind.DONE, data=b"noted", labels=parse_labels(["personal"]))
    run, first = platform.call(platform.open(DEVELOPER), 1, "note", {"text": "x"})
    run, again = platform.call(run, 2, "note", {"text": "x"})
    assert (platform.ruling(run), len(platform.tools["note"].done)) == (("duplicate", "idempotency"), 1)
    assert (again.result, again.content, again.labels) == (first.result, first.content, ("personal",))
    run, _ = platform.call(run, 3, "note", {"text": "y"})
    for call in (4, 5):
        run, _ = platform.call(run, call, "look", {"text": "x"})
    assert (len(platform.tools["note"].done), len(platform.tools["look"].done)) == (2, 2)


@pytest.mark.promise("A-9")
def test_what_a_tool_brings_from_a_place_whose_data_may_not_come_here_is_not_kept(platform: Shop) -> None:
    platform.tools["look"].given = Given(result=ResultKind.DONE, data=b"the numbers", labels=parse_labels(["area:acme/finance"]))
    run, result = platform.call(platform.open(DEVELOPER), 1, "look", {"text": "x"})
    assert (result.result, result.content, result.labels) == (ResultKind.REFUSED, None, ())
    assert result.reason is not None
    assert result.reason.startswith("area:acme/finance may not come to acme/platform")
    assert texts(stored(platform.store, run.id).labels) == ("area:acme/platform",)
    assert not platform.content.has(blob_of(b"the numbers"))


@pytest.mark.promise("R-2")
def test_a_call_that_has_its_result_gives_it_again_without_a_step(platform: Shop) -> None:
    run, first = platform.call(platform.open(DEVELOPER), 1, "note", {"text": "x"})
    before = len(platform.trail(run))
    _, again = platform.call(run, 1, "note", {"text": "x"})
    assert (again, len(platform.trail(run)), len(platform.tools["note"].done)) == (first, before, 1)
    with pytest.raises(RunFailed, match="call 1 of this run was another one"):
        platform.call(run, 1, "note", {"text": "y"})
    assert len(platform.trail(run)) == before


class Killed(BaseException):
    """What ends a worker in the middle of a call."""


def _killed_in(platform: Shop, tool: str) -> Run:
    """A run whose worker ended in a call, held anew."""
    run = platform.open(DEVELOPER)

    class Dying(Noting):
        @override
        def __call__(self, asked: Asked) -> Given:
            raise Killed

    whole = platform.tools[tool]
    platform.tools[tool] = Dying(declared=whole.declared)
    with pytest.raises(Killed):
        platform.call(run, 1, tool, {"text": "x"})
    platform.tools[tool] = whole
    return stored(platform.store, run.id)


@pytest.mark.promise("A-15")
def test_a_call_whose_result_is_unknown_is_made_again_only_if_it_reads(platform: Shop) -> None:
    run, result = platform.call(_killed_in(platform, "look"), 1, "look", {"text": "x"})
    assert (result.result, len(platform.tools["look"].done)) == (ResultKind.DONE, 1)
    platform.finish(run)
    run, result = platform.call(_killed_in(platform, "note"), 1, "note", {"text": "x"})
    assert (result.result, result.reason, platform.tools["note"].done) == (ResultKind.FAILED, UNKNOWN, [])
    run, result = platform.call(run, 2, "note", {"text": "x"})
    assert platform.ruling(run) == ("duplicate", "idempotency")
    assert UNKNOWN in (result.reason or "")
    with platform.store.reading() as work:
        assert work.budgets.open_calls(run.id) == {}


def test_a_tool_that_ends_in_disorder_fails_its_call_and_nothing_of_it_gets_into_the_trail(platform: Shop) -> None:
    class Broken(Noting):
        @override
        def __call__(self, asked: Asked) -> Given:
            raise KeyError("a secret")

    platform.tools["note"] = Broken(declared=platform.tools["note"].declared)
    run, result = platform.call(platform.open(DEVELOPER), 1, "note", {"text": "x"})
    assert (result.result, result.reason) == (ResultKind.FAILED, DISORDER)
    assert platform.finish(run).state is RunState.FINISHED


def test_who_lost_the_run_calls_nothing(platform: Shop) -> None:
    run = platform.open(DEVELOPER)
    platform.call(run, 1, "look", {"text": "x"})
    with pytest.raises(LeaseLost):
        platform.call(run, 2, "note", {"text": "x"})
    assert platform.tools["note"].done == []


@pytest.mark.promise("A-12", "A-14")
def test_an_approver_sees_exactly_what_runs_and_the_run_goes_on(platform: Shop) -> None:
    run, question, digest = _asked(platform)
    assert (run.state, run.waiting_for, run.owner, platform.ruling(run)) == (
        RunState.WAITING,
        WaitingFor.APPROVAL,
        None,
        ("needs_approval", "policy"),
    )
    ana = access(platform.store, "acme:ana", APPROVER)
    approvals = _approvals(platform)
    shown = approvals.one(ana, question)
    assert shown.order is not None
    assert (shown.order["tool"], shown.order["arguments"], shown.order["effect"]) == ("pay", {"text": "100"}, "financial")
    assert [found.approval.id for found in approvals.page(ana, undecided=True, before=None, size=10)] == [question]
    assert platform.tools["pay"].done == []
    assert approvals.decide(ana, question, digest, granted=True, reason="as agreed").state is RunState.QUEUED
    run, result = platform.call(platform.lease(), 1, "pay", {"text": "100"})
    assert (result.result, platform.tools["pay"].done) == (ResultKind.DONE, [{"text": "100"}])
    assert platform.ruling(run) == ("allow", "approval")
    steps = platform.trail(run)
    assert [step for step in steps if isinstance(step, (ApprovalAsked, ApprovalGiven, Waiting, Resumed, ToolCall))] == [
        ToolCall(call=1, tool="pay", arguments=platform.content.put(b'{"text":"100"}')),
        ApprovalAsked(call=1, digest=digest, order=next(s.order for s in steps if isinstance(s, ApprovalAsked))),
        Waiting(waiting_for=WaitingFor.APPROVAL, call=1),
        ApprovalGiven(call=1, digest=digest, by="acme:ana", granted=True, reason="as agreed"),
        Resumed(waited_for=WaitingFor.APPROVAL),
    ]
    with platform.store.reading() as work:
        assert [act.act for act in work.acts.page(["acme"], None, 10)] == ["approve"]
    assert approvals.page(ana, undecided=True, before=None, size=10) == []
    assert fault_of(platform.store, run.id) is None


@pytest.mark.promise("A-14")
def test_what_changed_between_asking_and_running_does_not_run(platform: Shop) -> None:
    _, question, digest = _asked(platform)
    _approvals(platform).decide(access(platform.store, "acme:ana", APPROVER), question, digest, granted=True)
    # The tool of that name does something else by now.
    platform.tools["pay"] = changed(platform.tools["pay"], description="pays twice")
    run, result = platform.call(platform.lease(), 1, "pay", {"text": "100"})
    assert (result.result, platform.ruling(run), platform.tools["pay"].done) == (ResultKind.REFUSED, ("block", "approval"), [])


@pytest.mark.promise("A-14")
def test_other_arguments_or_another_call_do_not_run_on_an_approval(platform: Shop) -> None:
    _, question, digest = _asked(platform)
    _approvals(platform).decide(access(platform.store, "acme:ana", APPROVER), question, digest, granted=True)
    run = platform.lease()
    with pytest.raises(RunFailed):
        platform.call(run, 1, "pay", {"text": "999"})
    with pytest.raises(RunWaits):
        platform.call(run, 2, "pay", {"text": "999"})
    assert platform.tools["pay"].done == []


@pytest.mark.promise("A-14")
def test_an_answer_to_something_else_than_what_would_run_is_refused(platform: Shop) -> None:
    run, question, digest = _asked(platform)
    ana, approvals = access(platform.store, "acme:ana", APPROVER), _approvals(platform)
    with pytest.raises(Conflict, match="not what would run"):
        approvals.decide(ana, question, "0" * 64, granted=True)
    assert stored(platform.store, run.id) == run
    approvals.decide(ana, question, digest, granted=False, reason="too much")
    with pytest.raises(Conflict, match="answered already"):
        approvals.decide(ana, question, digest, granted=True)
    held, result = platform.call(platform.lease(), 1, "pay", {"text": "100"})
    assert (result.reason, platform.ruling(held), platform.tools["pay"].done) == (
        "a person refused it",
        ("block", "approval"),
        [],
    )


@pytest.mark.promise("A-14")
def test_a_question_of_a_run_that_ended_is_not_answered(platform: Shop) -> None:
    run, question, digest = _asked(platform)
    with platform.store.writing() as work:
        work.runs.close(run, Closing(state=RunState.CANCELLED), 9)
    with pytest.raises(Conflict, match="does not wait"):
        _approvals(platform).decide(access(platform.store, "acme:ana", APPROVER), question, digest, granted=True)


@pytest.mark.promise("A-14")
def test_what_can_not_be_shown_is_not_approved(platform: Shop) -> None:
    run, question, digest = _asked(platform)
    [asked] = [step for step in platform.trail(run) if isinstance(step, ApprovalAsked)]
    assert asked.order is not None
    file = platform.content._file(asked.order)
    file.write_bytes(file.read_bytes().replace(b"100", b"900"))
    ana = access(platform.store, "acme:ana", APPROVER)
    with pytest.raises(ContentDamaged):
        _approvals(platform).one(ana, question)
    with pytest.raises(ContentDamaged):
        _approvals(platform).decide(ana, question, digest, granted=True)
    assert stored(platform.store, run.id).state is RunState.WAITING


def _others(platform: Shop) -> list[tuple[Access, type[Exception]]]:
    return [
        (access(platform.store, "acme:bo", (Role.ADMIN, "acme")), AccessDenied),
        (access(platform.store, "acme:cy", (Role.APPROVER, "acme/finance"), (Role.VIEWER, "acme")), AccessDenied),
        (access(platform.store, "globex:eve", (Role.APPROVER, "globex")), NotFound),
    ]


@pytest.mark.promise("A-14", "O-5")
def test_only_an_approver_of_the_scope_sees_and_answers(platform: Shop) -> None:
    _, question, digest = _asked(platform)
    approvals = _approvals(platform)
    for who, refusal in _others(platform):
        assert approvals.page(who, undecided=True, before=None, size=10) == []
        with pytest.raises(refusal):
            approvals.one(who, question)
        with pytest.raises(refusal):
            approvals.decide(who, question, digest, granted=True)
    with pytest.raises(NotFound):
        approvals.one(access(platform.store, "acme:ana", APPROVER), question + 1)


@pytest.mark.promise("A-10", "A-12")
def test_an_approval_releases_neither_a_block_nor_the_barrier(platform: Shop) -> None:
    """The run takes untrusted data on, or the tool comes to send data elsewhere, after a person has said yes."""
    for change, rule in (({"labels": UNTRUSTED}, "taint"), ({"into": "globex"}, "barrier")):
        platform.tools["pay"].into = None
        run, question, digest = _asked(platform)
        _approvals(platform).decide(access(platform.store, "acme:ana", APPROVER), question, digest, granted=True)
        run = platform.lease()
        if "into" in change:
            platform.tools["pay"].into = "globex"
        else:
            with platform.store.writing() as work:
                run = work.runs.take_on(run, UNTRUSTED)
        run, result = platform.call(run, 1, "pay", {"text": "100"})
        assert (result.result, platform.ruling(run)) == (ResultKind.REFUSED, ("block", rule))
        platform.finish(run)
    assert platform.tools["pay"].done == []


@pytest.mark.promise("A-13")
def test_writes_wait_for_a_person_unless_the_agent_acts_freely(platform: Shop) -> None:
    platform.autonomy = Autonomy.PROPOSE_ONLY
    run, _ = platform.call(platform.open(DEVELOPER), 1, "note", {"text": "x"})
    assert platform.ruling(run) == ("block", "autonomy")
    platform.autonomy = Autonomy.ACT_WITH_APPROVAL
    run = platform.waits(run, 2, "note", {"text": "y"})
    assert platform.ruling(run) == ("needs_approval", "autonomy")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=15) | st.sampled_from(
    ["area:globex/x", "company:globex", "untrusted", '{"labels": []}', "labels", "__labels__", "secret"]
)


@pytest.mark.promise("A-8")
@settings(max_examples=20, deadline=None)
@given(texts_given=st.lists(TEXTS, min_size=1, max_size=4))
def test_labels_that_a_model_writes_anywhere_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, texts_given: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    url = f"sqlite:///{folder / 'agentplat.db'}"
    migrate(url)
    store = open_store(url)
    try:
        platform = shop(store, folder)
        platform.publish(DEVELOPER)
        run = platform.open(DEVELOPER, parse_labels(["personal"]))
        for i, text in enumerate(texts_given):
            run, _ = platform.call(run, 2 * i + 1, "note", {"text": text, "count": i})
            run, _ = platform.call(run, 2 * i + 2, text, {text: text, "labels": [text]})
        run = platform.finish(run, {f"part {i}": text for i, text in enumerate(texts_given)}, summary=texts_given[0])
        with store.reading() as work:
            published = work.artifacts.of_run(run.id)
        assert {texts(artifact.labels) for artifact in published.values()} == {("area:acme/platform", "personal")}
        assert texts(run.labels) == ("area:acme/platform", "personal")
    finally:
        store.close()


@pytest.mark.promise("A-8")
def test_a_stored_label_is_not_taken_away_by_anybody(platform: Shop, database_url: str) -> None:
    run = platform.open(DEVELOPER, parse_labels(["untrusted"]))
    for statement in (f"DELETE FROM run_labels WHERE run_id = {run.id}", "UPDATE run_labels SET label = 'x'"):
        with pytest.raises(Exception, match="never changed"):
            execute(database_url, statement)
    assert replace(stored(platform.store, run.id)).labels == run.labels


def test_every_effect_has_a_tool_in_these_tests() -> None:
    assert {tool.declared.effect for tool in tools().values()} == {*Effect, None}
