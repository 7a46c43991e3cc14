"""Programs that drive runs over HTTP: they take a run, act in it with its token, and lose it when they fall silent (R-4, R-5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from agentplat.domain.access import Access
from agentplat.domain.runs import RunState
from agentplat.domain.steps import Body, Closing, ModelTurn, TakenOver, ToolCall
from agentplat.run_tokens import PREFIX
from agentplat.usecases.call_tool import UNKNOWN
from agentplat.usecases.lease_run import GIVEN_UP
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.agentplat.http import Api, api
from tests.agentplat.mortal_workers import LOOK, PAY, Fate, acting, tally_tools
from tests.agentplat.run_records import LONG_S, execute, fault_of, folder_content, stored
from tests.agentplat.world import World, ref

pytestmark = pytest.mark.promise("R-5")

DEVELOPER = "acme/platform:developer"


@pytest.fixture
def served(everywhere: World, tmp_path: Path) -> Iterator[Api]:
    """A server whose runs have a tool that reads and one that pays."""
    using = acting(everywhere.store, folder_content(tmp_path), tally_tools(tmp_path, Fate(0, -1)), LONG_S)
    external = replace(everywhere.cases.drive_externally, lease=using.lease, act=using.act, finish_run=using.finish)
    with api(replace(everywhere, cases=replace(everywhere.cases, drive_externally=external))) as running:
        yield running


@pytest.fixture
def ana(everywhere: World) -> Access:
    """Whose programs drive the agent's runs."""
    who = everywhere.person("acme:ana", "author=acme/platform")
    everywhere.publish(who, DEVELOPER, ["paid"], driver={"kind": "external", "queue": "big"}, tools=[LOOK, PAY])
    return who


@pytest.fixture
def run_id(everywhere: World, ana: Access) -> int:
    """A run that waits for a program."""
    return everywhere.cases.open_run(ana, ref(DEVELOPER), "Bill no. 2").id


class Program:
    """A program that took a run."""

    def __init__(self, client: httpx.Client, given: dict[str, Any]) -> None:
        self._client, self.given = client, given

    def post(self, act: str, body: dict[str, Any] | None = None) -> httpx.Response:
        return self._client.post(f"/v1/external/run/{act}", json=body)

    def get(self, path: str = "") -> httpx.Response:
        return self._client.get(f"/v1/external/run{path}")

    def call(self, number: int, tool: str, **arguments: Any) -> httpx.Response:
        return self.post("calls", {"call": number, "tool": tool, "arguments": arguments})


Take = Callable[[Access], Program]


@pytest.fixture
def take(served: Api) -> Iterator[Take]:
    """Lets a person's program take a run; there must be one."""
    with ExitStack() as stack:

        def taken(access: Access) -> Program:
            with served.client(access) as client:
                answer = client.post("/v1/external:lease")
            assert answer.status_code == 200
            return Program(stack.enter_context(served.client(token=answer.json()["token"])), answer.json())

        yield taken


def trail(served: Api, run_id: int) -> list[Body]:
    assert fault_of(served.world.store, run_id) is None
    with served.world.store.reading() as work:
        return [step.read() for step in work.runs.trail(run_id)]


def fall_silent(served: Api, run_id: int) -> None:
    """Let the run's lease run out."""
    url = served.world.store._engine.url.render_as_string(hide_password=False)
    execute(url, f"UPDATE runs SET lease_until = 0 WHERE id = {run_id}")


def paid(folder: Path) -> int:
    tally = folder / "tally"
    return tally.read_text(encoding="utf-8").count(f" {PAY} ") if tally.exists() else 0


def detail(answer: httpx.Response) -> str:
    return str(answer.json()["detail"])


def test_a_program_takes_a_run_calls_tools_reports_its_turns_and_finishes(
    served: Api, take: Take, ana: Access, run_id: int, tmp_path: Path
) -> None:
    program = take(ana)
    given = program.given
    assert (given["run"], given["agent"], given["version"], given["attempt"], given["input"]) == (
        run_id,
        DEVELOPER,
        1,
        1,
        "Bill no. 2",
    )
    assert given["manifest"]["spec"]["driver"] == {"kind": "external", "queue": "big"}
    assert (given["calls"], given["turns"], given["labels"]) == ([], 0, ["area:acme/platform"])
    assert {(LOOK, "read"), (PAY, "write")} <= {(tool["name"], tool["effect"]) for tool in given["tools"]}
    assert program.get("/tools").json()["tools"] == given["tools"]
    turn = {"turn": 1, "model": "own", "content": "I pay.", "tokens_read": 5, "tokens_written": 2}
    assert [program.post("turns", turn).status_code for _ in range(2)] == [204, 204]
    assert program.call(1, PAY, n=2).json() == {"call": 1, "result": "done", "text": "pay gave 2"}
    refused = program.call(2, "delete_everything").json()
    assert (refused["result"], refused["text"]) == ("refused", "this run has no tool 'delete_everything'")
    assert program.post("heartbeat").json() == {"lease_s": LONG_S}
    ended = program.post("finish", {"summary": "Paid.", "artifacts": {"receipt": "No. 2"}})
    assert ended.json() == {"run": run_id, "state": "finished"}
    bodies = trail(served, run_id)
    assert sum(isinstance(body, ModelTurn) for body in bodies) == 1
    assert bodies[-1] == Closing(state=RunState.FINISHED, published=("paid",))
    assert paid(tmp_path) == 1
    assert program.get().status_code == 409
    assert detail(program.post("heartbeat")) == f"run {run_id} is finished already; nothing more is done in it"


@pytest.mark.promise("R-4")
def test_a_call_that_is_sent_twice_is_made_once(served: Api, take: Take, ana: Access, run_id: int, tmp_path: Path) -> None:
    program = take(ana)
    first = program.call(1, PAY, n=2)
    assert (first.status_code, program.call(1, PAY, n=2).json()) == (200, first.json())
    assert paid(tmp_path) == 1
    for number, tool, n, why in (
        (1, PAY, 3, "was another one"),
        (1, LOOK, 2, "was another one"),
        (3, PAY, 2, "has number 2, not 3"),
    ):
        answer = program.call(number, tool, n=n)
        assert answer.status_code == 409
        assert why in detail(answer)
    assert paid(tmp_path) == 1
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: program.call(2, PAY, n=4), range(4)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert program.call(2, PAY, n=4).status_code == 200
    assert paid(tmp_path) == 2
    assert sum(isinstance(body, ToolCall) for body in trail(served, run_id)) == 2


@pytest.mark.promise("R-4")
def test_a_program_that_fell_silent_loses_its_run_to_another_and_is_told_so(
    served: Api, take: Take, ana: Access, run_id: int, tmp_path: Path
) -> None:
    first = take(ana)
    first.call(1, PAY, n=2)
    first.post("turns", {"turn": 1, "model": "own", "content": "x", "tokens_read": 0, "tokens_written": 0})
    fall_silent(served, run_id)
    second = take(ana)
    assert (second.given["attempt"], second.given["turns"]) == (2, 1)
    assert [(call["call"], call["tool"], call["result"]) for call in second.given["calls"]] == [(1, PAY, "done")]
    for refused in (first.call(2, PAY, n=3), first.post("heartbeat"), first.post("finish", {"summary": "s"}), first.get()):
        assert refused.status_code == 409
        assert detail(refused) == f"run {run_id} is held by another worker or has moved on; take it again before writing to it"
    assert second.call(1, PAY, n=2).json()["text"] == "pay gave 2"
    assert paid(tmp_path) == 1
    assert second.post("finish", {"summary": "Paid."}).status_code == 200
    assert TakenOver(attempt=2) in trail(served, run_id)


@pytest.mark.promise("R-4")
def test_a_run_that_three_programs_fell_silent_over_is_given_up(served: Api, take: Take, ana: Access, run_id: int) -> None:
    for attempt in (1, 2, 3):
        assert take(ana).given["attempt"] == attempt
        fall_silent(served, run_id)
    with served.client(ana) as client:
        assert client.post("/v1/external:lease").status_code == 204
    assert trail(served, run_id)[-1] == Closing(state=RunState.FAILED, reason=GIVEN_UP)


@pytest.mark.promise("R-4")
def test_a_call_whose_program_died_in_it_is_unknown_and_not_made_again(
    served: Api, take: Take, ana: Access, run_id: int, tmp_path: Path
) -> None:
    take(ana)
    run = stored(served.world.store, run_id)
    broken = _Broken(tally_tools(tmp_path, Fate(0, -1))[PAY])
    with pytest.raises(SystemExit):
        acting(served.world.store, folder_content(tmp_path), {PAY: broken}).act.call(run, 1, PAY, {"n": 2})
    fall_silent(served, run_id)
    second = take(ana)
    assert second.given["calls"][0]["result"] is None
    assert second.call(1, PAY, n=2).json() == {"call": 1, "result": "failed", "text": UNKNOWN}
    assert paid(tmp_path) == 1


class _Broken:
    """A tool whose process ends when it has had its effect."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.spec, self.fault, self.artifact, self.moves = inner.spec, inner.fault, inner.artifact, inner.moves

    def __call__(self, asked: Any) -> Any:
        self._inner(asked)
        raise SystemExit


@pytest.mark.promise("R-4")
def test_a_cancelled_run_leaves_its_program_at_once(served: Api, take: Take, ana: Access, run_id: int, tmp_path: Path) -> None:
    program = take(ana)
    with served.client(ana) as client:
        assert client.post(f"/v1/runs/{run_id}/cancel").json()["state"] == "cancelled"
    for refused in (program.call(1, PAY, n=2), program.post("heartbeat"), program.post("finish", {"summary": "s"})):
        assert (refused.status_code, detail(refused)) == (409, f"run {run_id} is cancelled; nothing more is done in it")
    assert paid(tmp_path) == 0


@pytest.mark.usefixtures("run_id")
def test_a_run_that_was_given_back_is_there_for_the_next_program(take: Take, ana: Access) -> None:
    first = take(ana)
    assert first.post("release").status_code == 204
    assert first.get().status_code == 409
    assert take(ana).given["attempt"] == 1


def test_a_program_can_fail_its_run_and_says_why(served: Api, take: Take, ana: Access, run_id: int) -> None:
    program = take(ana)
    assert program.post("fail", {"reason": "No money."}).json() == {"run": run_id, "state": "failed"}
    assert trail(served, run_id)[-1] == Closing(state=RunState.FAILED, reason="No money.")


def test_a_wrong_answer_is_refused_with_every_fault_and_the_run_goes_on(served: Api, take: Take, ana: Access, run_id: int) -> None:
    program = take(ana)
    answer = program.post("finish", {"summary": "s", "artifacts": {" a": "x", "b ": "y"}})
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["violations"]] == ["artifacts. a", "artifacts.b "]
    assert program.call(1, PAY, n=2**60).status_code == 422
    assert stored(served.world.store, run_id).state is RunState.RUNNING
    assert program.post("finish", {"summary": "s"}).status_code == 200


@pytest.mark.promise("O-5", "R-5")
def test_a_program_is_given_only_runs_whose_agents_its_person_may_publish(served: Api, take: Take, run_id: int) -> None:
    others = {
        "globex:eve": "author=globex",
        "acme:fin": "author=acme/finance",
        "acme:bo": "viewer=acme",
        "acme:ola": "approver=acme/platform",
    }
    for name, grant in others.items():
        with served.client(served.world.person(name, grant)) as client:
            assert client.post("/v1/external:lease").status_code == 204
    assert take(served.world.person("acme:boss", "admin=acme")).given["run"] == run_id


@pytest.mark.promise("O-5")
@pytest.mark.usefixtures("run_id")
def test_a_runs_token_is_worth_what_its_persons_grants_are_worth_now(served: Api, take: Take, ana: Access) -> None:
    program = take(ana)
    served.world.person("acme:ana", "viewer=acme/platform")
    refused = program.call(1, PAY, n=2)
    assert (refused.status_code, "the role author" in detail(refused)) == (403, True)
    served.world.person("acme:ana", "author=acme/platform")
    assert program.get().status_code == 200


@pytest.mark.promise("O-5")
def test_a_token_that_was_not_signed_here_opens_nothing(served: Api, take: Take, ana: Access, run_id: int) -> None:
    program = take(ana)
    token: str = program.given["token"]
    claims = jwt.decode(token.removeprefix(PREFIX), options={"verify_signature": False})
    forged = jwt.encode(claims, Ed25519PrivateKey.generate(), algorithm="EdDSA")
    unsigned = jwt.encode(claims, None, algorithm="none")
    shared = jwt.encode(claims, "k" * 32, algorithm="HS256")
    for shown in (
        PREFIX + forged,
        PREFIX + unsigned,
        PREFIX + shared,
        token.removeprefix(PREFIX),
        token[:-2],
        served.world.token(ana),
    ):
        with served.client(token=shown) as client:
            answer = client.get("/v1/external/run")
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    with served.client(token=token) as client:
        assert client.get("/v1/me").status_code == 401
        assert client.get("/v1/runs").status_code == 401
        assert client.get("/v1/external/run").status_code == 200
    assert claims["sub"] == str(run_id)


def test_a_run_with_another_driver_is_never_given_to_a_program(served: Api, ana: Access) -> None:
    served.world.publish(ana, DEVELOPER, driver={"kind": "scripted"})
    served.world.cases.open_run(ana, ref(DEVELOPER))
    with served.client(ana) as client:
        assert client.post("/v1/external:lease").status_code == 204
