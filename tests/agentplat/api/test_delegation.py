"""The routes of delegation: who may use them, and what is nobody's business."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access

from tests.agentplat.http import Api, api
from tests.agentplat.world import World

ROUTES = {
    ("POST", "/v1/workspaces/{workspace}/tickets:delegate"),
    ("GET", "/v1/workspaces/{workspace}/tickets/{number}/tree"),
}


@pytest.fixture
def served(acme: World) -> Iterator[Api]:
    """A server, with a workspace, a space and an agent in each of three scopes, whose ids are 1 to 3."""
    for scope in ("acme/platform", "acme/finance", "globex"):
        author = acme.person(f"{scope}:author", f"author={scope}")
        acme.publish(author, f"{scope}:helper")
        acme.publish(author, f"{scope}:other")
        workspace = acme.cases.together.workspaces.create(author, scope, "checkout")
        acme.cases.together.spaces.create(author, workspace.id, "triage")
        acme.cases.together.tickets.create(author, workspace.id, "root", "")
    with api(acme) as running:
        yield running


def _ask(client: httpx.Client, workspace: int, **more: Any) -> httpx.Response:
    given = {"space_id": workspace, "agent": "helper", "title": "to do", **more}
    return client.post(f"/v1/workspaces/{workspace}/tickets:delegate", json=given)


@pytest.fixture
def author(acme: World) -> Access:
    """Whoever may write in one area and read nothing elsewhere."""
    return acme.person("acme/platform:author", "author=acme/platform")


@pytest.mark.promise("O-5", "D-1")
def test_what_is_not_yours_and_what_is_not_there_get_the_same_bytes(served: Api, author: Access) -> None:
    with served.client(author) as client:
        own = _ask(client, 1)
        assert (own.status_code, own.json()["agent"]) == (201, "acme/platform:helper")
        assert client.get("/v1/workspaces/1/tickets/2/tree").json()["assignee"] == "acme/platform:helper"
        answers = [_ask(client, workspace) for workspace in (2, 3, 4, 2**40)]
        assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
        elsewhere = [_ask(client, 1, space_id=space) for space in (2, 3, 4, 2**40)]
        assert {(answer.status_code, answer.content) for answer in elsewhere} == {(404, elsewhere[0].content)}
        trees = [
            client.get(f"/v1/workspaces/{w}/tickets/{n}/tree") for w, n in ((2, 1), (3, 1), (4, 1), (1, 9), (2**40, 2**31 - 1))
        ]
        assert {(tree.status_code, tree.content) for tree in trees} == {(404, trees[0].content)}
        agents = [_ask(client, 1, agent=agent) for agent in ("acme/finance:helper", "globex:helper", "globex:none", "none")]
        assert {(answer.status_code, answer.content) for answer in agents} == {(422, agents[0].content)}


@pytest.mark.promise("O-5", "D-1")
def test_whoever_only_reads_delegates_nothing_and_sees_the_tree(served: Api, acme: World, author: Access) -> None:
    with served.client(author) as client:
        assert _ask(client, 1).status_code == 201
    with served.client(acme.person("acme/platform:reader", "viewer=acme/platform")) as client:
        assert _ask(client, 1).status_code == 403
        tree = client.get("/v1/workspaces/1/tickets/2/tree").json()
        assert (tree["ticket"], tree["title"], tree["delegated"], tree["runs"][0]["state"]) == (2, "to do", False, "queued")


@pytest.mark.promise("D-1")
@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"title": "nul\0"}, "title"),
        ({"description": "\x00"}, "description"),
        ({"agent": "a b:c:d"}, "agent"),
        ({"budget": {"tokens": -1}}, "budget.tokens"),
        ({"budget": {"coins": 1}}, "budget.coins"),
        ({"output_contract_mode": "loose", "expected_output_schema": {}}, "output_contract_mode"),
        ({"expected_output_schema": {"$ref": "https://example.com/s"}}, "expected_output_schema/$ref"),
        ({"parent_ticket_id": 0}, "parent_ticket_id"),
        ({"from_agent_id": "acme/platform:helper"}, "from_agent_id"),
    ],
)
def test_a_faulty_request_is_told_its_field_and_stores_nothing(
    served: Api, author: Access, more: dict[str, Any], field: str
) -> None:
    with served.client(author) as client:
        answer = _ask(client, 1, **more)
        assert answer.status_code == 422, answer.text
        assert answer.json()["violations"][0]["field"] == field
        assert len(client.get("/v1/workspaces/1/tickets").json()["tickets"]) == 1


@pytest.mark.promise("D-6")
def test_a_persons_budget_limits_the_run_that_it_opens(served: Api, author: Access) -> None:
    with served.client(author) as client:
        made = _ask(client, 1, budget={"tool_calls": 4, "money_usd": 0.5}).json()
        assert made["ceilings"] == {"money_microusd": 500_000, "tool_calls": 4}
        shown = client.get("/v1/budgets", params={"run": made["run"]})
        assert shown.status_code == 200, shown.text
        own = {one["unit"]: one["ceiling"] for one in shown.json()["budgets"] if one["kind"] == "run"}
        assert own == {"money_microusd": 500_000, "tool_calls": 4}
