"""Every route of the application that names a thing, asked about what is the caller's, what is not, and what is not there.

The routes come from the application itself, and what stands in their paths is filled in by the parameters' names: a new route is
covered as soon as it is there, or this test says what it lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Grant, Role
from agentplat.domain.labels import label_of, parse_labels
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.domain.tickets import Author, MessageKind, NewTicket
from agentplat.store.migrating import migrate
from agentplat.store.work_port import Spaces

from tests.agentplat.api import test_orchestration
from tests.agentplat.http import Api, api, path
from tests.agentplat.records import person
from tests.agentplat.run_records import opened
from tests.agentplat.tool_records import Shop, shop
from tests.agentplat.world import world

OWN, AREA, COMPANY = "acme/platform", "acme/finance", "globex"
UNKNOWN_ID = 2**40
HIDDEN = "zzhidden"
ALL_ROLES = tuple(f"{role.value}={OWN}" for role in Role)
DECLASSIFY = {"label": "untrusted", "reason": "harmless", "until": "2199-01-01T00:00:00Z"}

BODIES: Mapping[str, Any] = {
    "POST /v1/agents/{ref}/resume-delivery": {"skip": False},
    "POST /v1/agents/{ref}/runs": {"input": "x"},
    "POST /v1/approvals/{approval}/answer": {"granted": True, "digest": "0" * 64},
    "POST /v1/runs/{run}/artifacts/{name}/declassify": DECLASSIFY,
    "POST /v1/runs/{run}/artifacts/{name}/erase": {"reason": "asked for"},
    "POST /v1/runs/{run}/erase-input": {"reason": "asked for"},
    "POST /v1/people/{ref}/tokens": {"name": "another"},
    "POST /v1/workspaces/{workspace}/repositories": {"name": "site", "path": "/nowhere"},
    "POST /v1/workspaces/{workspace}/spaces": {"name": "Another"},
    "POST /v1/workspaces/{workspace}/review-spaces": {"pull_request": "site#1"},
    "PUT /v1/workspaces/{workspace}/spaces/{space}/mode": {"mode": "plan"},
    "PUT /v1/workspaces/{workspace}/spaces/{space}/autonomy/{ref}": {"level": "proposeOnly"},
    "POST /v1/workspaces/{workspace}/spaces/{space}/messages": {"body": "hello"},
    "POST /v1/workspaces/{workspace}/tickets": {"title": "Another"},
    "POST /v1/workspaces/{workspace}/tickets:delegate": {"space_id": UNKNOWN_ID, "agent": "helper", "title": "Another"},
    "PATCH /v1/workspaces/{workspace}/tickets/{number}": {"version": 1, "status": "done"},
    "POST /v1/workspaces/{workspace}/tickets/{number}/comments": {"body": "hello"},
}
"""What routes take besides their path."""

QUERIES = {"GET /v1/workspaces/{workspace}/completions": f"?text=@{HIDDEN[:2]}"}

# What a caller who may do everything in the scope gets instead of a success, and why.
OTHERWISE = {
    # It names a space in its body, which its own tests ask about.
    "POST /v1/workspaces/{workspace}/tickets:delegate": 404,
    "POST /v1/workspaces/{workspace}/repositories": 403,  # only an admin of the installation names paths of the host
    "POST /v1/approvals/{approval}/answer": 409,  # another digest than that of what would run
    "POST /v1/runs/{run}/erase-input": 404,  # nobody wrote anything for it
    "POST /v1/runs/{run}/resume": 409,  # it waits for an approval
    "POST /v1/dispatch/{run}/resume": 409,  # it is not set aside
    "POST /v1/agents/{ref}/resume-delivery": 409,  # nothing of it is set aside
    "DELETE /v1/people/{ref}/tokens/{name}": 404,  # a person has no token of this name
}

# Routes whose path names nothing; what some of them name elsewhere is asked about in other tests.
WITHOUT_NAMES = {
    "GET /healthz", "GET /readyz", "GET /v1/schema/manifest", "GET /openapi.json", "GET /v1/me", "GET /v1/agents", "GET /v1/runs",
    "POST /v1/agents:publish", "POST /v1/agents:preview", "GET /v1/dispatch", "GET /v1/dispatch/reconciliation", "GET /v1/limits",
    "PATCH /v1/limits", "GET /v1/approvals", "GET /v1/budgets", "PUT /v1/budgets", "GET /v1/people", "POST /v1/people",
    "GET /v1/acts", "GET /v1/me/mentions", "GET /v1/workspaces", "POST /v1/workspaces",
    # Asked with the token of one run, which names it.
    "POST /v1/external:lease", "GET /v1/external/run", "GET /v1/external/run/tools", "POST /v1/external/run/heartbeat",
    "POST /v1/external/run/calls", "POST /v1/external/run/turns", "POST /v1/external/run/finish", "POST /v1/external/run/fail",
    "POST /v1/external/run/release",
}  # fmt: skip
LISTS = (
    "/v1/agents",
    "/v1/runs",
    "/v1/dispatch",
    "/v1/approvals",
    "/v1/people",
    "/v1/acts",
    "/v1/workspaces",
    "/v1/me",
    "/v1/me/mentions",
)

# Routes that end or take away what they name.
ENDING = {
    "POST /v1/agents/{ref}/retire",
    "POST /v1/runs/{run_id}/cancel",
    "POST /v1/runs/{run}/artifacts/{name}/erase",
    "POST /v1/runs/{run}/erase-input",
    "DELETE /v1/workspaces/{workspace}/spaces/{space}",
}

# Routes of proposals and pipelines are asked in test_orchestration, whose tables have to name them all.
ORCHESTRATION = {" ".join(route) for route in test_orchestration.ROUTES.keys() | test_orchestration.LISTS}

METHODS = ("get", "put", "post", "patch", "delete")
THINGS = frozenset({"ref", "run", "run_id", "approval", "workspace", "space", "number"})
PLAIN = {"name": "letter", "role": "viewer", "scope": OWN, "kind": "agent"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """One of each thing, of one scope. done: a finished run."""

    agent: str
    person: str
    run: int
    done: int
    approval: int
    workspace: int
    space: int
    number: int

    def value(self, route: str, name: str) -> Any:
        """What stands for a parameter of a route."""
        if name == "ref":
            return self.person if "/people/" in route else self.agent
        if name in ("run", "run_id"):
            return self.done if "artifacts" in route or "erase-input" in route else self.run
        if name == "number" and "/versions/" in route:
            return 1 if self is not NOT_THERE else 999
        return getattr(self, name)


NOT_THERE = Target(
    agent=f"{OWN}:nobody", person=f"{OWN}:nobody", run=UNKNOWN_ID, done=UNKNOWN_ID, approval=UNKNOWN_ID, workspace=UNKNOWN_ID,
    space=UNKNOWN_ID, number=2**30,
)  # fmt: skip


@dataclass(kw_only=True)
class Place:
    """A served platform with what is in it."""

    api: Api
    shop: Shop
    made: int = 0

    def _held(self, agent: Ref, **given: Any) -> Run:
        run = opened(self.api.world.store, agent, **given)
        held = self.shop.lease()
        assert held.id == run.id
        return held

    def target(self, scope: str, mark: str = "seen") -> Target:
        """One of each thing, new. mark: stands in all their names and texts."""
        self.made += 1
        agent, name = Ref(scope, f"{mark}{self.made}"), f"{mark} {self.made}"
        self.api.world.publish(self.api.world.person("acme:root", "author=*"), agent.text, tools=["pay"])
        done = self._held(agent, labels=label_of(scope) | parse_labels(["untrusted"]))
        self.shop.finish(done, {"letter": f"{name} letter"})
        run = self.shop.waits(self._held(agent), 1, "pay", {"text": "100"})
        with self.api.world.store.writing() as work:
            question = work.approvals.of_call(run.id, 1)
            who = person(work, agent.name, scope)
            work.people.grant(who, Grant(Role.VIEWER, scope))
            workspace = work.workspaces.add(scope, name, who, 1)
            assert question is not None
            assert workspace is not None
            space = work.spaces.add(workspace.id, name, Mode.CHAT, who, 1)
            assert space is not None
            _fill(work.spaces, space, who.id, name)
            # Others have higher numbers than the caller's workspace has any.
            new = NewTicket(workspace_id=workspace.id, title=name, description=name, made_by_id=who.id)
            ticket = [work.tickets.make(new, 1) for _ in range(9 if mark == HIDDEN else 1)][-1]
        return Target(
            agent=agent.text,
            person=Ref(scope, agent.name).text,
            run=run.id,
            done=done.id,
            approval=question.id,
            workspace=workspace.id,
            space=space.id,
            number=ticket.number,
        )


def _fill(spaces: Spaces, space: Any, person_id: int, text: str) -> None:
    spaces.say(space, MessageKind.SAID, Author(person_id=person_id), text, 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("routes")
    url = f"sqlite:///{folder / 'agentplat.db'}"
    migrate(url)
    with world(url, folder) as opened, api(opened) as running:
        yield Place(api=running, shop=shop(opened.store, folder))


@pytest.fixture(scope="module")
def others(place: Place) -> tuple[Target, ...]:
    """What is of another area, of another company, and not there at all."""
    return (place.target(AREA, HIDDEN), place.target(COMPANY, HIDDEN), NOT_THERE)


@pytest.fixture(scope="module")
def kept(place: Place) -> Target:
    """What is the caller's."""
    return place.target(OWN)


@pytest.fixture(scope="module")
def everything(place: Place) -> Iterator[httpx.Client]:
    """Somebody who may do everything in one area."""
    with place.api.client(place.api.world.person(f"{OWN}:everything", *ALL_ROLES)) as client:
        yield client


def _routes(app: Any) -> list[str]:
    """Every route, as method and pattern."""
    documented = {
        f"{method.upper()} {pattern}"
        for pattern, methods in app.openapi()["paths"].items()
        for method in methods
        if method in METHODS
    }
    plain = {f"{method} {route.path}" for route in app.routes for method in (getattr(route, "methods", None) or ())}
    return sorted(route for route in (documented | plain) - ORCHESTRATION if not route.startswith(("HEAD", "OPTIONS")))


def _names(route: str) -> list[str]:
    return re.findall(r"{(\w+)", route)


def _asked(client: httpx.Client, route: str, values: Mapping[str, Any]) -> httpx.Response:
    method, pattern = route.split(" ")
    parts = [str(values[part[1:-1]]) if part.startswith("{") else part for part in pattern.split("/")[1:]]
    return client.request(method, path(*parts) + QUERIES.get(route, ""), json=BODIES.get(route))


def _values(route: str, target: Target) -> dict[str, Any]:
    plain = {**PLAIN, "role": "reviewer" if "/tickets/" in route else "viewer"}
    return {name: target.value(route, name) if name in THINGS else plain[name] for name in _names(route)}


@pytest.mark.promise("W-12", "O-5")
def test_every_route_names_only_what_this_test_knows_how_to_ask_about(place: Place) -> None:
    routes = _routes(place.api.app)
    assert [route for route in routes if not _names(route) and route not in WITHOUT_NAMES] == []
    assert [route for route in routes if set(_names(route)) - THINGS - set(PLAIN)] == []
    assert len([route for route in routes if "/workspaces/{workspace}" in route]) >= 20


@pytest.mark.promise("W-12", "O-5")
def test_what_is_not_yours_and_what_is_not_there_get_the_same_answer_by_every_route(
    place: Place, others: tuple[Target, ...], kept: Target, everything: httpx.Client
) -> None:
    wrong = []
    # What a route ends or takes away is not asked about again.
    apart = {route: place.target(OWN) for route in sorted(ENDING)}
    for route in [route for route in _routes(place.api.app) if _names(route)]:
        target = apart.get(route, kept)
        own = _values(route, target)
        for name in sorted(set(_names(route)) & THINGS - ({"number"} if "/versions/" in route else set())):
            answers = [_asked(everything, route, {**own, name: other.value(route, name)}) for other in others]
            if {answer.status_code for answer in answers} != {404} or len({answer.content for answer in answers}) != 1:
                wrong.append((route, name, [(answer.status_code, answer.text[:200]) for answer in answers]))
        answer = _asked(everything, route, own)
        expected = OTHERWISE.get(route)
        if answer.status_code != expected if expected else not answer.is_success:
            wrong.append((route, "own", [(answer.status_code, answer.text[:200])]))
    assert not wrong, "\n".join(map(repr, wrong))


@pytest.mark.promise("W-12")
def test_no_list_search_completion_or_page_tells_of_what_is_not_yours(
    place: Place, others: tuple[Target, ...], kept: Target, everything: httpx.Client
) -> None:
    pages = [route for route in _routes(place.api.app) if route.startswith("GET ") and _names(route)]
    answers = {route: _asked(everything, route, _values(route, kept)).text for route in pages}
    answers |= {where: everything.get(where, params={"page_size": 1_000}).text for where in (*LISTS, "/v1/me/mentions")}
    assert [route for route, text in answers.items() if HIDDEN in text] == []
    mine = f"/v1/workspaces/{kept.workspace}"
    said = [everything.post(f"{mine}/spaces/{kept.space}/messages", json={"body": f"@{name} go"}) for name in (HIDDEN, "zznobody")]
    assert [answer.status_code for answer in said] == [422, 422]
    assert said[0].text.replace(HIDDEN, "zznobody") == said[1].text
    # The workspaces of others count for nothing.
    listed = everything.get("/v1/workspaces", params={"page_size": 1_000}).json()["workspaces"]
    assert {workspace["scope"] for workspace in listed} == {OWN}
    assert {other.workspace for other in others}.isdisjoint(workspace["id"] for workspace in listed)


@pytest.mark.promise("W-12", "O-5")
def test_nobody_gets_anything_without_a_token(place: Place, others: tuple[Target, ...]) -> None:
    with place.api.client() as nobody:
        answers = [
            _asked(nobody, route, _values(route, other))
            for route in _routes(place.api.app)
            if _names(route)
            for other in (others[0], NOT_THERE)
        ]
    assert {answer.status_code for answer in answers} == {401}
