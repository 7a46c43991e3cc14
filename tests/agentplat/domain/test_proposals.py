"""What a proposal has to be, and what is said of one that is not (D-15)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from agentplat.domain.errors import InvalidInput
from agentplat.domain.proposal_reading import read_proposal
from agentplat.domain.proposals import ProposalRevision, newest_run, project_name
from agentplat.domain.tickets import Author
from hypothesis import given

from tests.agentplat.proposals import proposal, proposals, sub_ticket

pytestmark = pytest.mark.promise("D-15")

ROLES = {"worker": "acme/platform:worker", "writer": {"metadata": {"name": "new"}}}


def good() -> dict[str, Any]:
    return proposal([sub_ticket("a"), sub_ticket("b", "writer", ["a"])], ROLES, research="worker")


def faults(given: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        read_proposal(given)
    assert all(fault.remedy for fault in refused.value.violations)
    return [(fault.field, fault.reason) for fault in refused.value.violations]


@given(proposals())
def test_a_proposal_reads_as_it_was_written_whatever_it_says(values: dict[str, Any]) -> None:
    read = read_proposal(values)
    again = read_proposal(json.loads(read.text))
    assert (again, again.text, again.digest) == (read, read.text, read.digest)
    assert read_proposal(json.loads(json.dumps(values))).digest == read.digest


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        (lambda p: p.pop("goal"), "goal", "is missing"),
        (lambda p: p.update(goal=" "), "goal", "is missing, too long or no text"),
        (lambda p: p.update(goal="x" * 10_001), "goal", "is missing, too long or no text"),
        (lambda p: p.update(goal="\ud800"), "goal", "is missing, too long or no text"),
        (lambda p: p.update(extra=1), "extra", "is not known"),
        (lambda p: p.update(roles=[]), "roles", "has 0"),
        (lambda p: p["roles"].extend({"name": f"r{i}", "agent": "acme:x"} for i in range(7)), "roles", "has 9"),
        (lambda p: p.update(sub_tickets=[]), "sub_tickets", "has 0"),
        (lambda p: p.update(sub_tickets={}), "sub_tickets", "is no list"),
        (lambda p: p["sub_tickets"].extend(sub_ticket(f"s{i}") for i in range(15)), "sub_tickets", "has 17"),
        (lambda p: p["roles"][0].pop("agent"), "roles[0]", "names no agent, or one that is there and one to hire"),
        (lambda p: p["roles"][0].update(hire={}), "roles[0]", "names no agent, or one that is there and one to hire"),
        (lambda p: p["roles"][1].update(hire="x"), "roles[1].hire", "is no manifest"),
        (lambda p: p["roles"][1].update(hire={"x": float("nan")}), "proposal", "is not JSON"),
        (lambda p: p["roles"][1].update(name="worker"), "roles[1].name", "'worker' is another role already"),
        (lambda p: p["roles"][0].update(name="a\u202eb"), "roles[0].name", "has a character that cannot be seen"),
        (lambda p: p["sub_tickets"][1].update(key="a"), "sub_tickets[1].key", "'a' is another sub-ticket already"),
        (lambda p: p["sub_tickets"][0].update(key="synthesis"), "sub_tickets[0].key", "'synthesis' is no key"),
        (lambda p: p["sub_tickets"][0].update(key="a b"), "sub_tickets[0].key", "'a b' is no key"),
        (lambda p: p["sub_tickets"][0].update(role="boss"), "sub_tickets[0].role", "'boss' is no role of the proposal"),
        (lambda p: p["sub_tickets"][0].update(ticket=True), "sub_tickets[0].ticket", "is not known"),
        (lambda p: p["sub_tickets"][0].update(retries=4), "sub_tickets[0].retries", "is out of range"),
        (lambda p: p["sub_tickets"][0].update(retries=True), "sub_tickets[0].retries", "is out of range"),
        (
            lambda p: p["sub_tickets"][1].update(depends_on=["a", "c"]),
            "sub_tickets[1].depends_on[1]",
            "'c' is no sub-ticket of the proposal",
        ),
        (lambda p: p["sub_tickets"][1].update(depends_on=["a", "a"]), "sub_tickets[1].depends_on[1]", "'a' is named twice"),
        (lambda p: p["sub_tickets"][1].update(depends_on="a"), "sub_tickets[1].depends_on", "is no list of keys"),
        (lambda p: p["sub_tickets"][0].update(output_schema=3), "sub_tickets[0].output_schema", "is no JSON object"),
        (lambda p: p["research"].update(role="boss"), "research.role", "'boss' is no role of the proposal"),
        (lambda p: p["synthesis"].pop("output_schema"), "synthesis.output_schema", "is missing"),
        (lambda p: p["synthesis"].update(output_schema=None), "synthesis.output_schema", "is missing"),
        (lambda p: p["synthesis"].update(role="boss"), "synthesis.role", "'boss' is no role of the proposal"),
        (lambda p: p.update(budget={}), "budget", "limits nothing"),
        (lambda p: p.update(budget={"tokens": 0}), "budget.tokens", "is out of range"),
        (lambda p: p.update(budget={"tokens": 2**53}), "budget.tokens", "is out of range"),
        (lambda p: p.update(budget={"tokens": 1, "apples": 1}), "budget.apples", "is not known"),
    ],
)
def test_one_fault_is_told_with_its_field(change: Callable[[dict[str, Any]], object], field: str, reason: str) -> None:
    values = good()
    change(values)
    assert faults(values)[0] == (field, reason)


def test_all_faults_are_told_at_once() -> None:
    values = good()
    values["goal"], values["budget"] = "", {"tokens": -1}
    values["sub_tickets"][0].update(depends_on=["b"], role="boss")
    values["synthesis"]["role"] = "nobody"
    assert [field for field, _ in faults(values)] == [
        "goal",
        "budget.tokens",
        "sub_tickets[0].role",
        "synthesis.role",
        "sub_tickets",
    ]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_a_loop_is_named_from_each_to_what_it_depends_on(order: list[int]) -> None:
    found = [sub_ticket("a", needs=["c"]), sub_ticket("b", needs=["a"]), sub_ticket("c", needs=["b"]), sub_ticket("d", needs=["a"])]
    values = proposal([found[i] for i in order], ROLES)
    assert faults(values) == [("sub_tickets", "the sub-tickets depend on each other in a loop: a → c → b → a")]


def test_loops_without_a_common_key_are_all_named() -> None:
    values = proposal([sub_ticket("a", needs=["a"]), sub_ticket("c", needs=["b"]), sub_ticket("b", needs=["c"])], ROLES)
    loops = [reason.rpartition(": ")[2] for _, reason in faults(values)]
    assert sorted(loops) == ["a → a", "b → c → b"]


def test_a_schema_that_would_not_be_kept_is_refused_with_the_place_inside_it() -> None:
    values = good()
    values["sub_tickets"][1]["output_schema"] = {"type": "object", "properties": {"x": {"typ": "string"}}}
    [(field, _)] = faults(values)
    assert field.startswith("sub_tickets[1].output_schema/properties/x")


@pytest.mark.parametrize("given", [None, 3, [], "x", {}])
def test_what_is_no_proposal_at_all_is_refused_with_all_that_it_lacks(given: Any) -> None:
    told = faults(given)
    assert told if given == {} else told[0] == ("proposal", "is no JSON object")


def test_a_proposal_beyond_all_measure_is_refused() -> None:
    values = good()
    deep: Any = "x"
    for _ in range(3_000):
        deep = [deep]
    values["roles"][1]["hire"] = {"x": deep}
    assert faults(values) == [("proposal", "is not JSON")]
    values["roles"][1]["hire"] = {"x": "y" * 300_000}
    [(field, reason)] = faults(values)
    assert field == "proposal"
    assert reason.endswith("bytes of JSON")


def test_nothing_is_changed_in_what_was_given() -> None:
    values = good()
    before = copy.deepcopy(values)
    read_proposal(values)
    assert values == before


def test_a_project_is_called_after_the_first_line_of_the_goal() -> None:
    assert project_name("  Ship it.\nSoon.") == "Ship it."
    assert len(project_name("x" * 500)) == 100


def test_the_chain_of_a_proposal_is_that_of_the_last_run_that_wrote_any_revision() -> None:
    def revisions(*authors: Author) -> list[ProposalRevision]:
        return [
            ProposalRevision(proposal_id=1, number=i, body="{}", digest="0" * 64, author=author, at=i)
            for i, author in enumerate(authors, 1)
        ]

    person = Author(person_id=1)
    assert newest_run(revisions(person, person)) is None
    assert newest_run(revisions(Author(run_id=3), person)) == 3
    assert newest_run(revisions(Author(run_id=3), Author(run_id=5), person)) == 5
