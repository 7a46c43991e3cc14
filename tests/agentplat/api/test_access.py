"""Every route of the API, asked for what is one's own, somebody else's and not there (O-5).

A route that is not in the table fails the first test, so that a new one cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access
from agentplat.store.migrating import migrate

from tests.agentplat.api import test_governing, test_orchestration
from tests.agentplat.http import Api, api, path
from tests.agentplat.world import manifest, ref, world

pytestmark = pytest.mark.promise("O-5")


@dataclass(frozen=True, kw_only=True)
class Target:
    """Things that a route may name, all of one owner."""

    agent: str
    person: str
    scope: str
    run: int


OWN = Target(agent="acme/platform:developer", person="acme/platform:ana", scope="acme/platform", run=1)
HIDDEN = (
    Target(agent="acme/finance:payer", person="acme/finance:fin", scope="acme/finance", run=2),
    Target(agent="globex:writer", person="globex:bob", scope="globex", run=3),
)
MISSING = (
    Target(agent="acme/platform:nobody", person="acme/platform:nobody", scope="acme/platform", run=4),
    Target(agent="acme/finance:nobody", person="acme/finance:nobody", scope="acme/finance", run=1_000_000),
    Target(agent="globex:nobody", person="globex:nobody", scope="globex", run=2**40),
    Target(agent="initech/x:a/b:c/versions/1", person="initech:x/y", scope="initech/x", run=2**63 - 1),
)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request for a target."""

    path: str
    body: Mapping[str, Any] | None = None


def _agent(target: Target, *rest: object) -> str:
    return path("v1", "agents", target.agent, *rest)


def _person(target: Target, *rest: object) -> str:
    return path("v1", "people", target.person, *rest)


def _run(target: Target, *rest: object) -> str:
    return path("v1", "runs", target.run, *rest)


# What names a target, by method and pattern. `own` is the status for the owner's own target.
NAMING = {
    ("GET", "/v1/agents/{ref}"): (200, lambda t: Ask(path=_agent(t))),
    ("GET", "/v1/agents/{ref}/versions"): (200, lambda t: Ask(path=_agent(t, "versions"))),
    ("GET", "/v1/agents/{ref}/versions/{number}"): (200, lambda t: Ask(path=_agent(t, "versions", 1))),
    ("GET", "/v1/agents/{ref}/versions/{number}/report"): (200, lambda t: Ask(path=_agent(t, "versions", 1, "report"))),
    ("POST", "/v1/agents/{ref}/pause"): (200, lambda t: Ask(path=_agent(t, "pause"))),
    ("POST", "/v1/agents/{ref}/resume"): (200, lambda t: Ask(path=_agent(t, "resume"))),
    ("POST", "/v1/agents/{ref}/resume-delivery"): (409, lambda t: Ask(path=_agent(t, "resume-delivery"), body={"skip": False})),
    ("POST", "/v1/agents/{ref}/retire"): (200, lambda t: Ask(path=_agent(t, "retire"))),
    ("POST", "/v1/agents/{ref}/runs"): (201, lambda t: Ask(path=_agent(t, "runs"), body={"input": "Look."})),
    ("GET", "/v1/runs/{run_id}"): (200, lambda t: Ask(path=_run(t))),
    ("GET", "/v1/runs/{run_id}/trail"): (200, lambda t: Ask(path=_run(t, "trail"))),
    ("GET", "/v1/runs/{run_id}/verification"): (200, lambda t: Ask(path=_run(t, "verification"))),
    ("POST", "/v1/runs/{run_id}/cancel"): (200, lambda t: Ask(path=_run(t, "cancel"))),
    ("GET", "/v1/chains/{run}"): (200, lambda t: Ask(path=path("v1", "chains", t.run))),
    ("POST", "/v1/dispatch/{run}/resume"): (409, lambda t: Ask(path=path("v1", "dispatch", t.run, "resume"))),
    ("GET", "/v1/people/{ref}"): (200, lambda t: Ask(path=_person(t))),
    ("PUT", "/v1/people/{ref}/grants/{role}/{scope}"): (200, lambda t: Ask(path=_person(t, "grants", "viewer", OWN.scope))),
    ("DELETE", "/v1/people/{ref}/grants/{role}/{scope}"): (200, lambda t: Ask(path=_person(t, "grants", "viewer", OWN.scope))),
    ("GET", "/v1/people/{ref}/tokens"): (200, lambda t: Ask(path=_person(t, "tokens"))),
    ("POST", "/v1/people/{ref}/tokens"): (201, lambda t: Ask(path=_person(t, "tokens"), body={"name": "laptop"})),
    ("DELETE", "/v1/people/{ref}/tokens/{name}"): (204, lambda t: Ask(path=_person(t, "tokens", "laptop"))),
}
# What names a scope to act on: the refusal says the scope that was asked for and depends on nothing else.
ACTING = {
    ("POST", "/v1/agents:publish"): lambda t: Ask(path="/v1/agents:publish", body={"manifest": manifest(t.agent, ["x"])}),
    ("POST", "/v1/agents:preview"): lambda t: Ask(path="/v1/agents:preview", body={"manifest": manifest(t.agent, ["x"])}),
    ("POST", "/v1/people"): lambda t: Ask(path="/v1/people", body={"person": t.person}),
}
# What names nothing and shows only what is the caller's.
LISTING = {("GET", "/v1/agents"), ("GET", "/v1/people"), ("GET", "/v1/acts"), ("GET", "/v1/me"), ("GET", "/v1/runs")}
# What gives a program a run of the caller's; whose runs those are is held by the tests of programs that drive.
LEASING = {("POST", "/v1/external:lease")}
# What takes the token of one run and no other.
DRIVING = {
    ("GET", "/v1/external/run"),
    ("GET", "/v1/external/run/tools"),
    *(("POST", f"/v1/external/run/{act}") for act in ("heartbeat", "calls", "turns", "finish", "fail", "release")),
}
# What is of the whole installation; who may see or change it is held by the tests of the dispatcher.
INSTALLATION = {("GET", "/v1/dispatch"), ("GET", "/v1/dispatch/reconciliation"), ("GET", "/v1/limits"), ("PATCH", "/v1/limits")}
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/v1/schema/manifest")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Three areas with an agent and a person each."""
    folder: Path = tmp_path_factory.mktemp("access")
    url = f"sqlite:///{folder / 'agentplat.db'}"
    migrate(url)
    with world(url, folder) as opened, api(opened) as running:
        for target in (OWN, *HIDDEN):
            author = opened.person(target.person, f"author={target.scope}")
            opened.publish(author, target.agent, ["code"], ["rejected"])
            assert opened.cases.open_run(author, ref(target.agent), "secret words").id == target.run
        yield running


@pytest.fixture(scope="module")
def owner(served: Api) -> Access:
    """Somebody who may do everything in one area and nothing elsewhere."""
    roles = ("author", "admin", "auditor")
    return served.world.person("acme/platform:owner", *(f"{role}={OWN.scope}" for role in roles))


@pytest.fixture(scope="module")
def client(served: Api, owner: Access) -> Iterator[httpx.Client]:
    with served.client(owner) as opened:
        yield opened


def _answer(client: httpx.Client, method: str, ask: Ask) -> tuple[int, str, dict[str, str]]:
    answer = client.request(method, ask.path, json=ask.body)
    return answer.status_code, answer.text, {k: v for k, v in answer.headers.items() if k != "date"}


def test_the_table_has_every_route(served: Api) -> None:
    openapi = served.app.openapi()
    described = {(method.upper(), where) for where, methods in openapi["paths"].items() for method in methods}
    governing = test_governing.ROUTES.keys() | test_governing.LISTS
    orchestration = test_orchestration.ROUTES.keys() | test_orchestration.LISTS
    own = NAMING.keys() | ACTING.keys() | LISTING | LEASING | DRIVING | INSTALLATION | OPEN
    assert described == own | governing | orchestration


@pytest.mark.parametrize("route", sorted(NAMING))
def test_what_is_not_yours_and_what_is_not_there_get_the_same_bytes(client: httpx.Client, route: tuple[str, str]) -> None:
    _, ask = NAMING[route]
    answers = [_answer(client, route[0], ask(target)) for target in (*HIDDEN, *MISSING)]
    assert answers[0][0] == 404
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("route", sorted(NAMING, key=lambda route: (route[0] == "DELETE", "retire" in route[1], route)))
def test_what_is_yours_is_there(client: httpx.Client, route: tuple[str, str]) -> None:
    wanted, ask = NAMING[route]
    if route == ("DELETE", "/v1/people/{ref}/tokens/{name}"):
        _answer(client, "POST", Ask(path=_person(OWN, "tokens"), body={"name": "laptop"}))
    if route == ("POST", "/v1/people/{ref}/tokens"):
        client.delete(_person(OWN, "tokens", "laptop"))
        ask = lambda t: Ask(path=_person(t, "tokens"), body={"name": "another"})  # noqa: E731
    assert _answer(client, route[0], ask(OWN))[0] == wanted


@pytest.mark.parametrize("route", sorted(ACTING))
def test_acting_in_a_scope_of_others_is_refused_alike_whatever_is_there(client: httpx.Client, route: tuple[str, str]) -> None:
    ask = ACTING[route]
    for there, missing in zip(HIDDEN, MISSING[1:3], strict=True):
        answers = [_answer(client, route[0], ask(target)) for target in (there, missing)]
        assert answers[0] == answers[1]
        assert answers[0][0] == 403
        assert there.agent not in answers[0][1]


@pytest.mark.parametrize("route", sorted(LISTING))
def test_lists_show_only_what_is_yours(client: httpx.Client, route: tuple[str, str]) -> None:
    status, text, _ = _answer(client, route[0], Ask(path=route[1]))
    assert status == 200
    assert OWN.scope in text
    for hidden in HIDDEN:
        assert hidden.scope not in text


@pytest.mark.parametrize("route", sorted(DRIVING))
def test_a_persons_token_is_not_a_runs(client: httpx.Client, route: tuple[str, str]) -> None:
    assert _answer(client, route[0], Ask(path=route[1]))[0] == 401


@pytest.mark.parametrize("token", [None, "x", "apt_unknown", "apt_" + "x" * 43, "apr_x"])
def test_without_a_valid_token_everything_but_the_open_routes_is_refused_alike(served: Api, token: str | None) -> None:
    with served.client(token=token) as stranger:
        for method, pattern in sorted(NAMING.keys() | ACTING.keys() | LISTING | LEASING | DRIVING):
            asks = [Ask(path=pattern)]
            if (method, pattern) in NAMING:
                asks = [NAMING[method, pattern][1](target) for target in (OWN, *HIDDEN, *MISSING)]
            elif (method, pattern) in ACTING:
                asks = [ACTING[method, pattern](target) for target in (OWN, *HIDDEN)]
            answers = [_answer(stranger, method, ask) for ask in asks]
            assert answers[0][0] == 401
            assert answers[0][2]["www-authenticate"] == "Bearer"
            assert all(answer == answers[0] for answer in answers)
        for method, pattern in OPEN:
            assert stranger.request(method, pattern).status_code == 200


@pytest.mark.parametrize("grant", ["viewer", "approver", "auditor"])
def test_readers_change_nothing(served: Api, grant: str) -> None:
    with served.client(served.world.person(f"acme/platform:{grant}", f"{grant}={OWN.scope}")) as reader:
        for act in ("pause", "resume", "retire"):
            assert _answer(reader, "POST", Ask(path=_agent(OWN, act)))[0] == 403
        assert _answer(reader, "POST", ACTING["POST", "/v1/agents:publish"](OWN))[0] == 403
        for method, route in (("POST", "/v1/agents/{ref}/runs"), ("POST", "/v1/runs/{run_id}/cancel")):
            assert _answer(reader, method, NAMING[method, route][1](OWN))[0] == 403
        assert reader.post("/v1/external:lease").status_code == 204
        assert _answer(reader, "POST", Ask(path=_agent(OWN, "resume-delivery"), body={}))[0] == 403
        assert _answer(reader, "GET", Ask(path=_person(OWN)))[0] == 404
