"""What the store promises about workspaces, tickets, spaces and work trees, on each kind of database."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from agentplat.domain.access import Grant, Person, Role
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.modes import Mode
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Mention, MentionOutcome, Space, Workplace
from agentplat.domain.tickets import Author, Involved, MessageKind, NewTicket, Party, PartyKind, Status, TicketRole
from agentplat.domain.workspaces import Workspace
from agentplat.store.sql import SqlStore

from tests.agentplat.records import found, person
from tests.agentplat.run_records import ALL_DRIVERS, DEVELOPER, LONG_S, REVIEWER, agent_of, execute, leased, opened


def _setup(store: SqlStore, scope: str = "acme/platform", name: str = "Work") -> tuple[Workspace, Space, Person]:
    with store.writing() as work:
        who = person(work)
        workspace = work.workspaces.add(scope, name, who, 1)
        assert workspace is not None
        space = work.spaces.add(workspace.id, "Talk", Mode.CHAT, who, 2)
        assert space is not None
    return workspace, space, who


def _party(who: Person) -> Party:
    return Party(kind=PartyKind.PERSON, id=who.id, ref=who.ref)


@pytest.mark.promise("W-1")
def test_workspaces_are_found_by_scope_and_a_name_is_taken_once_in_each(store: SqlStore) -> None:
    mine, _, who = _setup(store)
    theirs, _, _ = _setup(store, "globex")
    with store.writing() as work:
        assert work.workspaces.add("acme/platform", "Work", who, 3) is None
        assert work.workspaces.find(mine.id) == mine
        assert work.workspaces.find(99) is None
        assert work.workspaces.page(["acme"], 0, 10) == [mine]
        assert work.workspaces.page(["*"], mine.id, 10) == [theirs]
        linked = work.workspaces.link(mine, "site", "here", "/srv/site")
        assert linked is not None
        assert work.workspaces.link(mine, "site", "here", "/srv/other") is None
        assert work.workspaces.repositories(mine.id) == [linked]
        assert work.workspaces.repositories(theirs.id) == []


@pytest.mark.promise("W-1")
def test_members_have_a_grant_that_contains_the_scope_and_agents_lie_within_it(store: SqlStore) -> None:
    workspace, _, _ = _setup(store)
    for ref in (DEVELOPER, Ref("acme", "boss"), Ref("acme/finance", "clerk"), Ref("acme/platform2", "other")):
        agent_of(store, ref)
    with store.writing() as work:
        for name, scope in (
            ("all", "*"),
            ("company", "acme"),
            ("area", "acme/platform"),
            ("aside", "acme/finance"),
            ("far", "globex"),
        ):
            work.people.grant(person(work, name), Grant(Role.VIEWER, scope))
            work.people.grant(person(work, name), Grant(Role.AUDITOR, scope))
        assert [member.ref.name for member in work.workspaces.members(workspace)] == ["all", "area", "company"]
        assert [agent.ref for agent in work.workspaces.agents(workspace)] == [DEVELOPER]
        work.registry.retire(work.workspaces.agents(workspace)[0])
        assert work.workspaces.agents(workspace) == []


@pytest.mark.promise("W-2", "W-3")
def test_tickets_are_numbered_within_their_workspace_and_change_by_versions(store: SqlStore) -> None:
    workspace, _, who = _setup(store)
    other, _, _ = _setup(store, "globex")
    with store.writing() as work:
        new = NewTicket(workspace_id=workspace.id, title="Mend", description="", made_by_id=who.id)
        first, second = work.tickets.make(new, 5), work.tickets.make(replace(new, parent_id=1), 6)
        apart = work.tickets.make(replace(new, workspace_id=other.id), 7)
        assert [ticket.number for ticket in (first, second, apart)] == [1, 2, 1]
        assert work.tickets.numbered(workspace.id, 2) == second
        assert work.tickets.numbered(other.id, 2) is None
        assert work.tickets.children(first.id) == [second]
        author = Author(person_id=who.id)
        after = work.tickets.change(first, author, 8, {"status": "done", "title": "Mended"})
        assert after is not None
        assert (after.version, after.status, after.title) == (2, Status.DONE, "Mended")
        assert work.tickets.change(first, author, 9, {"status": "open"}) is None
        assert work.tickets.find(first.id) == after
        [change] = work.tickets.changes(first.id)
        assert (change.version, change.author, dict(change.body)) == (2, _party(who), {"status": "done", "title": "Mended"})
        assert work.tickets.page(workspace.id, [Status.OPEN], None, 10) == [second]
        assert work.tickets.page(workspace.id, list(Status), 2, 10) == [after]


@pytest.mark.promise("W-3")
def test_of_changes_to_one_version_at_once_one_counts(store: SqlStore) -> None:
    workspace, _, who = _setup(store)
    with store.writing() as work:
        ticket = work.tickets.make(NewTicket(workspace_id=workspace.id, title="Mend", description="", made_by_id=who.id), 5)
    gate = threading.Barrier(4)

    def change(number: int) -> bool:
        gate.wait(30)
        with store.writing() as work:
            return work.tickets.change(ticket, Author(person_id=who.id), number, {"title": f"by {number}"}) is not None

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(change, range(4))) == [False, False, False, True]


@pytest.mark.promise("W-2")
def test_a_ticket_has_one_assignee_and_anybody_once_in_each_other_role(store: SqlStore) -> None:
    workspace, _, who = _setup(store)
    agent_of(store, DEVELOPER)
    developer = found(store, DEVELOPER)
    agent = Party(kind=PartyKind.AGENT, id=developer.id, ref=DEVELOPER)
    with store.writing() as work:
        ticket = work.tickets.make(NewTicket(workspace_id=workspace.id, title="Mend", description="", made_by_id=who.id), 5)
        for party in (_party(who), agent):
            for role in TicketRole:
                assert work.tickets.involve(ticket, Involved(role=role, party=party))
                assert not work.tickets.involve(ticket, Involved(role=role, party=party))
        involved = [(one.role.value, one.party.kind.value) for one in work.tickets.involved(ticket.id)]
        assert involved == [
            ("assignee", "agent"),
            ("collaborator", "person"),
            ("collaborator", "agent"),
            ("reviewer", "person"),
            ("reviewer", "agent"),
        ]
        assert work.tickets.release(ticket, Involved(role=TicketRole.ASSIGNEE, party=agent))
        assert not work.tickets.release(ticket, Involved(role=TicketRole.ASSIGNEE, party=agent))
        comment = work.tickets.comment(ticket, MessageKind.SAID, Author(person_id=who.id), "yes", 9)
        assert work.tickets.comments(ticket.id, 0, 10) == [comment]
        assert work.tickets.comments(ticket.id, comment.id, 10) == []


@pytest.mark.promise("W-4", "W-6")
def test_a_space_keeps_its_mode_participants_and_all_that_was_said(store: SqlStore) -> None:
    workspace, space, who = _setup(store)
    agent_of(store, DEVELOPER)
    developer = found(store, DEVELOPER)
    with store.writing() as work:
        ticket = work.tickets.make(NewTicket(workspace_id=workspace.id, title="Mend", description="", made_by_id=who.id), 5)
        assert work.spaces.add(workspace.id, "Talk", Mode.PLAN, who, 3) is None
        work.spaces.set_mode(space, Mode.PLAN)
        assert work.spaces.hold(space.id) == replace(space, mode=Mode.PLAN)
        assert work.spaces.add_participant(space, developer, who, 4)
        assert not work.spaces.add_participant(space, developer, who, 4)
        assert work.spaces.participants(space.id) == [developer]
        assert work.spaces.autonomy(space.id, developer.id) is None
        for level in Autonomy:
            work.spaces.set_autonomy(space, developer, level, who, 5)
            assert work.spaces.autonomy(space.id, developer.id) is level
        said = [
            work.spaces.say(space, MessageKind.SAID, Author(person_id=who.id), f"{i}", i, [ticket.id, ticket.id]) for i in range(3)
        ]
        work.spaces.mention(said[0], [Mention(party=_party(who), outcome=MentionOutcome.NOTIFIED)])
        messages = work.spaces.messages(space.id, 0, 10)
        assert [message.id for message in messages] == said
        assert messages[0].mentions == (Mention(party=_party(who), outcome=MentionOutcome.NOTIFIED),)
        assert messages[0].tickets == (ticket.id,)
        assert work.spaces.messages(space.id, said[1], 10) == messages[2:]
        assert work.spaces.newest(space.id, 2) == messages[1:]
        assert work.spaces.referring(ticket.id, 2) == messages[:0:-1]
        assert [found for _, found in work.spaces.mentions_of(who.id, ["*"], None, None, 10)] == messages[:1]
        assert work.spaces.message(said[2]) == messages[2]
        assert work.spaces.remove_participant(space, developer)
        assert not work.spaces.remove_participant(space, developer)
        assert work.spaces.page(workspace.id, 0, 10) == [replace(space, mode=Mode.PLAN)]
        assert work.spaces.remove(space, 9)
        assert not work.spaces.remove(space, 9)
        assert work.spaces.page(workspace.id, 0, 10) == []
        assert work.spaces.messages(space.id, 0, 10) == messages
        # The name is free again.
        assert work.spaces.add(workspace.id, "Talk", Mode.CHAT, who, 10) is not None


@pytest.mark.promise("W-5")
def test_where_a_run_works_is_kept_as_it_was_when_it_was_opened(store: SqlStore) -> None:
    workspace, space, _ = _setup(store)
    run = opened(store)
    place = Workplace(workspace_id=workspace.id, space_id=space.id, mode=Mode.CHAT)
    with store.writing() as work:
        assert work.spaces.workplace(run.id) is None
        work.spaces.place(run.id, place)
        work.spaces.set_mode(space, Mode.PLAN)
        assert work.spaces.workplace(run.id) == place
        assert (work.spaces.runs_of(space.id, 10), work.spaces.unended(space.id)) == ([run.id], [run.id])
    held = leased(store)
    with store.writing() as work:
        work.runs.release(held)
    execute(store._engine.url.render_as_string(hide_password=False), f"UPDATE runs SET state = 'cancelled' WHERE id = {run.id}")
    with store.reading() as work:
        assert (work.spaces.runs_of(space.id, 10), work.spaces.unended(space.id)) == ([run.id], [])


@pytest.mark.promise("W-9")
def test_only_mentions_that_started_one_of_the_two_are_counted_either_way(store: SqlStore) -> None:
    _, space, _ = _setup(store)
    one, two = opened(store, DEVELOPER), opened(store, REVIEWER)
    third = opened(store, Ref("acme/platform", "third"))

    def mention(source: object, target: object, at: int, outcome: MentionOutcome, run_id: int | None = None) -> None:
        with store.writing() as work:
            author = Author(run_id=source.id)  # type: ignore[attr-defined]
            said = work.spaces.say(space, MessageKind.SAID, author, "x", at)
            agent = work.registry.by_id(target.agent_id)  # type: ignore[attr-defined]
            party = Party(kind=PartyKind.AGENT, id=agent.id, ref=agent.ref)
            reason = None if run_id else "no"
            work.spaces.mention(said, [Mention(party=party, outcome=outcome, run_id=run_id, reason=reason)])

    mention(one, two, 100, MentionOutcome.OPENED, two.id)
    mention(two, one, 200, MentionOutcome.OPENED, one.id)
    mention(one, two, 300, MentionOutcome.REFUSED)
    mention(one, third, 300, MentionOutcome.OPENED, third.id)
    with store.writing() as work:
        work.spaces.hold_pair(one.agent_id, two.agent_id)
        counts = [work.spaces.mentions_between(one.agent_id, two.agent_id, since) for since in (0, 100, 101, 201)]
        assert counts == [2, 2, 1, 0]
        assert work.spaces.mentions_between(two.agent_id, one.agent_id, 0) == 2


@pytest.mark.promise("W-10")
def test_a_run_that_needs_a_work_tree_is_leased_on_the_host_of_its_repositories_only(store: SqlStore) -> None:
    workspace, space, _ = _setup(store)
    elsewhere, bare = opened(store), opened(store)
    with store.writing() as work:
        work.spaces.place(elsewhere.id, Workplace(workspace_id=workspace.id, space_id=space.id, mode=Mode.CHAT))
        linked = work.workspaces.link(workspace, "site", "host-a", "/srv/site")
        assert linked is not None
        assert work.runs.leasable(ALL_DRIVERS, None, None)
        # The other run needs none, so that every host takes it.
        free = work.runs.lease(ALL_DRIVERS, "b", LONG_S, None, "host-b")
        assert free is not None
        assert free.id == bare.id
        for host in ("host-b", None):
            assert not work.runs.leasable(ALL_DRIVERS, None, host)
            assert work.runs.lease(ALL_DRIVERS, "b", LONG_S, None, host) is None
        assert work.runs.leasable(ALL_DRIVERS, None, "host-a")
        held = work.runs.lease(ALL_DRIVERS, "a", LONG_S, None, "host-a")
        assert held is not None
        assert held.id == elsewhere.id
        work.workspaces.keep_tree(space.id, linked, "/trees/1", "agentplat/space-1")
        work.workspaces.keep_tree(space.id, linked, "/trees/2", "another")
        [tree] = work.workspaces.trees(space.id)
        assert (tree.repository, tree.path, tree.branch) == (linked, "/trees/1", "agentplat/space-1")
        assert work.workspaces.left_behind("host-a") == []
        work.spaces.remove(space, 9)
        assert (work.workspaces.left_behind("host-a"), work.workspaces.left_behind("host-b")) == ([space.id], [])
        work.workspaces.forget_tree(tree)
        assert work.workspaces.left_behind("host-a") == []


@pytest.mark.promise("W-4")
def test_whoever_goes_on_from_the_last_message_misses_none_however_many_write_at_once(store: SqlStore) -> None:
    _, space, who = _setup(store)
    total, seen = 40, [0]

    def write(number: int) -> int:
        with store.writing() as work:
            return work.spaces.say(space, MessageKind.SAID, Author(person_id=who.id), f"{number}", 1)

    with ThreadPoolExecutor(8) as pool:
        written = [pool.submit(write, number) for number in range(total)]
        done = False
        while not done:
            done = all(future.done() for future in written)
            with store.reading() as work:
                seen += [message.id for message in work.spaces.messages(space.id, seen[-1], 1_000)]
    assert seen[1:] == sorted(future.result() for future in written)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE messages SET body = 'x'",
        "DELETE FROM messages",
        "UPDATE workplaces SET mode = 'chat'",
        "UPDATE tickets SET depth = 1",
    ],
)
def test_the_database_itself_keeps_what_is_a_record(store: SqlStore, statement: str) -> None:
    workspace, space, who = _setup(store)
    run = opened(store)
    with store.writing() as work:
        work.tickets.make(NewTicket(workspace_id=workspace.id, title="Mend", description="", made_by_id=who.id), 5)
        work.spaces.say(space, MessageKind.SAID, Author(person_id=who.id), "said", 1)
        work.spaces.place(run.id, Workplace(workspace_id=workspace.id, space_id=space.id, mode=Mode.PLAN))
    with pytest.raises(sa.exc.DBAPIError):
        execute(store._engine.url.render_as_string(hide_password=False), statement)


def test_labels_of_several_runs_are_joined(store: SqlStore) -> None:
    first = opened(store)
    second = opened(store, Ref("globex", "far"))
    with store.reading() as work:
        assert {label.text for label in work.runs.labels([first.id, second.id])} == {"area:acme/platform", "company:globex"}
        assert work.runs.labels([]) == frozenset()
