"""What a message starts: for whom, with what, within which guards, and what the space says of it."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agentplat.domain.access import OPERATOR, Access, Grant, Role
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.chains import ChainLimits, OpenedBy
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound, RunWaits, Unauthenticated
from agentplat.domain.labels import parse_labels
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import MentionOutcome, Space
from agentplat.domain.steps import ResultKind
from agentplat.domain.tickets import MessageKind, PartyKind, TicketRole
from agentplat.domain.tools import Effect

from tests.agentplat.run_records import execute
from tests.agentplat.tool_records import Noting, spec
from tests.agentplat.work_records import PLATFORM, Office

PLATFORM_STAYS = "data of the area acme/platform stays in it, its company and the installation"
ALICE, BOB = "acme/platform:alice", "acme/platform:bob"


def _ref(text: str) -> Ref:
    scope, _, name = text.partition(":")
    return Ref(scope, name)


def _input(office: Office, run_id: int) -> Any:
    with office.store.reading() as work:
        given = work.runs.input(run_id)
    assert given is not None
    return json.loads(office.content.get(given[0]).decode().partition("\n")[2])


def _scene(office: Office, mode: Mode = Mode.CHAT, *taking_part: str) -> Space:
    ana = office.person()
    for name in (ALICE, BOB):
        office.agent(name)
    space = office.space(ana, office.workspace(ana), mode=mode)
    for name in taking_part:
        office.together.spaces.add_participant(ana, space.workspace_id, space.id, _ref(name))
    return space


@pytest.mark.promise("W-4", "W-5")
def test_a_message_hands_the_tickets_it_refers_to_to_the_agent_it_mentions(office: Office) -> None:
    space, ana = _scene(office), office.person()
    for title in ("Other", "Mend the build"):
        office.together.tickets.create(ana, space.workspace_id, title, f"about {title}")
    said = office.say(ana, space, "@ALI please mend #2 now")
    [run_id] = office.opened(said)
    assert said.tickets == (2,)
    told = _input(office, run_id)
    assert told["message"] == {"id": said.id, "from": "a person", "text": "@ALI please mend #2 now"}
    assert told["space"] == {"id": space.id, "name": "Talk", "mode": "chat"}
    assert [(ticket["ticket"], ticket["title"], ticket["description"]) for ticket in told["tickets"]] == [
        ("#2", "Mend the build", "about Mend the build")
    ]
    [run] = office.all_runs()
    assert (run.opened_by, run.hop, run.chain, run.agent.text) == (OpenedBy.MENTION, 0, run.id, ALICE)
    assert run.labels == parse_labels(["area:acme/platform"])
    held = office.acting.lease.prepare(office.lease())
    assert held.workplace is not None
    assert (held.workplace.space_id, held.workplace.mode, held.workplace.message_id) == (space.id, Mode.CHAT, said.id)
    assert "read_space" in {spec.name for spec in office.acting.act.offered(held)}


@pytest.mark.promise("W-4")
def test_progress_and_result_of_a_run_stand_in_its_space(office: Office) -> None:
    space, ana = _scene(office), office.person()
    run, result = office.call(office.handed(ana, space, "@alice go"), "post_message", text="half done")
    assert result.result is ResultKind.DONE
    office.finish(run, "all done")
    run = office.handed(ana, space, "@bob go")
    office.acting.finish.fail(run, "the disk is full")
    [run_id] = office.opened(office.say(ana, space, "@bob again"))
    office.acting.cancel(ana, run_id)
    said = [(message.kind, message.author.ref.name, message.body) for message in office.messages(space)]
    assert said == [
        (MessageKind.SAID, "ana", "@alice go"),
        (MessageKind.PROGRESS, "alice", "half done"),
        (MessageKind.RESULT, "alice", "all done"),
        (MessageKind.SAID, "ana", "@bob go"),
        (MessageKind.RESULT, "bob", "Run 2 of bob failed: the disk is full"),
        (MessageKind.SAID, "ana", "@bob again"),
        (MessageKind.RESULT, "bob", "Run 3 of bob was cancelled."),
    ]


@pytest.mark.promise("W-4")
def test_a_run_that_waits_for_an_approval_says_so_in_its_space(desk: Office) -> None:
    space, ana = _scene(desk), desk.person()
    desk.installed = (Noting(declared=spec("note", Effect.WRITE)),)
    with pytest.raises(RunWaits):
        desk.call(desk.handed(ana, space, "@bob go"), "note", text="x")
    assert [(message.kind, message.body) for message in desk.messages(space)[1:]] == [
        (MessageKind.NOTICE, "Run 1 of bob waits for an approval.")
    ]


@pytest.mark.promise("W-4")
def test_a_run_that_is_given_up_says_so_in_its_space(desk: Office) -> None:
    space, ana = _scene(desk), desk.person()
    desk.handed(ana, space, "@bob go")
    for _ in range(3):
        execute(desk.url, "UPDATE runs SET lease_until = 0")
        desk.lease()
    [told] = desk.messages(space)[1:]
    assert told.kind is MessageKind.RESULT
    assert "Run 1 of bob failed: given up after 3 attempts" in told.body


@pytest.mark.promise("W-2")
def test_assigning_an_agent_starts_nothing(office: Office) -> None:
    space, ana = _scene(office), office.person()
    tickets = office.together.tickets
    tickets.create(ana, space.workspace_id, "Mend", "")
    for role in ("assignee", "collaborator", "reviewer"):
        assert tickets.involve(ana, space.workspace_id, 1, TicketRole(role), PartyKind.AGENT, _ref(ALICE))
    run = office.handed(ana, space, "@bob assign it")
    run, _ = office.call(run, "create_ticket", title="Another")
    for role in ("assignee", "reviewer"):
        run, result = office.call(run, "assign_ticket", ticket=2, role=role, name="alice")
        assert office.told(result)["changed"]
    assert [found.id for found in office.all_runs()] == [run.id]
    assert [(one.role.value, one.party.ref.text) for one in tickets.one(ana, space.workspace_id, 2).involved] == [
        ("assignee", ALICE),
        ("reviewer", ALICE),
    ]


@pytest.mark.promise("W-6")
def test_a_mode_counts_from_the_next_message_on_and_review_is_never_chosen(office: Office) -> None:
    space, ana = _scene(office), office.person()
    spaces = office.together.spaces
    office.say(ana, space, "@alice one")
    spaces.set_mode(ana, space.workspace_id, space.id, Mode.PLAN)
    office.say(ana, space, "@alice two")
    other = office.space(ana, office.workspace(ana, name="Second"), mode=Mode.ORCHESTRATE)
    office.say(ana, other, "@alice three")
    with office.store.reading() as work:
        places = [work.spaces.workplace(run.id) for run in office.all_runs()]
    assert [place.mode for place in places if place is not None] == [Mode.CHAT, Mode.PLAN, Mode.ORCHESTRATE]
    for choose in (
        lambda: spaces.set_mode(ana, space.workspace_id, space.id, Mode.REVIEW),
        lambda: spaces.create(ana, space.workspace_id, "R", Mode.REVIEW),
    ):
        with pytest.raises(InvalidInput, match="review, which nobody chooses"):
            choose()
    review = spaces.create_review(ana, space.workspace_id, "website#42")
    assert (review.mode, review.name) == (Mode.REVIEW, "review of website#42")
    with pytest.raises(Conflict, match="keeps its mode"):
        spaces.set_mode(ana, space.workspace_id, review.id, Mode.CHAT)


@pytest.mark.promise("W-8")
def test_a_message_that_cannot_be_understood_says_why_and_leaves_nothing(office: Office) -> None:
    space, ana = _scene(office), office.person()
    office.agent("acme/platform:albert")
    for text, reason in (
        ("@al go", "@al is ambiguous: it may mean acme/platform:albert, acme/platform:alice"),
        ("@nobody go", "@nobody means nobody in this workspace"),
        ("@alice see #9", "#9 is no ticket of this workspace"),
        ("   ", "is missing"),
        ("a\x00b", "is missing, too long or no text"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            office.say(ana, space, text)
    assert (office.messages(space), office.all_runs()) == ([], [])


@pytest.mark.promise("W-8")
def test_mentions_alone_and_mentions_of_people_start_nothing(office: Office) -> None:
    space, ana = _scene(office), office.person()
    office.person("acme/platform:ben", (Role.VIEWER, PLATFORM))
    office.person("globex:zoe", (Role.VIEWER, "*"))
    alone = office.say(ana, space, "@alice @bob !")
    assert [(mention.outcome, mention.reason) for mention in alone.mentions] == [
        (MentionOutcome.IGNORED, "a message of mentions alone starts nothing")
    ] * 2
    told = office.say(ana, space, "@ben look")
    assert [(mention.outcome, mention.ref) for mention in told.mentions] == [(MentionOutcome.NOTIFIED, Ref("acme/platform", "ben"))]
    ben = office.person("acme/platform:ben", (Role.VIEWER, PLATFORM))
    notices = office.together.converse.notified(ben, None, 10)
    assert [(notice.space_id, notice.message.id) for notice in notices] == [(space.id, told.id)]
    with office.store.writing() as work:
        assert ben.person is not None
        work.people.revoke(ben.person, Grant(Role.VIEWER, PLATFORM))
    assert office.together.converse.notified(Access(ben.person, frozenset()), None, 10) == []
    with pytest.raises(InvalidInput, match="@zoe means nobody"):
        office.say(ana, space, "@zoe look")
    assert office.all_runs() == []


@pytest.mark.promise("W-8")
def test_agents_mention_participants_only_and_themselves_in_vain(office: Office) -> None:
    space, ana = _scene(office, Mode.CHAT, ALICE), office.person()
    run = office.handed(ana, space, "@alice go")
    run, result = office.call(run, "post_message", text="@bob help")
    assert result.result is ResultKind.REFUSED
    assert result.reason is not None
    assert "@bob means nobody in this space's participants" in result.reason
    run, result = office.call(run, "post_message", text="@ana help")
    assert result.result is ResultKind.REFUSED
    office.together.spaces.add_participant(ana, space.workspace_id, space.id, _ref(BOB))
    run, result = office.call(run, "post_message", text="@bob and @alice, help")
    told = office.told(result)
    assert [started["agent"] for started in told["started"]] == [BOB]
    assert told["not_started"] == [{"agent": ALICE, "reason": "an agent's mention of itself does nothing"}]
    assert [message.body for message in office.messages(space)] == ["@alice go", "@bob and @alice, help"]


@pytest.mark.promise("W-9")
def test_a_mention_by_an_agent_continues_the_chain_of_its_run(office: Office) -> None:
    space, ana = _scene(office, Mode.CHAT, ALICE, BOB), office.person()
    first, _ = office.call(office.handed(ana, space, "@alice go"), "post_message", text="@bob go on")
    office.finish(first)
    second = office.lease()
    assert (second.agent.text, second.hop, second.chain, second.source_run_id) == (BOB, 1, first.id, first.id)
    assert (second.opened_by, second.on_behalf_of_id) == (OpenedBy.MENTION, first.on_behalf_of_id)
    with office.store.reading() as work:
        assert work.chains.size(first.id) == 2


def _refusals(office: Office, space: Space) -> list[str]:
    return [message.body for message in office.messages(space) if message.kind is MessageKind.REFUSAL]


@pytest.mark.promise("W-9")
@pytest.mark.parametrize(
    ("guard", "reason"),
    [
        ("hops", "bob was not started: the chain has come to hop 1, which is its last."),
        ("runs", "bob was not started: the chain has spent its budget of 2 runs."),
        ("paused", "bob was not started: bob is paused."),
        ("proposes", "bob was not started: alice may only propose, so that its mentions start nothing."),
    ],
)
def test_a_guard_that_refuses_says_why_in_the_space_and_mentions_nobody(office: Office, guard: str, reason: str) -> None:
    space, ana = _scene(office, Mode.CHAT, ALICE, BOB), office.person()
    limits = {"hops": ChainLimits(hops=1, runs=100), "runs": ChainLimits(hops=8, runs=2)}.get(guard, ChainLimits(hops=8, runs=100))
    with office.store.writing() as work:
        work.chains.set_limits(limits)
    run, _ = office.call(office.handed(ana, space, "@bob begin"), "post_message", text="@alice go")
    office.finish(run)
    run = office.lease()
    with office.store.writing() as work:
        bob, alice = work.registry.find(_ref(BOB)), work.registry.find(_ref(ALICE))
        assert bob is not None
        assert alice is not None
        if guard == "paused":
            work.registry.pause(bob, True)
        if guard == "proposes":
            work.spaces.set_autonomy(space, alice, Autonomy.PROPOSE_ONLY, work.people.by_id(1), 1)
    before = len(office.all_runs())
    run, result = office.call(run, "post_message", text="@bob your turn")
    told = office.told(result)
    assert told["started"] == []
    assert f"bob was not started: {told['not_started'][0]['reason']}." == reason
    assert _refusals(office, space) == [reason]
    assert "@" not in reason
    assert office.messages(space)[-1].mentions == ()
    assert len(office.all_runs()) == before


@pytest.mark.promise("W-9")
def test_the_barrier_refuses_a_mention_too(office: Office) -> None:
    ana = office.person()
    office.agent(ALICE)
    office.agent("acme/finance:clerk")
    space = office.space(ana, office.workspace(ana, "acme"))
    for name in (ALICE, "acme/finance:clerk"):
        office.together.spaces.add_participant(ana, space.workspace_id, space.id, _ref(name))
    run, result = office.call(office.handed(ana, space, "@alice go"), "post_message", text="@clerk here it is")
    assert office.told(result)["started"] == []
    assert _refusals(office, space) == [
        (
            "clerk was not started: area:acme/platform may not go to acme/finance:"
            " data of the area acme/platform stays in it, its company and the installation."
        )
    ]
    office.finish(run)
    # What it said may not come to the other area by reading either.
    run = office.handed(ana, space, "@clerk read it yourself")
    run, result = office.call(run, "read_space")
    assert result.result is ResultKind.REFUSED
    assert result.content is None


@pytest.mark.promise("W-9")
def test_two_agents_start_each_other_ten_times_a_minute_at_most(office: Office) -> None:
    space, ana = _scene(office, Mode.CHAT, ALICE, BOB), office.person()
    with office.store.writing() as work:
        work.chains.set_limits(ChainLimits(hops=100, runs=1_000))
    run = office.handed(ana, space, "@alice go")
    for count in range(10):
        other = "bob" if run.agent.name == "alice" else "alice"
        run, result = office.call(run, "post_message", text=f"@{other} your turn {count}")
        assert len(office.told(result)["started"]) == 1
        office.finish(run)
        run = office.lease()
    other = "bob" if run.agent.name == "alice" else "alice"
    run, result = office.call(run, "post_message", text=f"@{other} once more")
    assert office.told(result)["started"] == []
    assert _refusals(office, space) == [
        f"{other} was not started: alice and bob have sent each other 10 messages within a minute, which is the most."
    ]
    # A person may hand them work all the same.
    assert len(office.opened(office.say(ana, space, "@alice and @bob, stop"))) == 2


@pytest.mark.promise("W-9")
def test_of_two_messages_at_once_between_two_agents_one_is_the_tenth(office: Office) -> None:
    space, ana = _scene(office, Mode.CHAT, ALICE, BOB), office.person()
    runs = [office.handed(ana, space, f"@alice go {i}") for i in range(2)]
    for count in range(9):
        runs[0], _ = office.call(runs[0], "post_message", text=f"@bob {count}")
    gate = threading.Barrier(2)

    def once_more(run: Run) -> int:
        gate.wait(30)
        return len(office.told(office.acting.act.tools(run, 10, "post_message", {"text": "@bob more"})[1])["started"])

    # The other run has made no call yet, so its tenth is its first.
    for _ in range(9):
        runs[1], _ = office.call(runs[1], "read_space")
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(once_more, runs)) == [0, 1]


@pytest.mark.promise("W-1", "W-12")
def test_whoever_reads_only_may_not_write_and_whoever_may_not_read_finds_nothing(desk: Office) -> None:
    space, ana = _scene(desk), desk.person()
    together = desk.together
    together.tickets.create(ana, space.workspace_id, "Mend", "")
    reader = desk.person("acme:reader", (Role.VIEWER, PLATFORM))
    stranger = desk.person("acme:stranger", (Role.ADMIN, "acme/finance"), (Role.AUTHOR, "globex"))
    acts = [
        lambda who: together.converse.post(who, space.workspace_id, space.id, "hello"),
        lambda who: together.tickets.create(who, space.workspace_id, "t", ""),
        lambda who: together.tickets.change(who, space.workspace_id, 1, 1, {"status": "done"}),
        lambda who: together.spaces.create(who, space.workspace_id, "s"),
        lambda who: together.spaces.remove(who, space.workspace_id, space.id),
        lambda who: together.spaces.set_autonomy(who, space.workspace_id, space.id, _ref(ALICE), Autonomy.ACT_FREELY),
        lambda who: together.workspaces.link(who, space.workspace_id, "x", "/tmp"),
    ]
    for act in acts:
        with pytest.raises(AccessDenied):
            act(reader)
        with pytest.raises(NotFound):
            act(stranger)
    author = desk.person("acme:author", (Role.AUTHOR, PLATFORM))
    for act in acts[-2:]:
        with pytest.raises(AccessDenied):
            act(author)
    with pytest.raises(AccessDenied):
        together.workspaces.create(reader, PLATFORM, "mine")
    with pytest.raises(Unauthenticated):
        together.workspaces.create(OPERATOR, PLATFORM, "mine")
    assert together.workspaces.page(stranger, 0, 10) == []
    assert [workspace.id for workspace in together.workspaces.page(reader, 0, 10)] == [space.workspace_id]
    shown = together.workspaces.one(reader, space.workspace_id)
    assert [agent.ref.text for agent in shown.agents] == [ALICE, BOB]
    # Their home is not the reader's to know.
    assert shown.members == ()
