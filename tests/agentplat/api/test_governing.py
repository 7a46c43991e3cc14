"""Approvals, ceilings, declassification and erasure over HTTP and as commands, and who gets what answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access
from agentplat.domain.budgets import Unit
from agentplat.domain.labels import parse_labels
from agentplat.domain.runs import RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import ResultKind
from agentplat.store.migrating import migrate

from tests.agentplat.http import Api, api, path
from tests.agentplat.processes import Done, command
from tests.agentplat.run_records import ALL_DRIVERS
from tests.agentplat.tool_records import Shop, shop
from tests.agentplat.world import world

UNKNOWN_ID = 2**40
OWN, FINANCE, GLOBEX = "acme/platform", "acme/finance", "globex"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A waiting run, its question and its agent, of one scope."""

    agent: str
    run: int
    approval: int
    digest: str


def _artifact(target: Target, act: str) -> str:
    return path("v1", "runs", target.run, "artifacts", "letter", act)


DECLASSIFY = {"label": "untrusted", "reason": "harmless", "until": "2199-01-01T00:00:00Z"}
# What names a run or a question, by method and pattern, in an order in which each fits what those before it left.
ROUTES: dict[tuple[str, str], Any] = {
    ("GET", "/v1/approvals/{approval}"): lambda t: (path("v1", "approvals", t.approval), None),
    ("POST", "/v1/approvals/{approval}/answer"): lambda t: (
        path("v1", "approvals", t.approval, "answer"),
        {"granted": False, "digest": t.digest, "reason": "no"},
    ),
    ("POST", "/v1/runs/{run}/resume"): lambda t: (path("v1", "runs", t.run, "resume"), None),
    ("POST", "/v1/runs/{run}/artifacts/{name}/declassify"): lambda t: (_artifact(t, "declassify"), DECLASSIFY),
    ("POST", "/v1/runs/{run}/artifacts/{name}/erase"): lambda t: (_artifact(t, "erase"), {"reason": "asked for"}),
    ("POST", "/v1/runs/{run}/erase-input"): lambda t: (path("v1", "runs", t.run, "erase-input"), {"reason": "asked for"}),
    ("GET", "/v1/budgets"): lambda t: (f"/v1/budgets?run={t.run}", None),
    ("PUT", "/v1/budgets"): lambda t: ("/v1/budgets", {"run": t.run, "unit": "tokens", "ceiling": 5}),
}
LISTS = {("GET", "/v1/approvals")}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A served platform, with what there is to govern in three scopes."""

    api: Api
    shop: Shop
    folder: Path

    def settle(self) -> None:
        """Carry the runs that go on to an end, so that the next one opened is the oldest."""
        while True:
            with self.shop.store.reading() as work:
                if not work.runs.leasable(ALL_DRIVERS):
                    return
            self.shop.finish(self.shop.lease())

    def target(self, scope: str) -> Target:
        """A new run of the scope that waits for an approval."""
        self.settle()
        agent = Ref(scope, "worker")
        self.shop.publish(agent)
        run = self.shop.waits(self.shop.open(agent), 1, "pay", {"text": "100"})
        with self.api.world.store.reading() as work:
            question = work.approvals.of_call(run.id, 1)
        assert question is not None
        return Target(agent=agent.text, run=run.id, approval=question.id, digest=question.digest)

    def finished(self, scope: str) -> Target:
        """A finished run of the scope with a letter that is untrusted."""
        self.settle()
        agent = Ref(scope, "writer")
        self.shop.publish(agent)
        run = self.shop.open(agent, parse_labels(["untrusted"]))
        self.shop.finish(run, {"letter": f"Dear {scope} {run.id}"})
        return Target(agent=agent.text, run=run.id, approval=UNKNOWN_ID, digest="0" * 64)

    def owner(self, *roles: str) -> Access:
        """Somebody with these roles in one area and none elsewhere."""
        named = "-".join(roles)
        return self.api.world.person(f"{OWN}:{named}", *(f"{role}={OWN}" for role in roles))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("governing")
    url = f"sqlite:///{folder / 'agentplat.db'}"
    migrate(url)
    with world(url, folder) as opened, api(opened) as running:
        yield Place(api=running, shop=shop(opened.store, folder), folder=folder)


@pytest.fixture(scope="module")
def everything(place: Place) -> Iterator[httpx.Client]:
    with place.api.client(place.owner("author", "admin", "approver")) as client:
        yield client


def _ask(client: httpx.Client, route: tuple[str, str], target: Target) -> httpx.Response:
    where, body = ROUTES[route](target)
    return client.request(route[0], where, json=body)


@pytest.mark.promise("O-5")
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_what_is_not_yours_and_what_is_not_there_get_the_same_answer(
    place: Place, everything: httpx.Client, route: tuple[str, str]
) -> None:
    make = place.finished if "artifacts" in route[1] else place.target
    missing = Target(agent="acme/platform:x", run=UNKNOWN_ID, approval=UNKNOWN_ID, digest="0" * 64)
    targets = [make(FINANCE), make(GLOBEX), missing]
    answers = [_ask(everything, route, target) for target in targets]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert len({answer.text for answer in answers}) == 1
    with place.api.client(token="x") as stranger:
        assert {_ask(stranger, route, target).status_code for target in targets} == {401}
    with place.api.client(place.owner("viewer")) as viewer:
        own = _ask(viewer, route, make(OWN))
        assert own.status_code == (200 if route == ("GET", "/v1/budgets") else 403)


@pytest.mark.promise("A-12", "A-14")
def test_a_question_is_listed_shown_answered_and_gone(place: Place, everything: httpx.Client) -> None:
    hidden, target = place.target(GLOBEX), place.target(OWN)
    listed = everything.get("/v1/approvals").json()["approvals"]
    assert target.approval in [asked["id"] for asked in listed]
    assert hidden.approval not in [asked["id"] for asked in listed]
    where = path("v1", "approvals", target.approval)
    shown = everything.get(where).json()
    assert (shown["order"]["arguments"], shown["order"]["tool"], shown["digest"]) == ({"text": "100"}, "pay", target.digest)
    wrong = everything.post(f"{where}/answer", json={"granted": True, "digest": "0" * 64})
    assert (wrong.status_code, "not what would run" in wrong.json()["detail"]) == (409, True)
    done = everything.post(f"{where}/answer", json={"granted": True, "digest": target.digest})
    assert done.json() == {"run": target.run, "state": "queued"}
    assert everything.post(f"{where}/answer", json={"granted": True, "digest": target.digest}).status_code == 409
    assert target.approval not in [asked["id"] for asked in everything.get("/v1/approvals").json()["approvals"]]
    decided = everything.get("/v1/approvals", params={"undecided": "false"}).json()["approvals"]
    assert [asked["granted"] for asked in decided if asked["id"] == target.approval] == [True]
    run, result = place.shop.call(place.shop.lease(), 1, "pay", {"text": "100"})
    assert (run.id, result.result) == (target.run, ResultKind.DONE)
    place.shop.finish(run)


@pytest.mark.promise("A-15", "A-16")
def test_a_ceiling_is_set_shown_and_met_and_a_waiting_run_goes_on(place: Place, everything: httpx.Client) -> None:
    place.settle()
    agent = Ref(OWN, "spender")
    place.shop.publish(agent)
    body = {"agent": agent.text, "unit": "tool_calls", "ceiling": 0}
    assert everything.put("/v1/budgets", json=body).status_code == 200
    run = place.shop.waits(place.shop.open(agent), 1, "look", {"text": "x"})
    assert everything.put("/v1/budgets", json={**body, "ceiling": 1}).status_code == 200
    assert everything.post(path("v1", "runs", run.id, "resume")).json() == {"run": run.id, "state": "queued"}
    place.shop.call(place.shop.lease(), 1, "look", {"text": "x"})
    shown = everything.get("/v1/budgets", params={"agent": agent.text}).json()["budgets"]
    counted = {(b["kind"], b["of"]): (b["ceiling"], b["spent"]) for b in shown if b["unit"] == "tool_calls"}
    assert counted[("agent", agent.text)] == (1, 1)
    # The caller may not read the company, so that what all of it spends is not shown.
    assert {of for _, of in counted} == {OWN, agent.text}
    for wrong in ({"unit": "tokens", "ceiling": 1}, {**body, "run": run.id}, {**body, "ceiling": -1}, {**body, "unit": "days"}):
        assert everything.put("/v1/budgets", json=wrong).status_code == 422
    refused = everything.put("/v1/budgets", json={"scope": "acme", "unit": "tokens", "ceiling": 1})
    assert (refused.status_code, "role admin on the scope acme" in refused.json()["detail"]) == (403, False)


@pytest.mark.promise("A-6", "A-11")
def test_a_letter_is_declassified_for_a_while_and_erased_for_good(place: Place, everything: httpx.Client) -> None:
    target = place.finished(OWN)
    act = everything.post(_artifact(target, "declassify"), json=DECLASSIFY).json()
    assert (act["label"], act["by"], act["until"]) == (
        "untrusted",
        "acme/platform:author-admin-approver",
        "2199-01-01T00:00:00.000Z",
    )
    for wrong in ({"label": "area:acme/platform"}, {"label": "secret"}, {"until": "2001-01-01T00:00:00Z"}, {"reason": ""}):
        assert everything.post(_artifact(target, "declassify"), json={**DECLASSIFY, **wrong}).status_code == 422
    barrier = everything.post(_artifact(target, "declassify"), json={**DECLASSIFY, "label": "area:acme/platform"})
    assert "nothing lifts the barrier" in barrier.json()["detail"]
    erased = [everything.post(_artifact(target, "erase"), json={"reason": "asked for"}).json()["changed"] for _ in range(2)]
    assert erased == [True, False]


def _answers(done: Done) -> list[Mapping[str, Any]]:
    """What a command printed, without what the server in this very process logs."""
    return [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]


def _command(place: Place, token: Path, *words: object) -> Done:
    return command(*words, "--server", f"http://{place.api.address}", "--token-file", token, "--format", "json", cwd=place.folder)


@pytest.mark.promise("O-2", "A-11", "A-14", "A-15")
def test_the_commands_do_what_the_routes_do(place: Place, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(place.api.world.token(place.owner("author", "admin", "approver")), encoding="utf-8")

    def told(*words: object) -> Mapping[str, Any]:
        done = _command(place, token, *words)
        assert (done.status, done.err) == (0, "")
        [found] = _answers(done)
        return found

    target, letter = place.target(OWN), place.finished(OWN)
    listed = _command(place, token, "approval", "list")
    assert target.approval in [asked["id"] for asked in _answers(listed)]
    shown = told("approval", "show", target.approval)
    assert shown["order"]["arguments"] == {"text": "100"}
    assert told("approval", "refuse", target.approval, "--digest", shown["digest"], "--reason", "no") == {
        "run": target.run,
        "state": "queued",
    }
    again = place.target(OWN)
    assert told("approval", "grant", again.approval, "--digest", again.digest)["state"] == "queued"
    late = _command(place, token, "approval", "grant", again.approval, "--digest", again.digest)
    assert (late.status, "answered already" in late.err) == (2, True)
    assert told("budget", "set", "tokens", 7, "--agent", letter.agent)["budgets"][-1]["ceiling"] == 7
    assert told("budget", "show", "--agent", letter.agent)["budgets"][-1]["unit"] == Unit.TOKENS.value
    assert told("budget", "set", "tokens", "--agent", letter.agent)["budgets"][-1]["ceiling"] is None
    agent = Ref(OWN, "spender-of-nothing")
    place.shop.publish(agent, budget={"tool_calls": 0})
    place.settle()
    run = place.shop.waits(place.shop.open(agent), 1, "look", {"text": "x"})
    assert run.state is RunState.WAITING
    assert told("budget", "resume", run.id) == {"run": run.id, "state": "queued"}
    assert told("declassify", letter.run, "letter", "untrusted", "--reason", "harmless")["label"] == "untrusted"
    wrong = _command(place, token, "declassify", letter.run, "letter", "area:acme/platform", "--reason", "x")
    assert (wrong.status, "nothing lifts the barrier" in wrong.err) == (2, True)
    assert told("erase", letter.run, "letter", "--reason", "asked for")["changed"] is True
    none = _command(place, token, "erase", letter.run, "--reason", "asked for")
    assert (none.status, "no such thing" in none.err) == (2, True)
    text = command("approval", "list", "--all", "--server", f"http://{place.api.address}", "--token-file", token, cwd=place.folder)
    assert f"run {target.run} call 1: pay  refused" in text.out
