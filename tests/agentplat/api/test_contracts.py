"""Output contracts over HTTP: declared where a run is opened, met or missed by the program that drives it (D-10 to D-12)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access
from agentplat.domain.modes import Mode
from agentplat.domain.runs import RunState
from agentplat.domain.spaces import Workplace
from agentplat.domain.steps import Body, Closing, ContractAccepted, ContractRejected, ToolResult
from agentplat.domain.tickets import NewTicket, Ticket
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.usecases.catalogue import build_acting
from agentplat.worker import Worker

from tests.agentplat.http import Api, api, path
from tests.agentplat.run_records import LONG_S, execute, fault_of, folder_content, stored
from tests.agentplat.world import World, wait_until

DEVELOPER = "acme/platform:developer"
SCRIPTED = "acme/platform:scripted"
SCHEMA = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"], "additionalProperties": False}
FITTING, WRONG = {"ok": True}, {"ok": True, "extra": "unexpected"}


@pytest.fixture
def served(everywhere: World) -> Iterator[Api]:
    with api(everywhere) as running:
        yield running


@pytest.fixture
def ana(everywhere: World) -> Access:
    """Whose programs drive the agent's runs."""
    who = everywhere.person("acme:ana", "author=acme/platform")
    everywhere.publish(who, DEVELOPER, ["made"], driver={"kind": "external"})
    return who


def opened(served: Api, access: Access, agent: str = DEVELOPER, **body: Any) -> httpx.Response:
    with served.client(access) as client:
        return client.post(path("v1", "agents", agent, "runs"), json=body)


def shown(served: Api, access: Access, run_id: int) -> dict[str, Any]:
    with served.client(access) as client:
        found: dict[str, Any] = client.get(f"/v1/runs/{run_id}").json()
    return found


def trail(served: Api, run_id: int) -> list[Body]:
    assert fault_of(served.world.store, run_id) is None
    with served.world.store.reading() as work:
        return [step.read() for step in work.runs.trail(run_id)]


class Program:
    """A program that took the oldest run."""

    def __init__(self, served: Api, access: Access) -> None:
        with served.client(access) as client:
            self.given = client.post("/v1/external:lease").json()
        self._served, self._calls = served, len(self.given["calls"])

    def post(self, act: str, body: dict[str, Any]) -> httpx.Response:
        with self._served.client(token=self.given["token"]) as client:
            return client.post(f"/v1/external/run/{act}", json=body)

    def submit(self, output: Any) -> dict[str, Any]:
        self._calls += 1
        answer = self.post("calls", {"call": self._calls, "tool": "submit_output", "arguments": {"output": output}})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def finish(self) -> httpx.Response:
        return self.post("finish", {"summary": "Done."})


@pytest.mark.promise("D-10")
def test_a_contract_is_declared_where_the_run_is_opened_and_met_by_submit_output(served: Api, ana: Access) -> None:
    run = opened(served, ana, expected_output_schema=SCHEMA).json()
    missing = {"mode": "strict", "state": "missing", "rejections": 0, "tries_left": 3, "output": None}
    assert run["contract"] == missing
    program = Program(served, ana)
    assert program.given["contract"] == {**missing, "expected_output_schema": SCHEMA}
    [tool] = [tool for tool in program.given["tools"] if tool["name"] == "submit_output"]
    # Whoever drives the run is told what the output has to look like.
    assert json.dumps(SCHEMA, sort_keys=True, separators=(",", ":")) in tool["description"]
    assert program.submit(FITTING) == {"call": 1, "result": "done", "text": "the output is kept"}
    assert program.finish().json()["state"] == "finished"
    kept = shown(served, ana, run["run"])["contract"]
    assert (kept["state"], kept["rejections"]) == ("accepted", 0)
    with served.world.store.reading() as work:
        contract = work.contracts.of_run(run["run"])
    assert contract is not None
    assert contract.output is not None
    assert contract.output.digest == kept["output"]


@pytest.mark.promise("D-10")
def test_a_run_without_a_contract_has_no_submit_output(served: Api, ana: Access) -> None:
    run = opened(served, ana).json()
    assert run["contract"] is None
    program = Program(served, ana)
    assert "submit_output" not in [tool["name"] for tool in program.given["tools"]]
    assert program.submit(FITTING)["text"] == "this run has no tool 'submit_output'"
    assert program.finish().status_code == 200


@pytest.mark.promise("D-12")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"expected_output_schema": {"typ": "object"}}, "expected_output_schema/typ"),
        ({"expected_output_schema": {"$ref": "https://internal.example/x"}}, "expected_output_schema/$ref"),
        ({"expected_output_schema": [], "output_contract_mode": "strict"}, "expected_output_schema"),
        ({"expected_output_schema": {}, "output_contract_mode": "lenient"}, "output_contract_mode"),
        ({"output_contract_mode": "strict"}, "expected_output_schema"),
    ],
)
def test_a_contract_that_cannot_be_is_refused_and_no_run_is_opened(
    served: Api, ana: Access, body: dict[str, Any], field: str
) -> None:
    answer = opened(served, ana, **body)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["violations"]] == [field]
    with served.client(ana) as client:
        assert client.get("/v1/runs").json()["runs"] == []


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("mode", ["strict", "permissive"])
def test_a_remote_reference_makes_no_request(served: Api, ana: Access, mode: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        host, port = listening.getsockname()
        for word in ("$ref", "$dynamicRef"):
            schema = {"properties": {"a": {word: f"http://{host}:{port}/schema.json"}}}
            answer = opened(served, ana, expected_output_schema=schema, output_contract_mode=mode)
            assert answer.status_code == 422
            assert "cannot be resolved" in answer.text
        # Whoever had connected by now would stand in the queue.
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


def ticket_of(world: World, access: Access, run_id: int) -> Ticket:
    """A ticket on which the run works."""
    with world.store.writing() as work:
        workspace = work.workspaces.add("acme/platform", "main", access.person, 1)
        assert workspace is not None
        space = work.spaces.add(workspace.id, "room", Mode.CHAT, access.person, 1)
        assert space is not None
        assert access.person is not None
        ticket = work.tickets.make(
            NewTicket(workspace_id=workspace.id, title="Mend it", description="", made_by_id=access.person.id), 1
        )
        work.spaces.place(run_id, Workplace(workspace_id=workspace.id, space_id=space.id, mode=Mode.CHAT, ticket_id=ticket.id))
    return ticket


@pytest.mark.promise("D-11", "D-12")
def test_every_rejection_is_told_and_recorded_and_the_third_fails_the_run_and_leaves_its_ticket_alone(
    served: Api, ana: Access
) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA).json()["run"]
    ticket = ticket_of(served.world, ana, run_id)
    program = Program(served, ana)
    told = [program.submit(output) for output in (WRONG, {"ok": False}, {"ok": 1, "a": 1, "b": 2})]
    assert [answer["result"] for answer in told] == ["refused"] * 3
    assert [answer["text"].splitlines() for answer in told] == [
        ["the output does not fit the contract of this run; tries left: 2", "- /extra: expected no such property"],
        ["the output does not fit the contract of this run; tries left: 1", "- /ok: expected the value true"],
        [
            "the output does not fit the contract of this run; tries left: 0, so that the run has failed",
            "- /a: expected no such property",
            "- /b: expected no such property",
            "- /ok: expected the value true",
        ],
    ]
    bodies = trail(served, run_id)
    rejected = [body for body in bodies if isinstance(body, ContractRejected)]
    assert [(body.faults, body.tries_left, body.paths) for body in rejected] == [
        (1, 2, ("/…",)),
        (1, 1, ("/ok",)),
        (3, 0, ("/…", "/ok")),
    ]
    assert bodies[-1] == Closing(state=RunState.FAILED, reason="its output was rejected 3 times by its contract")
    assert shown(served, ana, run_id)["contract"]["state"] == "rejected"
    late = program.post("calls", {"call": 4, "tool": "submit_output", "arguments": {"output": FITTING}})
    assert (late.status_code, late.json()["detail"]) == (409, f"run {run_id} is failed already; nothing more is done in it")
    with served.world.store.reading() as work:
        assert work.tickets.find(ticket.id) == ticket
        assert work.tickets.changes(ticket.id) == []
        assert work.tickets.comments(ticket.id, 0, 10) == []


@pytest.mark.promise("D-11")
def test_the_accepted_output_stands_in_the_trail_and_the_ticket_stays_as_it_is(served: Api, ana: Access) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA).json()["run"]
    ticket = ticket_of(served.world, ana, run_id)
    program = Program(served, ana)
    assert program.submit(WRONG)["result"] == "refused"
    assert program.submit(FITTING)["result"] == "done"
    again = program.submit(FITTING)
    assert (again["result"], again["text"]) == (
        "refused",
        "an output of this run was accepted already, and it stays; finish the run",
    )
    assert program.finish().status_code == 200
    kinds = [type(body) for body in trail(served, run_id) if isinstance(body, (ContractAccepted, ContractRejected))]
    assert kinds == [ContractRejected, ContractAccepted]
    with served.client(ana) as client:
        steps = client.get(f"/v1/runs/{run_id}/trail").json()["steps"]
    [accepted] = [step for step in steps if step["kind"] == "contract_accepted"]
    assert accepted["body"]["output"]["digest"] == shown(served, ana, run_id)["contract"]["output"]
    with served.world.store.reading() as work:
        assert work.tickets.find(ticket.id) == ticket


@pytest.mark.promise("D-12")
def test_a_permissive_contract_keeps_the_output_and_records_its_faults(served: Api, ana: Access) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA, output_contract_mode="permissive").json()["run"]
    program = Program(served, ana)
    answer = program.submit({"ok": 1})
    assert (answer["result"], answer["text"]) == ("done", "the output is kept\n- /ok: expected the value true")
    assert program.finish().status_code == 200
    [accepted] = [body for body in trail(served, run_id) if isinstance(body, ContractAccepted)]
    assert (accepted.faults, accepted.paths) == (1, ("/ok",))
    assert shown(served, ana, run_id)["contract"]["state"] == "accepted"


@pytest.mark.parametrize(("outputs", "why"), [([], "none submitted"), ([WRONG], "1 rejected and none accepted")])
def test_a_program_that_would_finish_without_its_output_is_told_and_the_run_goes_on(
    served: Api, ana: Access, outputs: list[Any], why: str
) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA).json()["run"]
    program = Program(served, ana)
    for output in outputs:
        program.submit(output)
    refused = program.finish()
    told = f"this run has a contract for its output and {why}: submit one that fits with submit_output, then finish"
    assert (refused.status_code, refused.json()["detail"]) == (409, told)
    assert stored(served.world.store, run_id).state is RunState.RUNNING
    assert program.submit(FITTING)["result"] == "done"
    assert program.finish().status_code == 200


@pytest.mark.promise("D-12")
def test_an_output_that_is_wrapped_once_too_often_is_refused_with_a_hint(served: Api, ana: Access) -> None:
    opened(served, ana, expected_output_schema=SCHEMA)
    hint = 'the output is wrapped once too often: submit what stands under "result" itself'
    assert Program(served, ana).submit({"result": FITTING})["text"].splitlines()[-1] == hint


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("text", ["NaN", "Infinity", "[-Infinity]", "1e999"])
def test_what_json_does_not_have_is_refused_before_it_is_a_try(served: Api, ana: Access, text: str) -> None:
    opened(served, ana, expected_output_schema={})
    program = Program(served, ana)
    with served.client(token=program.given["token"]) as client:
        body = f'{{"call": 1, "tool": "submit_output", "arguments": {{"output": {text}}}}}'.encode()
        answer = client.post("/v1/external/run/calls", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert program.submit(1)["result"] == "done"


def test_a_submission_that_is_sent_twice_is_one_try(served: Api, ana: Access) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA).json()["run"]
    program = Program(served, ana)
    call = {"call": 1, "tool": "submit_output", "arguments": {"output": WRONG}}
    first, second = program.post("calls", call).json(), program.post("calls", call).json()
    assert first == second
    assert shown(served, ana, run_id)["contract"]["rejections"] == 1


def test_a_run_that_is_taken_over_keeps_its_contract_and_its_tries(served: Api, ana: Access) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA).json()["run"]
    Program(served, ana).submit(WRONG)
    url = served.world.store._engine.url.render_as_string(hide_password=False)
    execute(url, f"UPDATE runs SET lease_until = 0 WHERE id = {run_id}")
    second = Program(served, ana)
    assert second.given["contract"]["tries_left"] == 2
    assert second.submit({"ok": 0})["text"].startswith("the output does not fit the contract of this run; tries left: 1")


@pytest.mark.parametrize(
    ("outputs", "state", "reason", "contract"),
    [
        ([FITTING], "finished", None, "accepted"),
        ([], "failed", "none submitted", "missing"),
        ([WRONG], "failed", "1 rejected and none accepted", "rejected"),
        ([WRONG, FITTING], "finished", None, "accepted"),
        ([WRONG] * 5, "failed", "its output was rejected 3 times by its contract", "rejected"),
    ],
)
@pytest.mark.promise("D-12")
def test_a_run_of_a_worker_that_did_not_meet_its_contract_fails_and_says_why(
    served: Api, ana: Access, tmp_path: Path, outputs: list[Any], state: str, reason: str | None, contract: str
) -> None:
    actions = [{"call": "submit_output", "arguments": {"output": output}} for output in outputs]
    driver = {"kind": "scripted", "actions": [*actions, {"finish": {"summary": "Done."}}]}
    served.world.publish(ana, SCRIPTED, ["made"], driver=driver)
    run_id = opened(served, ana, SCRIPTED, expected_output_schema=SCHEMA).json()["run"]
    worker = Worker(build_acting(served.world.store, folder_content(tmp_path), LONG_S), [ScriptedDriver()], 0.02)
    worker.start()
    try:
        wait_until(lambda: stored(served.world.store, run_id).ended, "the run ends")
    finally:
        worker.stop(60)
    found = shown(served, ana, run_id)
    assert (found["state"], found["contract"]["state"]) == (state, contract)
    bodies = trail(served, run_id)
    assert isinstance(bodies[-1], Closing)
    assert reason is None or reason in str(bodies[-1].reason)
    assert sum(isinstance(body, ContractRejected) for body in bodies) == min(3, outputs.count(WRONG))
    assert sum(isinstance(body, ToolResult) for body in bodies) == min(3, len(outputs))


def test_bytes_of_an_accepted_output_are_needed_by_whoever_erases(served: Api, ana: Access) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA).json()["run"]
    Program(served, ana).submit(FITTING)
    digest = shown(served, ana, run_id)["contract"]["output"]
    with served.world.store.reading() as work:
        assert work.artifacts.is_needed(digest)
        assert not work.artifacts.is_needed("0" * 64)
