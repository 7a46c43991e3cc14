"""What the tools of spaces and tickets do, and in which modes they exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from agentplat.domain.access import Role
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.errors import Conflict
from agentplat.domain.labels import parse_labels, texts
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Space
from agentplat.domain.steps import ResultKind
from agentplat.domain.tickets import MessageKind, Status
from agentplat.domain.tools import Effect

from tests.agentplat.run_records import opened
from tests.agentplat.tool_records import Noting, spec
from tests.agentplat.work_records import EVERY_TOOL, Office

ALICE = "acme/platform:alice"
READING = {"read_space", "read_ticket", "list_tickets"}
# What is there by mode for a version that names everything, beside tools of other modules.
EXISTING: Mapping[Mode | None, set[str]] = {
    Mode.CHAT: READING | {"post_message", "comment_ticket", "create_ticket", "move_ticket", "assign_ticket", "look", "note"},
    Mode.PLAN: READING | {"post_message", "comment_ticket", "submit_plan", "look"},
    Mode.ORCHESTRATE: READING | {"post_message", "look"},
    Mode.REVIEW: READING | {"post_message", "comment_ticket", "look"},
    None: {"look", "note"},
}
ALL = set().union(*EXISTING.values())
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "read_space": {},
    "read_ticket": {"ticket": 1},
    "list_tickets": {},
    "post_message": {"text": "hello"},
    "submit_plan": {"plan": "first this, then that"},
    "comment_ticket": {"ticket": 1, "text": "seen"},
    "create_ticket": {"title": "More"},
    "move_ticket": {"ticket": 1, "status": "in_progress", "version": 1},
    "assign_ticket": {"ticket": 1, "role": "reviewer", "name": "alice"},
    "look": {"text": "x"},
    "note": {"text": "x"},
}


def _held(office: Office, mode: Mode | None, tools: tuple[str, ...] = EVERY_TOOL, text: str = "@alice see #1") -> tuple[Space, Run]:
    """A run in a space of the mode, which works on the first of two tickets; with no mode a run outside."""
    office.installed = (Noting(declared=spec("look", Effect.READ)), Noting(declared=spec("note", Effect.WRITE)))
    ana = office.person()
    agent = office.agent(ALICE, tools)
    space = office.space(ana, office.workspace(ana), mode=mode or Mode.CHAT)
    for title in ("First", "Second"):
        office.together.tickets.create(ana, space.workspace_id, title, "")
    if mode is None:
        opened(office.store, agent.ref)
        return space, office.lease()
    with office.store.writing() as work:
        work.spaces.set_autonomy(space, agent, Autonomy.ACT_FREELY, work.people.by_id(1), 1)
    return space, office.handed(ana, space, text)


@pytest.mark.promise("W-7")
@pytest.mark.parametrize("mode", EXISTING)
def test_a_tool_that_the_mode_does_not_give_is_not_there(desk: Office, mode: Mode | None) -> None:
    _, run = _held(desk, mode)
    held = desk.acting.lease.prepare(run)
    offered = {found.name for found in desk.acting.act.offered(held)}
    assert offered & ALL == EXISTING[mode]
    for tool in sorted(ALL - EXISTING[mode]):
        run, result = desk.call(run, tool, **ARGUMENTS[tool])
        # Word for word what a tool is told that never was.
        assert (result.result, result.reason) == (ResultKind.REFUSED, f"this run has no tool {tool!r}")
    # Outside of a space nobody set the level of the agent, and what writes waits for a person.
    for tool in sorted(EXISTING[mode] - ({"note"} if mode is None else set())):
        run, result = desk.call(run, tool, **ARGUMENTS[tool])
        assert (result.result, result.reason) == (ResultKind.DONE, None), tool


@pytest.mark.promise("W-7")
def test_tools_that_make_work_are_there_only_where_the_version_names_them(desk: Office) -> None:
    _, run = _held(desk, Mode.CHAT, ())
    held = desk.acting.lease.prepare(run)
    offered = {found.name for found in desk.acting.act.offered(held)}
    assert offered & ALL == READING | {"post_message", "comment_ticket"}


@pytest.mark.promise("W-7")
def test_an_agent_that_may_only_propose_reads_and_reports_and_makes_nothing(desk: Office) -> None:
    space, run = _held(desk, Mode.CHAT)
    with desk.store.writing() as work:
        agent = work.registry.by_id(run.agent_id)
        work.spaces.set_autonomy(space, agent, Autonomy.PROPOSE_ONLY, work.people.by_id(1), 1)
    done = {}
    for tool in sorted(EXISTING[Mode.CHAT]):
        run, result = desk.call(run, tool, **ARGUMENTS[tool])
        done[tool] = result.result is ResultKind.DONE
    assert {tool for tool, was in done.items() if was} == READING | {"post_message", "comment_ticket", "look"}


@pytest.mark.promise("W-7", "W-8")
@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.ORCHESTRATE, Mode.REVIEW])
def test_outside_a_chat_a_message_only_reports(desk: Office, mode: Mode) -> None:
    space, run = _held(desk, mode)
    desk.agent("acme/platform:bob")
    ana = desk.person()
    desk.together.spaces.add_participant(ana, space.workspace_id, space.id, Ref("acme/platform", "bob"))
    run, result = desk.call(run, "post_message", text="@bob and @nobody would do #2")
    assert desk.told(result)["started"] == []
    last = desk.messages(space)[-1]
    assert (last.kind, last.mentions, len(last.tickets)) == (MessageKind.PROGRESS, (), 1)
    assert len(desk.all_runs()) == 1


@pytest.mark.promise("W-7")
def test_a_plan_is_handed_in_and_comments_stay_with_the_ticket_it_is_about(desk: Office) -> None:
    space, run = _held(desk, Mode.PLAN, text="@alice plan #2, beside #1")
    run, result = desk.call(run, "comment_ticket", ticket=2, text="a thought")
    assert result.result is ResultKind.DONE
    run, result = desk.call(run, "comment_ticket", ticket=1, text="a thought")
    assert result.result is ResultKind.REFUSED
    assert result.reason == "#1 is not the ticket that this run works on, and in plan mode it comments on no other"
    run, result = desk.call(run, "submit_plan", plan="First this.")
    last = desk.messages(space)[-1]
    assert (last.id, last.kind, last.body) == (desk.told(result)["message"], MessageKind.PLAN, "First this.")
    shown = desk.together.tickets.one(desk.person(), space.workspace_id, 2)
    assert [comment.body for comment in shown.comments] == ["a thought"]
    assert ([found.id for found in shown.runs], [message.id for message in shown.messages]) == (
        [run.id],
        [last.id, desk.messages(space)[0].id],
    )


@pytest.mark.promise("W-3")
def test_an_agent_follows_the_graph_of_statuses_and_a_person_may_set_any(office: Office) -> None:
    space, run = _held(office, Mode.CHAT)
    ana = office.person()
    run, result = office.call(run, "move_ticket", ticket=1, status="done", version=1)
    assert (result.result, result.reason) == (
        ResultKind.REFUSED,
        "an agent moves a ticket from open to in_progress, blocked, cancelled, not to done",
    )
    version = 1
    for status in ("in_progress", "in_review", "done"):
        run, result = office.call(run, "move_ticket", ticket=1, status=status, version=version)
        version = office.told(result)["version"]
    run, result = office.call(run, "move_ticket", ticket=1, status="open", version=version)
    assert result.reason == "an agent moves a ticket from done to nowhere, not to open"
    for status in Status:
        if status is not office.together.tickets.one(ana, space.workspace_id, 1).ticket.status:
            version = office.together.tickets.change(ana, space.workspace_id, 1, version, {"status": status}).version
    shown = office.together.tickets.one(ana, space.workspace_id, 1)
    assert [change.version for change in shown.changes] == list(range(2, version + 1))
    assert [change.author.ref.name for change in shown.changes[:4]] == ["alice", "alice", "alice", "ana"]


@pytest.mark.promise("W-3")
def test_a_stale_version_is_refused_with_the_present_one(office: Office) -> None:
    space, run = _held(office, Mode.CHAT)
    ana = office.person()
    office.together.tickets.change(ana, space.workspace_id, 1, 1, {"title": "Renamed"})
    reason = "#1 has version 2 by now, not 1; look at it again, then change it"
    run, result = office.call(run, "move_ticket", ticket=1, status="in_progress", version=1)
    assert (result.result, result.reason) == (ResultKind.REFUSED, reason)
    with pytest.raises(Conflict) as refusal:
        office.together.tickets.change(ana, space.workspace_id, 1, 1, {"status": "done"})
    assert str(refusal.value) == reason
    shown = office.together.tickets.one(ana, space.workspace_id, 1).ticket
    assert (shown.version, shown.title, shown.status) == (2, "Renamed", Status.OPEN)


@pytest.mark.promise("W-7", "W-12")
def test_what_is_read_carries_the_labels_of_whoever_wrote_it(desk: Office) -> None:
    space, run = _held(desk, Mode.CHAT)
    with desk.store.writing() as work:
        run = work.runs.take_on(run, parse_labels(["secret"]))
    run, _ = desk.call(run, "post_message", text="a secret")
    run, _ = desk.call(run, "create_ticket", title="A secret")
    run, _ = desk.call(run, "comment_ticket", ticket=2, text="a secret")
    run, _ = desk.call(run, "move_ticket", ticket=1, status="in_progress", version=1)
    desk.finish(run)
    plain = {"area:acme/platform"}
    for tool, arguments, wanted in (
        ("read_ticket", {"ticket": 3}, plain | {"secret"}),
        ("read_ticket", {"ticket": 2}, plain | {"secret"}),
        ("read_ticket", {"ticket": 1}, plain | {"secret"}),
        ("list_tickets", {}, plain | {"secret"}),
        ("read_space", {}, plain | {"secret"}),
    ):
        reader = desk.handed(desk.person(), space, "@alice read")
        reader, result = desk.call(reader, tool, **arguments)
        assert set(result.labels) == wanted, (tool, arguments)
        assert set(texts(reader.labels)) == wanted
        desk.finish(reader)
    other = desk.space(desk.person(), desk.workspace(desk.person(), name="Other"))
    reader = desk.handed(desk.person(), other, "@alice read")
    reader, result = desk.call(reader, "read_space")
    assert set(result.labels) == plain


@pytest.mark.promise("W-12")
def test_a_run_reads_no_other_space_and_no_ticket_of_another_workspace(desk: Office) -> None:
    _, run = _held(desk, Mode.CHAT)
    elsewhere = desk.workspace(desk.person(), name="Other")
    for title in ("a", "b", "c"):
        desk.together.tickets.create(desk.person(), elsewhere.id, title, "hidden")
    for tool in ("read_ticket", "comment_ticket", "move_ticket", "assign_ticket"):
        run, result = desk.call(run, tool, **{**ARGUMENTS[tool], "ticket": 3})
        assert (result.result, result.reason) == (ResultKind.REFUSED, "#3 is no ticket of this workspace")
    run, result = desk.call(run, "list_tickets")
    assert [ticket["title"] for ticket in desk.told(result)["tickets"]] == ["Second", "First"]


@pytest.mark.promise("W-12")
def test_tools_name_nobody_from_outside_the_workspace(desk: Office) -> None:
    space, run = _held(desk, Mode.CHAT)
    desk.person("acme/platform:ben", (Role.AUTHOR, "acme/platform"))
    desk.say(desk.person("acme/platform:ben"), space, "hello")
    run, result = desk.call(run, "read_space")
    assert [message["from"] for message in desk.told(result)["messages"]] == [None, "acme/platform:ben"]
    run, result = desk.call(run, "assign_ticket", ticket=1, role="reviewer", name="ana")
    assert result.result is ResultKind.REFUSED
    run, result = desk.call(run, "assign_ticket", ticket=1, role="reviewer", name="ben")
    assert desk.told(result)["name"] == "acme/platform:ben"
