"""Proposing and deciding on real databases: by whom, about what, and what it makes, all at once or not at all (D-14, D-15)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.access import OPERATOR
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.budgets import Unit, pipeline_holder
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound, Unauthenticated
from agentplat.domain.labels import parse_labels
from agentplat.domain.modes import Mode
from agentplat.domain.pipeline_templates import NodeKind, read_template, template_of
from agentplat.domain.pipelines import PipelineState, ProposalState
from agentplat.domain.proposal_reading import read_proposal
from agentplat.domain.registry import ReportState
from agentplat.domain.runs import DriverKind, Run
from agentplat.domain.steps import GateRuling, ToolResult
from agentplat.usecases.decide_proposal import Seen
from agentplat.usecases.propose_orchestration import NAME
from hypothesis import HealthCheck, given, settings

from tests.agentplat.offices import DIAMOND, ROLES, SCOPE, WORKER, WRITER, Office, finish, office, publish
from tests.agentplat.proposals import proposal, proposals, sub_ticket
from tests.agentplat.world import World, manifest, ref

NEWCOMER = f"{SCOPE}:newcomer"
HIRE = json.loads(manifest(NEWCOMER, ["drafted"], [], driver={"kind": "scripted", "actions": [finish("drafted")]}))


@pytest.fixture
def hall(everywhere: World, tmp_path: Path) -> Office:
    opened = office(everywhere, tmp_path)
    opened.agents()
    return opened


def decide(hall: Office) -> Any:
    return hall.world.cases.orchestrating.decide


@pytest.mark.promise("D-14")
def test_approving_makes_project_team_hires_template_and_pipeline_and_not_one_ticket(hall: Office) -> None:
    values = proposal(DIAMOND, {**ROLES, "newcomer": HIRE}, research="newcomer", budget={"tool_calls": 7, "money_microusd": 5})
    before = hall.counts()
    proposed = hall.propose(values)
    approved = decide(hall).approve(hall.access, proposed.kept.id, Seen(revision=1, digest=proposed.digest))
    after = hall.counts()
    made = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert made == {
        "acts": 2,
        "agents": 1,
        "budgets": 2,
        "emissions": 1,
        "messages": 2,
        "outbox": 1,
        "pipeline_steps": 6,
        "pipeline_templates": 1,
        "pipelines": 1,
        "project_members": 3,
        "projects": 1,
        "proposal_revisions": 1,
        "proposals": 1,
        "published": 1,
        "reports": 1,
        "versions": 1,
    }
    with hall.store.reading() as work:
        kept = work.proposals.find(proposed.kept.id)
        template = read_template(work.pipelines.template(approved.pipeline.id))
        team = work.pipelines.team(approved.pipeline.id)
        budgets = {budget.unit: budget.ceiling for budget in work.budgets.of([pipeline_holder(approved.pipeline.id)])}
        name = work.pipelines.project_name(approved.pipeline.id)
    assert kept is not None
    assert (kept.state, kept.approved_revision, kept.decided_by) == (ProposalState.APPROVED, 1, ref("acme/platform:ana"))
    assert template == template_of(read_proposal(values))
    assert [step.key for step in template.steps if step.kind is NodeKind.PROMPT_AGENT] == ["a", "b", "c", "d"]
    assert {role: agent.ref.text for role, agent in team.items()} == {"writer": WRITER, "worker": WORKER, "newcomer": NEWCOMER}
    assert budgets == {Unit.TOOL_CALLS: 7, Unit.MONEY: 5}
    assert name == "Ship the report."
    assert approved.pipeline.state is PipelineState.RUNNING
    [hire] = approved.hires
    assert (hire.created, hire.report.agent.text, hire.report.number) == (True, NEWCOMER, 1)
    # The graph service does not answer here; the version is published all the same, and its report comes later.
    assert hire.report.state is ReportState.NOT_ANSWERED
    with hall.store.reading() as work:
        assert work.outbox.sizes() == (1, 0)


@pytest.mark.promise("D-14")
def test_a_pipeline_with_a_hired_agent_runs_to_its_end_and_makes_no_ticket(hall: Office) -> None:
    pipeline = hall.approve(hall.propose(proposal(DIAMOND, {**ROLES, "newcomer": HIRE}, research="newcomer")))
    assert hall.rounds(pipeline) == [["research"], ["a", "b"], ["c", "d"], ["synthesis"]]
    assert hall.now(pipeline).state is PipelineState.FINISHED
    assert hall.counts()["tickets"] == 0
    assert len(hall.runs(pipeline)) == 6


@pytest.mark.promise("D-14")
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=proposals())
def test_any_proposal_that_is_kept_becomes_the_same_template_bytes(hall: Office, values: dict[str, Any]) -> None:
    proposed = hall.propose(values)
    pipeline = hall.approve(proposed)
    with hall.store.reading() as work:
        assert work.pipelines.template(pipeline.id) == template_of(read_proposal(values)).text
        steps = work.pipelines.steps(pipeline.id)
    assert len(steps) == len(values["sub_tickets"]) + 1 + ("research" in values)


def _paused(hall: Office, _: Any) -> None:
    with hall.store.writing() as work:
        agent = work.registry.find(ref(WORKER))
        assert agent is not None
        work.registry.pause(agent, True)


def _retired(hall: Office, _: Any) -> None:
    with hall.store.writing() as work:
        agent = work.registry.find(ref(WORKER))
        assert agent is not None
        work.registry.retire(agent)


def _hired_meanwhile(hall: Office, _: Any) -> None:
    publish(hall.store, NEWCOMER, finish("x"))


def _removed(hall: Office, _: Any) -> None:
    with hall.store.writing() as work:
        work.spaces.remove(hall.space, 1)


def _declined(hall: Office, proposed: Any) -> None:
    decide(hall).decline(hall.access, proposed.kept.id, Seen(revision=1, digest=proposed.digest), "too dear")


def _approved(hall: Office, proposed: Any) -> None:
    hall.approve(proposed)


def _revised(hall: Office, proposed: Any) -> None:
    values = proposal([sub_ticket("z")], ROLES)
    hall.world.cases.orchestrating.propose.revise(hall.access, proposed.kept.id, values)


@pytest.mark.promise("D-15")
@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        (_revised, "revision 1 of proposal 1 is not the newest, which is 2; look at that, then decide"),
        (_declined, "proposal 1 is declined already"),
        (_approved, "proposal 1 is approved already"),
        (_removed, "the space of this proposal was removed; propose anew in another one"),
        (_paused, "the role worker can not be filled: acme/platform:worker is paused"),
        (_retired, "the role worker can not be filled: acme/platform:worker has no published version"),
        (_hired_meanwhile, "acme/platform:newcomer is there by now and can not be hired"),
    ],
)
def test_what_can_not_be_approved_any_more_is_refused_and_leaves_nothing(
    hall: Office, meanwhile: Callable[[Office, Any], None], told: str
) -> None:
    proposed = hall.propose(proposal([sub_ticket("a")], {**ROLES, "newcomer": HIRE}))
    meanwhile(hall, proposed)
    before = hall.counts()
    with pytest.raises(Conflict) as refused:
        decide(hall).approve(hall.access, proposed.kept.id, Seen(revision=1, digest=proposed.digest))
    assert str(refused.value).startswith(told)
    assert hall.counts() == before


@pytest.mark.promise("D-15")
def test_an_approver_names_the_digest_that_they_saw(hall: Office) -> None:
    proposed = hall.propose(proposal([sub_ticket("a")], ROLES))
    with pytest.raises(Conflict, match="has another digest than what was seen"):
        decide(hall).approve(hall.access, proposed.kept.id, Seen(revision=1, digest="0" * 64))
    with pytest.raises(Conflict, match="revision 2 of proposal 1 is not the newest, which is 1"):
        decide(hall).approve(hall.access, proposed.kept.id, Seen(revision=2, digest=proposed.digest))
    hall.approve(proposed)


@pytest.mark.promise("D-15")
def test_the_revision_that_was_approved_is_recorded_and_none_follows_it(hall: Office) -> None:
    proposed = hall.propose(proposal([sub_ticket("a")], ROLES))
    _revised(hall, proposed)
    with hall.store.reading() as work:
        newest = work.proposals.revision(1, 2)
    assert newest is not None
    decide(hall).approve(hall.access, 1, Seen(revision=2, digest=newest.digest))
    with hall.store.reading() as work:
        kept = work.proposals.find(1)
        [act] = [act for act in work.acts.page([SCOPE], None, 50) if act.act == "approve proposal"]
    assert kept is not None
    assert kept.approved_revision == 2
    assert (act.details["proposal"], act.details["revision"]) == (1, 2)
    before = hall.counts()
    with pytest.raises(Conflict, match="is approved and can not be revised any more"):
        _revised(hall, proposed)
    assert hall.counts() == before


@pytest.mark.promise("D-15")
def test_only_a_person_who_may_publish_in_the_workspace_decides(hall: Office) -> None:
    proposed = hall.propose(proposal([sub_ticket("a")], {**ROLES, "newcomer": HIRE}))
    seen = Seen(revision=1, digest=proposed.digest)
    viewer = hall.world.person("acme/platform:lea", f"viewer={SCOPE}", f"approver={SCOPE}")
    stranger = hall.world.person("globex:eve", "admin=globex")
    before = hall.counts()
    for act in (
        lambda access, number: decide(hall).approve(access, number, seen),
        lambda access, number: decide(hall).decline(access, number, seen, "no"),
        lambda access, number: hall.world.cases.orchestrating.propose.revise(access, number, proposal([sub_ticket("a")], ROLES)),
    ):
        with pytest.raises(AccessDenied):
            act(viewer, 1)
        with pytest.raises(Unauthenticated):
            act(OPERATOR, 1)
        for access, number in ((stranger, 1), (hall.access, 1_000)):
            with pytest.raises(NotFound):
                act(access, number)
    assert hall.counts() == before


@pytest.mark.promise("D-15")
def test_of_many_who_approve_and_revise_at_once_one_approval_counts_and_for_what_was_seen(hall: Office) -> None:
    proposed = hall.propose(proposal([sub_ticket("a")], {**ROLES, "newcomer": HIRE}))
    gate = threading.Barrier(8)

    def act(turn: int) -> str:
        gate.wait(30)
        try:
            if turn % 4 == 3:
                _revised(hall, proposed)
                return "revised"
            hall.approve(proposed)
        except Conflict:
            return "refused"
        return "approved"

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(act, range(8)))
    with hall.store.reading() as work:
        kept = work.proposals.find(1)
    assert kept is not None
    assert told.count("approved") == (kept.state is ProposalState.APPROVED) == hall.counts()["pipelines"]
    assert hall.counts()["versions"] == 2 + told.count("approved")
    assert kept.revision == 1 + told.count("revised")
    assert told.count("approved") + (told.count("revised") > 0) >= 1


@pytest.mark.promise("D-15")
@pytest.mark.parametrize(
    ("roles", "field", "reason"),
    [
        ({"writer": f"{SCOPE}:nobody"}, "roles[0].agent", "is no agent of this workspace"),
        ({"writer": "acme/finance:payer"}, "roles[0].agent", "is no agent of this workspace"),
        ({"writer": "acme/finance:nobody"}, "roles[0].agent", "is no agent of this workspace"),
        ({"writer": json.loads(manifest("acme/finance:spy"))}, "roles[0].hire", "is not of this workspace's scope"),
        ({"writer": json.loads(manifest(WORKER))}, "roles[0].hire", "acme/platform:worker is there already"),
        ({"writer": HIRE, "twin": HIRE}, "roles[1].hire", "acme/platform:newcomer is hired twice"),
    ],
)
def test_roles_are_agents_of_the_workspace_or_new_ones(hall: Office, roles: dict[str, Any], field: str, reason: str) -> None:
    publish(hall.store, "acme/finance:payer", finish("paid"))
    before = hall.counts()
    with pytest.raises(InvalidInput) as refused:
        hall.propose(proposal([sub_ticket("a", "writer")], roles))
    assert [(fault.field, fault.reason) for fault in refused.value.violations] == [(field, reason)]
    assert hall.counts() == before


@pytest.mark.promise("D-15")
def test_faults_of_roles_and_of_the_rest_are_told_at_once_each_with_its_place(hall: Office) -> None:
    values = proposal([sub_ticket("a", needs=["a"])], {"worker": {"metadata": {"name": "x"}, "colour": "red"}}, goal="")
    with pytest.raises(InvalidInput) as refused:
        hall.propose(values)
    found = {fault.field.partition("[")[0] for fault in refused.value.violations}
    assert {"goal", "sub_tickets"} < found
    assert any(fault.place.startswith("roles[0].hire:1:") for fault in refused.value.violations)


def _call(hall: Office, run: Run, call: int, **arguments: Any) -> tuple[Run, ToolResult]:
    return hall.acting.act.tools(run, call, NAME, arguments)


def _told(hall: Office, result: ToolResult) -> Any:
    assert result.content is not None
    return json.loads(hall.acting.act.content.get(result.content))


@pytest.mark.promise("D-15")
def test_a_run_proposes_and_revises_by_its_tool_at_any_level_of_autonomy(hall: Office) -> None:
    run = hall.proposing_run()
    with hall.store.writing() as work:
        agent = work.registry.by_id(run.agent_id)
        assert hall.access.person is not None
        work.spaces.set_autonomy(hall.space, agent, Autonomy.PROPOSE_ONLY, hall.access.person, 1)
    run, first = _call(hall, run, 1, proposal=proposal([sub_ticket("a")], ROLES))
    assert _told(hall, first) | {"digest": ""} == {"proposal": 1, "revision": 1, "digest": ""}
    run, second = _call(hall, run, 2, proposal=proposal([sub_ticket("b")], ROLES), revises=1)
    assert _told(hall, second)["revision"] == 2
    with hall.store.reading() as work:
        revisions = work.proposals.revisions(1)
        said = [message for message in work.spaces.messages(hall.space.id, 0, 10) if message.kind.value == "proposal"]
    assert [one.author.run_id for one in revisions] == [run.id, run.id]
    assert [message.run_id for message in said] == [run.id, run.id]
    assert said[0].body.startswith("Proposal 1, revision 1: Ship the report.\ndigest: ")
    assert hall.counts()["pipelines"] == hall.counts()["tickets"] == 0


@pytest.mark.promise("D-15")
@pytest.mark.parametrize("mode", [Mode.CHAT, Mode.PLAN, Mode.REVIEW, None])
def test_elsewhere_than_in_a_space_that_orchestrates_the_tool_is_absent(hall: Office, mode: Mode | None) -> None:
    run = hall.proposing_run(mode) if mode is not None else _nowhere(hall)
    before = hall.counts()
    run, result = _call(hall, run, 1, proposal=proposal([sub_ticket("a")], ROLES))
    with hall.store.reading() as work:
        [ruling] = [step for step in (s.read() for s in work.runs.trail(run.id)) if isinstance(step, GateRuling)]
    assert ruling.rule == "capability"
    assert result.content is None
    assert hall.counts()["proposals"] == before["proposals"] == 0


def _nowhere(hall: Office) -> Run:
    hall.world.cases.open_run(hall.access, ref(WORKER))
    run = hall.acting.lease([DriverKind.SCRIPTED], "test")
    assert run is not None
    return run


@pytest.mark.promise("D-15")
def test_a_refused_proposal_is_told_word_for_word_and_leaves_its_line_in_the_trail_only(hall: Office) -> None:
    other = office(hall.world, hall.folder, name="other")
    elsewhere = other.propose(proposal([sub_ticket("a")], ROLES))
    run = hall.proposing_run()
    before = hall.counts()
    loop = proposal([sub_ticket("a", needs=["b"]), sub_ticket("b", needs=["a"])], ROLES)
    run, looped = _call(hall, run, 1, proposal=loop)
    told = "the sub-tickets depend on each other in a loop: a → b → a; take one of these dependencies away"
    assert looped.reason == f"sub_tickets: {told}"
    run, hidden = _call(hall, run, 2, proposal=proposal([sub_ticket("a")], ROLES), revises=elsewhere.kept.id)
    run, unknown = _call(hall, run, 3, proposal=proposal([sub_ticket("a")], ROLES), revises=1_000)
    assert hidden.reason == unknown.reason == str(NotFound())
    changed = {name for name, count in hall.counts().items() if count != before[name]}
    assert changed <= {"steps", "reservations", "budgets"}
    with hall.store.reading() as work:
        assert work.spaces.messages(hall.space.id, 0, 10) == []


@pytest.mark.promise("D-15", "A-9")
def test_a_run_proposes_nothing_into_a_workspace_that_its_data_may_not_come_to(hall: Office) -> None:
    run = hall.proposing_run(labels=parse_labels(["area:acme/finance"]))
    run, result = _call(hall, run, 1, proposal=proposal([sub_ticket("a")], ROLES))
    assert hall.counts()["proposals"] == 0
    assert result.reason is not None
    assert "area:acme/finance may not go to acme/platform" in result.reason


@pytest.mark.promise("D-15")
def test_no_tool_of_a_run_decides_about_a_proposal(hall: Office) -> None:
    names = sorted(hall.acting.act.tools.gate.tools)
    assert NAME in names
    assert not [name for name in names if "approve" in name or "decide" in name or "decline" in name]
