"""Proposals and pipelines over HTTP: every route for what is one's own, somebody else's and not there, and what each answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access
from agentplat.store.migrating import migrate

from tests.agentplat.http import Api, api, path
from tests.agentplat.offices import Office, finish, office, publish, submit
from tests.agentplat.proposals import proposal, sub_ticket
from tests.agentplat.world import manifest, world

UNKNOWN_ID = 2**40
OWN, FINANCE, GLOBEX = "acme/platform", "acme/finance", "globex"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A space, a proposal in it with the digest of its only revision, and a running pipeline."""

    space: int
    proposal: int
    digest: str
    pipeline: int
    values: Any


def _seen(target: Target, **more: Any) -> dict[str, Any]:
    return {"revision": 1, "digest": target.digest, **more}


# What names a space, a proposal or a pipeline, by method and pattern, with the status for one's own.
ROUTES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/spaces/{space}/proposals"): (
        201,
        lambda t: (path("v1", "spaces", t.space, "proposals"), {"proposal": t.values}),
    ),
    ("GET", "/v1/proposals/{proposal}"): (200, lambda t: (path("v1", "proposals", t.proposal), None)),
    ("POST", "/v1/proposals/{proposal}/revisions"): (
        201,
        lambda t: (path("v1", "proposals", t.proposal, "revisions"), {"proposal": t.values}),
    ),
    ("POST", "/v1/proposals/{proposal}/approve"): (200, lambda t: (path("v1", "proposals", t.proposal, "approve"), _seen(t))),
    ("POST", "/v1/proposals/{proposal}/decline"): (
        200,
        lambda t: (path("v1", "proposals", t.proposal, "decline"), _seen(t, reason="too dear")),
    ),
    ("GET", "/v1/pipelines/{pipeline}"): (200, lambda t: (path("v1", "pipelines", t.pipeline), None)),
    ("POST", "/v1/pipelines/{pipeline}/cancel"): (
        200,
        lambda t: (path("v1", "pipelines", t.pipeline, "cancel"), {"reason": "enough"}),
    ),
}
LISTS = {("GET", "/v1/proposals"), ("GET", "/v1/pipelines")}
READING = {route for route in ROUTES if route[0] == "GET"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A served platform with an office in each of three scopes."""

    api: Api
    offices: dict[str, Office]

    def target(self, scope: str) -> Target:
        """A new proposal and a new pipeline of the scope."""
        hall = self.offices[scope]
        values = proposal([sub_ticket("a")], {"worker": f"{scope}:worker"}, goal=f"Secret of {scope}.")
        started = hall.approve(hall.propose(values))
        proposed = hall.propose(values)
        return Target(space=hall.space.id, proposal=proposed.kept.id, digest=proposed.digest, pipeline=started.id, values=values)

    def person(self, *roles: str) -> Access:
        """Somebody with these roles in one area and none elsewhere."""
        return self.api.world.person(f"{OWN}:{'-'.join(roles)}", *(f"{role}={OWN}" for role in roles))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("orchestration")
    url = f"sqlite:///{folder / 'agentplat.db'}"
    migrate(url)
    with world(url, folder) as opened, api(opened) as running:
        halls = {scope: office(opened, folder, scope) for scope in (OWN, FINANCE, GLOBEX)}
        for scope in halls:
            publish(opened.store, f"{scope}:worker", submit(), finish("worked"))
        yield Place(api=running, offices=halls)


@pytest.fixture(scope="module")
def author(place: Place) -> Iterator[httpx.Client]:
    with place.api.client(place.person("author")) as client:
        yield client


def _ask(client: httpx.Client, route: tuple[str, str], target: Target) -> httpx.Response:
    where, body = ROUTES[route][1](target)
    return client.request(route[0], where, json=body)


@pytest.mark.promise("O-5")
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_what_is_not_yours_and_what_is_not_there_get_the_same_answer(
    place: Place, author: httpx.Client, route: tuple[str, str]
) -> None:
    own = place.target(OWN)
    missing = Target(space=UNKNOWN_ID, proposal=UNKNOWN_ID, digest="0" * 64, pipeline=UNKNOWN_ID, values=own.values)
    targets = [place.target(FINANCE), place.target(GLOBEX), missing]
    answers = [_ask(author, route, target) for target in targets]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert len({answer.text for answer in answers}) == 1
    with place.api.client(token="x") as stranger:
        assert {_ask(stranger, route, target).status_code for target in (own, *targets)} == {401}
    with place.api.client(place.person("viewer")) as viewer:
        assert _ask(viewer, route, own).status_code == (200 if route in READING else 403)
    assert _ask(author, route, own).status_code == ROUTES[route][0]


@pytest.mark.promise("O-5")
def test_lists_show_only_what_is_yours_and_a_space_that_is_not_is_not_there(place: Place, author: httpx.Client) -> None:
    own, hidden = place.target(OWN), [place.target(FINANCE), place.target(GLOBEX)]
    for what, name in (("proposals", "proposal"), ("pipelines", "pipeline")):
        listed = author.get(f"/v1/{what}", params={"page_size": 1000})
        ids = [found[name] for found in listed.json()[what]]
        assert getattr(own, name) in ids
        assert not {getattr(target, name) for target in hidden} & set(ids)
        assert "finance" not in listed.text
        assert "globex" not in listed.text
        of_space = author.get(f"/v1/{what}", params={"space": own.space, "page_size": 1}).json()
        assert [found["space"] for found in of_space[what]] == [own.space]
        assert author.get(f"/v1/{what}", params={"space": own.space, "before": 1}).json() == {what: [], "next": None}
        told = {
            author.get(f"/v1/{what}", params={"space": number}).text for number in (hidden[0].space, hidden[1].space, UNKNOWN_ID)
        }
        assert len(told) == 1


@pytest.mark.promise("D-15")
def test_a_persons_proposal_is_shown_revised_and_approved_as_it_was_seen(place: Place, author: httpx.Client) -> None:
    target = place.target(OWN)
    where = path("v1", "proposals", target.proposal)
    shown = author.get(where).json()
    assert (shown["state"], shown["revision"], shown["shown_revision"], shown["digest"]) == ("proposed", 1, 1, target.digest)
    assert (shown["body"]["goal"], shown["person"], shown["run"], shown["pipeline"]) == (
        f"Secret of {OWN}.",
        f"{OWN}:ana",
        None,
        None,
    )
    again = {**shown["body"], "goal": "Another one."}
    revised = author.post(f"{where}/revisions", json={"proposal": again}).json()
    assert (revised["proposal"], revised["revision"]) == (target.proposal, 2)
    stale = author.post(f"{where}/approve", json={"revision": 1, "digest": target.digest})
    assert (stale.status_code, "is not the newest, which is 2" in stale.text) == (409, True)
    approved = author.post(f"{where}/approve", json={"revision": 2, "digest": revised["digest"]})
    assert approved.status_code == 200
    shown = author.get(where).json()
    assert (shown["state"], shown["approved_revision"], shown["pipeline"]) == ("approved", 2, approved.json()["pipeline"])
    assert shown["decided_by"] == f"{OWN}:author"
    assert author.get(where, params={"revision": 1}).json()["digest"] == target.digest
    assert author.get(where, params={"revision": 3}).status_code == 404
    assert author.post(f"{where}/approve", json={"revision": 2, "digest": revised["digest"]}).status_code == 409


@pytest.mark.promise("D-15")
def test_every_fault_of_a_proposal_comes_with_field_reason_and_remedy(place: Place, author: httpx.Client) -> None:
    target = place.target(OWN)
    wrong = {**target.values, "goal": "", "budget": {}, "sub_tickets": [sub_ticket("a", "worker", ["a"])]}
    answer = author.post(path("v1", "spaces", target.space, "proposals"), json={"proposal": wrong})
    assert answer.status_code == 422
    violations = answer.json()["violations"]
    assert [found["field"] for found in violations] == ["goal", "budget", "sub_tickets"]
    assert all(found["reason"] and found["remedy"] for found in violations)
    assert "a → a" in violations[2]["reason"]


@pytest.mark.promise("D-14", "P-4")
def test_who_approves_is_told_which_loops_the_hired_agents_close(place: Place, author: httpx.Client) -> None:
    hall = place.offices[OWN]
    loop = [{"event": "asked", "artifacts": []}], ["answered"]
    hall.world.publish(hall.access, f"{OWN}:asker", *loop)
    hire = json.loads(manifest(f"{OWN}:answerer", [{"event": "answered", "artifacts": []}], ["asked"]))
    proposed = hall.propose(proposal([sub_ticket("a")], {"worker": f"{OWN}:worker", "answerer": hire}))
    where = path("v1", "proposals", proposed.kept.id, "approve")
    answer = author.post(where, json={"revision": 1, "digest": proposed.digest}).json()
    [hired] = answer["hires"]
    assert (hired["agent"], hired["version"], hired["created"], hired["state"]) == (f"{OWN}:answerer", 1, True, "verified")
    assert any("answerer → asker → answerer" in line for line in hired["warning"])


@pytest.mark.promise("D-16")
def test_a_pipeline_is_shown_with_its_steps_their_runs_and_what_they_took(place: Place, author: httpx.Client) -> None:
    hall = place.offices[OWN]
    pipeline = hall.started_by(f"{OWN}:worker")
    hall.rounds(pipeline)
    shown = author.get(path("v1", "pipelines", pipeline.id)).json()
    assert (shown["state"], shown["name"], shown["on_behalf_of"]) == ("finished", "Ship the report.", f"{OWN}:ana")
    assert [(step["key"], step["kind"], step["needs"], step["state"]) for step in shown["steps"]] == [
        ("a", "promptAgent", [], "finished"),
        ("synthesis", "synthesis", ["a"], "finished"),
    ]
    runs = [run for step in shown["steps"] for run in step["runs"]]
    assert runs == [run_id for _, _, run_id in hall.runs(pipeline)]
    assert {step["agent"] for step in shown["steps"]} == {f"{OWN}:worker"}
    assert [step["run_state"] for step in shown["steps"]] == ["finished"] * 2
    calls = next(budget for budget in shown["budgets"] if budget["unit"] == "tool_calls")
    assert (calls["kind"], calls["of"], calls["ceiling"], calls["spent"]) == ("pipeline", str(pipeline.id), 1_000, 1)


@pytest.mark.promise("D-16", "A-16")
def test_an_admin_of_the_workspace_raises_what_a_pipeline_may_take_and_nobody_else(place: Place, author: httpx.Client) -> None:
    own, hidden = place.target(OWN), place.target(FINANCE)
    new = {"pipeline": own.pipeline, "unit": "tool_calls", "ceiling": 2_000}
    assert author.put("/v1/budgets", json=new).status_code == 403
    with place.api.client(place.person("admin")) as admin:
        assert admin.put("/v1/budgets", json=new).status_code == 200
        [shown] = [
            b for b in admin.get("/v1/budgets", params={"pipeline": own.pipeline}).json()["budgets"] if b["kind"] == "pipeline"
        ]
        assert shown["ceiling"] == 2_000
        told = {admin.put("/v1/budgets", json={**new, "pipeline": number}).text for number in (hidden.pipeline, UNKNOWN_ID)}
        assert len(told) == 1
