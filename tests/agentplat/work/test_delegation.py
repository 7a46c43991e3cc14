"""Delegation through the Gate and the tool: what is made, what is refused word for word, and what chain counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.chains import OpenedBy
from agentplat.domain.delegation import OTHER_AGENT, OTHER_TICKET, Guard
from agentplat.domain.modes import Mode
from agentplat.domain.steps import ResultKind
from agentplat.domain.tools import DELEGATE_TASK, Circumstances, has_tool
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.delegate_task import SPEC
from agentplat.usecases.hand_over import HandOver, resolvers_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agentplat.delegation_records import Desk, desk, named
from tests.agentplat.run_records import folder_content

EXHAUSTED = "Delegation refused: the delegator's budget envelope is exhausted (delegation cannot mint budget)."


@pytest.fixture
def office(store: SqlStore, tmp_path: Path) -> Desk:
    """A workspace with five agents, on each kind of database."""
    made = desk(store, tmp_path)
    made.agents("A", "B", "C", "D", "E")
    return made


@pytest.mark.promise("D-1")
def test_a_delegation_makes_a_child_ticket_and_opens_the_delegates_run_in_the_same_space(office: Desk) -> None:
    root = office.ticket("A")
    source = office.run("A", root)
    result, told = office.delegate(source, "B", title="look at the logs", description="since noon")
    assert result.result is ResultKind.DONE
    with office.store.reading() as work:
        child = work.tickets.numbered(office.workspace.id, 2)
        assert child is not None
        run = office.now(told["run"])
        assert (child.title, child.description, child.depth) == ("look at the logs", "since noon", 1)
        assert (child.parent_id, child.delegated_by_id, child.made_in_run_id) == (root.id, source.agent_id, source.id)
        assert [(one.role.value, one.party.ref.name) for one in work.tickets.involved(child.id)] == [("assignee", "B")]
        assert (run.opened_by, run.source_run_id) == (OpenedBy.DELEGATION, source.id)
        assert (run.hop, run.chain) == (1, source.chain)
        workplace = work.spaces.workplace(run.id)
        assert workplace is not None
        assert (workplace.space_id, workplace.ticket_id) == (office.space.id, child.id)
        [message] = work.spaces.messages(office.space.id, 0, 10)
        assert (message.body, message.tickets) == ("#2 is delegated to acme/platform:B: look at the logs", (child.id,))
        assert workplace.message_id == message.id
        given = work.runs.input(run.id)
    assert given is not None
    assert "since noon" in folder_content(office.folder).get(given[0]).decode()


@pytest.mark.promise("D-3")
@pytest.mark.promise("D-4")
def test_three_hops_are_let_through_and_the_fourth_is_refused_word_for_word(office: Desk) -> None:
    run = office.run("A", office.ticket("A"))
    for to in "BCD":
        run = office.handed(run, to)
    assert office.refused(run, "E") == "Delegation refused: chain depth 4 exceeds the cap of 3."


@pytest.mark.promise("D-2")
@pytest.mark.parametrize("parent", [{}, {"parent_ticket_id": 1}, {"parent_ticket_id": "#1"}])
def test_an_agent_delegates_to_itself_neither_with_nor_without_a_parent(office: Desk, parent: dict[str, object]) -> None:
    run = office.run("A", office.ticket("A"))
    assert office.refused(run, "A", **parent) == "Delegation refused: cycle detected (acme/platform:A → acme/platform:A)."


@pytest.mark.promise("D-5")
def test_an_agent_without_any_ticket_is_in_its_own_chain(office: Desk) -> None:
    run = office.run("A")
    assert office.refused(run, "A") == "Delegation refused: cycle detected (acme/platform:A → acme/platform:A)."
    assert office.rows("tickets") == []
    child = office.handed(run, "B")
    assert office.refused(child, "A").endswith("cycle detected (acme/platform:A → acme/platform:B → acme/platform:A).")


def _back_to_a(office: Desk) -> Iterator[tuple[str, str]]:
    """Chains that begin with A and would come back to it, with the names that they go through."""
    for way in (OpenedBy.MENTION, OpenedBy.EVENT, OpenedBy.PIPELINE):
        first = office.run("A", office.ticket("A"))
        second = office.handed(first, "B", title=f"by {way}")
        third = office.run("C", None, second, way)
        yield office.refused(third, "A"), "A → B → C → A"
        yield office.refused(office.run("B", None, first, way), "A"), "A → B → A"
        fourth = office.handed(third, "D", title=f"on by {way}")
        assert office.now(fourth.id).opened_by is OpenedBy.DELEGATION
        yield office.refused(fourth, "B"), "B → C → D → B"


@pytest.mark.promise("D-5")
def test_mentions_events_and_pipelines_in_between_keep_one_chain(office: Desk) -> None:
    for said, way in _back_to_a(office):
        names = " → ".join(f"acme/platform:{name}" for name in way.split(" → "))
        assert said == f"Delegation refused: cycle detected ({names})."


_ways = st.lists(
    st.sampled_from([OpenedBy.DELEGATION, OpenedBy.MENTION, OpenedBy.EVENT, OpenedBy.PIPELINE]), min_size=1, max_size=8
)


@pytest.mark.promise("D-5")
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ways=_ways)
def test_any_mix_of_mechanisms_is_one_chain(acme_desk: Desk, ways: list[OpenedBy]) -> None:
    names = [f"agent{number}" for number in range(len(ways) + 2)]
    acme_desk.agents(*(name for name in names if not _known(acme_desk, name)))
    run = acme_desk.run(names[0])
    for name, way in zip(names[1:], ways, strict=False):
        run = acme_desk.run(name, None, run, way)
    with acme_desk.store.reading() as work:
        for i, name in enumerate(names):
            asked = HandOver(
                source=run,
                person=acme_desk.person(work),
                workspace=acme_desk.workspace,
                space=acme_desk.space,
                delegate=acme_desk.found(work, name),
                title="on",
                description="",
                may_name=lambda _: True,
            )
            resolvers = resolvers_of(work, asked)
            assert resolvers.depth is not None
            assert resolvers.cycle is not None
            assert resolvers.depth() == ways.count(OpenedBy.DELEGATION)
            back = [f"acme/platform:{one}" for one in (*names[i:-1], name)]
            assert resolvers.cycle() == (None if name == names[-1] else back)


def _known(office: Desk, name: str) -> bool:
    with office.store.reading() as work:
        return work.registry.find(named(name)) is not None


@pytest.mark.promise("D-5")
def test_delegations_are_counted_through_a_mention_and_without_the_parent(office: Desk) -> None:
    first = office.run("A")
    second = office.handed(first, "B")
    third = office.run("C", None, second, OpenedBy.MENTION)
    fourth = office.handed(third, "D")
    with office.store.reading() as work:
        place = work.spaces.workplace(fourth.id)
        assert place is not None
        ticket = work.tickets.find(place.ticket_id or 0)
    assert ticket is not None
    assert ticket.depth == 2
    fifth = office.handed(fourth, "E")
    office.agent("F")
    assert office.refused(fifth, "F") == "Delegation refused: chain depth 4 exceeds the cap of 3."


@pytest.mark.promise("D-5")
def test_a_ticket_that_was_delegated_keeps_its_chain_when_a_person_hands_it_to_somebody_else(office: Desk) -> None:
    first = office.run("A", office.ticket("A"))
    office.handed(first, "B")
    with office.store.reading() as work:
        child = work.tickets.numbered(office.workspace.id, 2)
    run = office.run("C", child)
    assert "cycle detected" in office.refused(run, "A")
    assert "cycle detected" in office.refused(run, "B")
    with office.store.reading() as work:
        grandchild = office.handed(run, "D")
        place = work.spaces.workplace(grandchild.id)
        assert place is not None
        made = work.tickets.find(place.ticket_id or 0)
    assert made is not None
    assert made.depth == 2


@pytest.mark.promise("D-5")
def test_arguments_that_disagree_with_the_run_are_refused(office: Desk) -> None:
    own, other = office.ticket("A"), office.ticket("B")
    run = office.run("A", own)
    assert office.refused(run, "B", from_agent_id="acme/platform:C") == OTHER_AGENT
    assert office.refused(run, "B", parent_ticket_id=other.number) == OTHER_TICKET
    assert office.refused(run, "B", parent_ticket_id=99) == "Delegation refused: parent ticket #99 does not exist."
    office.handed(run, "B", from_agent_id="acme/platform:A", parent_ticket_id=own.number)


@pytest.mark.promise("D-9")
@pytest.mark.parametrize("delegator", [None, *Autonomy])
@pytest.mark.parametrize("delegate", [None, *Autonomy])
def test_a_delegate_never_acts_more_freely_than_its_delegator(
    acme_desk: Desk, delegator: Autonomy | None, delegate: Autonomy | None
) -> None:
    for name, level in (("A", delegator), ("B", delegate)):
        if level is not None:
            acme_desk.level(name, level)
    levels = list(Autonomy)
    mine, theirs = (level or Autonomy.ACT_WITH_APPROVAL for level in (delegator, delegate))
    result, _ = acme_desk.delegate(acme_desk.run("A"), "B")
    if mine is Autonomy.PROPOSE_ONLY:
        assert result.reason == "this agent may only propose"
    elif levels.index(theirs) > levels.index(mine):
        said = f'Delegation refused: a delegate cannot run "{theirs.value}" above the delegator ceiling "{mine.value}".'
        assert result.reason == said
    else:
        assert result.result is ResultKind.DONE


@pytest.fixture
def acme_desk(sqlite_url: str, tmp_path: Path) -> Iterator[Desk]:
    """A desk on SQLite, for what does not depend on the kind of database."""
    with closing(open_store(sqlite_url)) as store:
        made = desk(store, tmp_path)
        made.agents("A", "B", "C", "D", "E")
        yield made


@pytest.mark.promise("D-7")
@pytest.mark.parametrize("missing", list(Guard))
def test_a_guard_without_its_resolver_refuses(acme_desk: Desk, missing: Guard) -> None:
    lame = replace(acme_desk, resolve=lambda work, given: replace(resolvers_of(work, given), **{missing.value: None}))
    before = acme_desk.everything()
    run = acme_desk.run("A")
    assert lame.refused(run, "B") == f"Delegation refused: the {missing.value} guard cannot be evaluated."
    assert lame.rows("tickets") == before["tickets"]
    assert len(lame.rows("runs")) == len(before["runs"]) + 1


@pytest.mark.promise("D-4")
def test_the_guards_answer_in_their_order(acme_desk: Desk) -> None:
    acme_desk.agent("A", budget={"tool_calls": 1})
    acme_desk.level("D", Autonomy.ACT_FREELY)
    deep = acme_desk.ticket("B", depth=3)
    run = acme_desk.run("A", deep)
    assert "chain depth 4" in acme_desk.refused(run, "A")
    shallow = acme_desk.run("A")
    acme_desk.level("A", Autonomy.ACT_FREELY)
    acme_desk.level("A", Autonomy.ACT_WITH_APPROVAL)
    assert "cycle detected" in acme_desk.refused(shallow, "A")
    assert "above the delegator ceiling" in acme_desk.refused(acme_desk.run("A"), "D")
    assert acme_desk.refused(acme_desk.run("A"), "B") == EXHAUSTED


@pytest.mark.promise("D-4")
@pytest.mark.parametrize("why", ["depth", "cycle", "autonomy", "budget", "paused", "somebody else", "no such parent", "schema"])
def test_a_refused_call_leaves_its_line_in_the_trail_and_nothing_else(office: Desk, why: str) -> None:
    office.agent("A", budget={"tool_calls": 1 if why == "budget" else 5})
    root = office.ticket("A")
    run = office.run("A", office.ticket("B", depth=3, delegated_by_id=run_agent(office, "C")) if why == "depth" else root)
    if why == "autonomy":
        office.level("B", Autonomy.ACT_FREELY)
    if why == "paused":
        with office.store.writing() as work:
            work.registry.pause(office.found(work, "B"), True)
    more: dict[str, object] = {
        "somebody else": {"from_agent_id": "C"},
        "no such parent": {"parent_ticket_id": 77},
        "schema": {"expected_output_schema": {"$ref": "https://example.com/s"}},
    }.get(why, {})
    before = office.everything()
    office.refused(run, "A" if why == "cycle" else "B", **more)
    now = office.everything()
    changed = {table for table in now if now[table] != before[table]}
    assert changed == {"steps", "runs", "budgets", "reservations"}
    [old], [new] = (
        [{name: value for name, value in row.items() if name not in ("steps", "head")} for row in rows["runs"]]
        for rows in (before, now)
    )
    assert old == new
    # The call itself is counted, as every call is; nothing is set aside any more, and nothing of it is money.
    assert all(row["call"] == 1 and row["run_id"] == run.id and row["settled"] is not None for row in now["reservations"])
    assert all(row["reserved"] == 0 and (row["unit"] == "time_ms" or row["spent"] == 1) for row in now["budgets"])


def run_agent(office: Desk, name: str) -> int:
    """The id of an agent."""
    with office.store.reading() as work:
        return office.found(work, name).id


@pytest.mark.promise("D-3")
def test_a_refusal_names_nobody_whom_the_runs_readers_may_not_know(store: SqlStore, tmp_path: Path) -> None:
    wide = desk(store, tmp_path, scope="acme")
    wide.agents("acme:lead", "acme/platform:B", "acme/platform:C")
    second = wide.run("acme/platform:B", None, wide.run("acme:lead"), OpenedBy.MENTION)
    third = wide.handed(second, "acme/platform:C")
    hidden = "an agent outside your access"
    said = f"Delegation refused: cycle detected ({hidden} → acme/platform:B → acme/platform:C → {hidden})."
    assert wide.refused(third, "acme:lead") == said


@pytest.mark.promise("D-1")
def test_delegates_are_agents_of_the_workspace_and_names_are_unique(store: SqlStore, tmp_path: Path) -> None:
    wide = desk(store, tmp_path, scope="acme")
    wide.agents("acme:A", "acme/platform:B", "acme/finance:B", "globex:X")
    run = wide.run("acme:A")
    assert "means several agents" in wide.refused(run, "B")
    foreign, unknown = wide.refused(run, "globex:X"), wide.refused(run, "globex:Y")
    assert foreign == unknown == "agent: means no agent of this workspace; name an agent of the workspace's scope or below"
    assert wide.handed(run, "acme/finance:B").agent.scope == "acme/finance"


@pytest.mark.promise("D-1")
def test_data_of_an_area_is_not_delegated_into_another_one(store: SqlStore, tmp_path: Path) -> None:
    wide = desk(store, tmp_path, scope="acme")
    wide.agents("acme/platform:A", "acme/finance:B")
    said = wide.refused(wide.run("acme/platform:A"), "B")
    rule = "data of the area acme/platform stays in it, its company and the installation"
    assert said == f"area:acme/platform may not go to the scope of that agent: {rule}"
    assert wide.rows("tickets") == []


@pytest.mark.promise("D-1")
def test_a_contract_is_declared_for_the_delegates_run(office: Desk) -> None:
    schema = {"type": "object", "properties": {"cause": {"type": "string"}}, "required": ["cause"]}
    child = office.handed(office.run("A"), "B", expected_output_schema=schema)
    with office.store.reading() as work:
        contract = work.contracts.of_run(child.id)
    assert contract is not None
    assert (json.loads(contract.schema), contract.mode.value) == (schema, "strict")


@pytest.mark.promise("D-1", "W-7")
def test_the_tool_exists_in_chats_alone_and_for_versions_that_name_it() -> None:
    named_by = frozenset({DELEGATE_TASK})
    for mode in (None, *Mode):
        assert has_tool(SPEC, Circumstances(named=named_by, mode=mode)) is (mode is Mode.CHAT)
        assert not has_tool(SPEC, Circumstances(named=frozenset(), mode=mode))
