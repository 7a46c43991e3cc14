"""The shared cases about delegation, each as a test of its kind: with the real tool, Gate and store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.runs import RunState
from agentplat.domain.steps import Ruling
from agentplat.store.migrating import migrate
from agentplat.store.sql import open_store
from agentplat.usecases.delegate_ticket import DelegateTicket

from tests.agentplat.delegation_records import SCOPE, Desk, desk
from tests.agentplat.run_records import folder_content

CASES = ("dlg-chain-from-caller", "dlg-return", "dlg-depth-3", "dlg-limit-lost", "dlg-self", "dlg-capability-gap")


@pytest.fixture
def cases(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["area"] == "delegation"}


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Desk]:
    url = f"sqlite:///{tmp_path / 'agentplat.db'}"
    migrate(url)
    with closing(open_store(url)) as store:
        yield desk(store, tmp_path)


def _back(*names: str) -> str:
    return f"Delegation refused: cycle detected ({' → '.join(f'{SCOPE}:{name}' for name in names)})."


def test_every_shared_case_about_delegation_has_a_test(cases: dict[str, dict[str, Any]]) -> None:
    assert sorted(cases) == sorted(CASES)


@pytest.mark.promise("D-5")
def test_the_chain_is_that_of_the_ticket_that_the_caller_works_on(office: Desk, cases: dict[str, dict[str, Any]]) -> None:
    case = cases["dlg-chain-from-caller"]["given"]
    assert case["call"] == {"from_agent": "B", "parent_ticket": None}
    office.agents("A", "B", "C")
    child = office.handed(office.run("A", office.ticket("A")), "B")
    assert office.refused(child, "A", from_agent_id="B") == _back("A", "B", "A")
    grandchild = office.handed(child, "C", from_agent_id="B")
    tickets = office.rows("tickets")
    assert [(row["number"], row["parent_id"], row["depth"]) for row in tickets] == [(1, None, 0), (2, 1, 1), (3, 2, 2)]
    assert grandchild.agent.name == "C"


@pytest.mark.promise("D-2", "D-4")
def test_a_return_is_refused_before_anything_is_created(office: Desk, cases: dict[str, dict[str, Any]]) -> None:
    first, second = cases["dlg-return"]["given"]["chain"]
    office.agents(first, second)
    run = office.handed(office.run(first, office.ticket(first)), second)
    before = [office.rows(table) for table in ("tickets", "escrows", "messages", "ticket_roles")]
    assert office.refused(run, cases["dlg-return"]["given"]["next"]) == _back(first, second, first)
    assert [office.rows(table) for table in ("tickets", "escrows", "messages", "ticket_roles")] == before
    assert len(office.rows("runs")) == 2


@pytest.mark.promise("D-2", "D-3")
def test_three_hops_are_allowed_and_the_fourth_is_refused(office: Desk, cases: dict[str, dict[str, Any]]) -> None:
    chain = cases["dlg-depth-3"]["given"]["chain"]
    office.agents(*chain)
    run = office.run(chain[0], office.ticket(chain[0]))
    for to in chain[1:-1]:
        run = office.handed(run, to)
    assert office.refused(run, chain[-1]) == "Delegation refused: chain depth 4 exceeds the cap of 3."


@pytest.mark.promise("D-6")
def test_the_limit_of_the_parent_is_that_of_the_tree(office: Desk, cases: dict[str, dict[str, Any]]) -> None:
    given = cases["dlg-limit-lost"]["given"]
    most = cases["dlg-limit-lost"]["expect"]["tree_total_at_most"]
    office.agent("A", budget={"tool_calls": given["parent_limit"]})
    office.agent("B", budget={"tool_calls": given["child_default"]})
    parent = office.run("A")
    child = office.handed(parent, "B")
    allowed = [office.note(child, call).ruling is Ruling.ALLOW for call in range(1, most + 1)]
    office.end(child, RunState.FAILED)
    assert 1 + sum(allowed) == office.of_run(parent)["spent"] == most
    # And a limit above the child's own is not cut down to it for the parent.
    office.agent("C", budget={"tool_calls": 60})
    wide = office.run("C")
    office.handed(wide, "B")
    assert (office.of_run(wide)["spent"], office.of_run(wide)["reserved"], office.of_run(wide)["ceiling"]) == (1, 50, 60)


@pytest.mark.promise("D-2")
def test_the_shortest_return_is_to_oneself(office: Desk, cases: dict[str, dict[str, Any]]) -> None:
    [name] = cases["dlg-self"]["given"]["chain"]
    office.agents(name)
    assert office.refused(office.run(name), cases["dlg-self"]["given"]["next"]) == _back(name, name)


@pytest.mark.promise("D-3")
def test_a_step_that_is_given_back_is_refused_and_the_ticket_says_so(office: Desk, cases: dict[str, dict[str, Any]]) -> None:
    assert cases["dlg-capability-gap"]["expect"]["second"] == "refused, and the refusal is visible on the ticket"
    office.agents("A", "B")
    root = office.ticket("A")
    second = office.handed(office.run("A", root), "B")
    assert office.refused(second, "A") == _back("A", "B", "A")
    reader = Access(None, frozenset({Grant(Role.VIEWER, SCOPE)}))
    show = DelegateTicket(store=office.store, content=folder_content(office.folder))
    [child] = show.tree(reader, office.workspace.id, root.number).children
    assert [(run.id, run.refusals) for run in child.runs] == [(second.id, (_back("A", "B", "A"),))]
