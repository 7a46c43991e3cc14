"""What waits for a person: proposals, runs at a ceiling, warnings that came late, mentions; and for whom it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentplat.domain.access import Access
from agentplat.domain.budgets import Unit, pipeline_holder
from agentplat.domain.languages import Language
from agentplat.domain.scopes import Ref
from agentplat.usecases.decide_proposal import Seen
from agentplat.usecases.read_inbox import Inbox
from agentplat.usecases.tell import warning_lines

from tests.agentplat.offices import DIAMOND, ROLES, SCOPE, WORKER, Office, office
from tests.agentplat.proposals import proposal
from tests.agentplat.run_records import stored
from tests.agentplat.tool_records import shop
from tests.agentplat.world import World, ref

BUYER = Ref(SCOPE, "buyer")


@pytest.fixture
def hall(everywhere: World, tmp_path: Path) -> Office:
    opened = office(everywhere, tmp_path)
    opened.agents()
    return opened


def of_workspace(hall: Office, access: Access) -> Inbox:
    workspace = hall.world.cases.together.workspaces.one(access, hall.workspace).workspace
    return hall.world.cases.read_inbox(access, workspace)


@pytest.mark.promise("U-7")
def test_a_proposal_waits_for_whoever_may_decide_until_somebody_did_or_its_space_went(hall: Office, tmp_path: Path) -> None:
    world = hall.world
    first = hall.propose(proposal(DIAMOND, ROLES))
    second = hall.propose(proposal(DIAMOND, ROLES, goal="Something else."))
    newer = world.cases.orchestrating.propose.revise(hall.access, second.kept.id, proposal(DIAMOND, ROLES, goal="Yet else."))
    waiting = world.cases.read_inbox(hall.access).proposals
    assert [(one.kept.id, one.kept.revision, one.goal, one.digest) for one in waiting] == [
        (second.kept.id, 2, "Yet else.", newer.digest),
        (first.kept.id, 1, "Ship the report.", first.digest),
    ]
    assert of_workspace(hall, hall.access).proposals == waiting
    elsewhere = office(world, tmp_path, name="elsewhere")
    assert of_workspace(elsewhere, hall.access).proposals == ()
    for grants in (["viewer=acme"], ["approver=acme"], ["author=acme/quality"], ["admin=globex"]):
        assert world.cases.read_inbox(world.person("acme:other", *grants)).proposals == ()
    assert world.cases.read_inbox(world.person("acme:boss", "admin=acme")).proposals == waiting
    world.cases.orchestrating.decide.decline(hall.access, first.kept.id, Seen(revision=1, digest=first.digest), "no")
    assert [one.kept.id for one in world.cases.read_inbox(hall.access).proposals] == [second.kept.id]
    world.cases.together.spaces.remove(hall.access, hall.workspace, hall.space.id)
    assert world.cases.read_inbox(hall.access).proposals == ()


@pytest.mark.promise("U-7")
@pytest.mark.parametrize(
    ("named", "admins"), [("*", []), ("acme", ["acme"]), (SCOPE, ["acme", SCOPE]), (BUYER, ["acme", SCOPE])], ids=str
)
def test_a_run_at_a_ceiling_waits_for_whoever_may_set_that_one_and_for_nobody_else(
    everywhere: World, tmp_path: Path, named: str | Ref, admins: list[str]
) -> None:
    root, budgets = everywhere.person("*:root", "admin=*"), everywhere.cases.governing.budgets
    desk = shop(everywhere.store, tmp_path)
    desk.publish(BUYER)
    budgets.set(root, named, Unit.TOOL_CALLS, 0)
    run = desk.waits(desk.open(BUYER), 1, "look", {"text": "1"})
    [found] = everywhere.cases.read_inbox(root).stopped
    assert (found.logged.run.id, found.budget.unit, found.budget.ceiling) == (run.id, Unit.TOOL_CALLS, 0)
    for scope in ("acme", SCOPE):
        seen = everywhere.cases.read_inbox(everywhere.person("acme:admin", f"admin={scope}")).stopped
        assert [one.budget for one in seen] == ([found.budget] if scope in admins else []), scope
    for grants in (["author=*", "approver=*"], ["admin=globex"], ["admin=acme/quality", "viewer=*"]):
        assert everywhere.cases.read_inbox(everywhere.person("acme:other", *grants)).stopped == ()
    budgets.set(root, named, Unit.TOOL_CALLS, 5)
    budgets.resume(root, run.id)
    assert everywhere.cases.read_inbox(root).stopped == ()


@pytest.mark.promise("U-7")
def test_a_run_that_waits_for_an_approval_is_not_at_a_ceiling(everywhere: World, tmp_path: Path) -> None:
    desk = shop(everywhere.store, tmp_path)
    desk.publish(BUYER)
    run = desk.waits(desk.open(BUYER), 1, "pay", {"text": "1"})
    assert stored(everywhere.store, run.id).state.value == "waiting"
    assert everywhere.cases.read_inbox(everywhere.person("*:root", "admin=*")).stopped == ()


@pytest.mark.promise("U-7")
def test_a_pipeline_at_its_ceiling_waits_for_the_admins_of_its_workspace(hall: Office) -> None:
    desk = shop(hall.store, hall.folder)
    pipeline = hall.started()
    with hall.store.writing() as work:
        work.budgets.set_ceiling(pipeline_holder(pipeline.id), Unit.TOOL_CALLS, 0)
    desk.publish(ref(WORKER))
    hall.runner(pipeline.id)
    run = desk.lease()
    desk.waits(run, 1, "look", {"text": "1"})
    admin = hall.world.person("acme:admin", f"admin={SCOPE}")
    assert [one.budget.holder.name for one in of_workspace(hall, admin).stopped] == [f"pipeline {pipeline.id}"]
    assert of_workspace(hall, hall.access).stopped == ()


@pytest.mark.promise("U-7", "P-6")
def test_a_warning_that_came_late_waits_for_its_publisher_until_the_next_version(acme: World) -> None:
    ana, bob = acme.person("acme:ana", "author=acme"), acme.person("acme:bob", "author=acme")
    acme.publish(bob, f"{SCOPE}:there", ["ask"], ["answer"])
    acme.graph.stop()
    acme.publish(ana, f"{SCOPE}:back", ["answer"], ["ask"])
    acme.publish(ana, f"{SCOPE}:quiet", ["heard"], [])
    assert acme.cases.read_inbox(ana).late == ()
    acme.graph_up()
    acme.deliver_all()
    [late] = acme.cases.read_inbox(ana).late
    assert (late.agent.text, late.number) == (f"{SCOPE}:back", 1)
    assert any("back → there → back" in line for line in warning_lines(late, Language.EN))
    assert acme.cases.read_inbox(bob).late == ()
    # What it was made for may not be read any more, so that it is not told of here.
    assert acme.cases.read_inbox(acme.person("acme:ana", f"viewer={SCOPE}/x")).late == ()
    acme.publish(acme.person("acme:ana", "author=acme"), f"{SCOPE}:back", ["answer"], [])
    assert acme.cases.read_inbox(ana).late == ()


@pytest.mark.promise("U-7", "W-12")
def test_mentions_of_a_person_come_from_spaces_that_they_may_read_and_fill_a_page(hall: Office, tmp_path: Path) -> None:
    converse = hall.world.cases.together.converse
    away = office(hall.world, tmp_path, scope="acme/quality", name="away")
    reader = hall.world.person(f"{SCOPE}:rea", f"viewer={SCOPE}", "viewer=acme/quality")
    boss = hall.world.person("acme:boss", "author=acme")
    for number in range(3):
        converse.post(boss, hall.workspace, hall.space.id, f"@rea here {number}")
        converse.post(boss, away.workspace, away.space.id, f"@rea there {number}")
    assert [one.message.body for one in converse.notified(reader, None, 2)] == ["@rea there 2", "@rea here 2"]
    here = converse.notified(reader, None, 2, hall.workspace)
    assert [(one.workspace_id, one.space_id, one.message.body) for one in here] == [
        (hall.workspace, hall.space.id, "@rea here 2"),
        (hall.workspace, hall.space.id, "@rea here 1"),
    ]
    fewer = hall.world.person(f"{SCOPE}:rea", f"viewer={SCOPE}")
    assert [one.message.body for one in converse.notified(fewer, None, 2)] == ["@rea here 2", "@rea here 1"]
    assert [one.message.body for one in converse.notified(fewer, here[-1].message.id, 2)] == ["@rea here 0"]
    hall.world.cases.together.spaces.remove(hall.access, hall.workspace, hall.space.id)
    assert converse.notified(fewer, None, 2) == []
