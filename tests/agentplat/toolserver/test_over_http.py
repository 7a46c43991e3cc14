"""The tools of a run over MCP: the SDK's own client against a server on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.api.rates import RateLimit
from agentplat.domain.access import Access
from agentplat.domain.runs import RunState
from agentplat.domain.steps import Body, Closing, ContractRejected, GateRuling, ToolCall
from agentplat.toolserver.serving import REASON
from mcp import MCPError

from tests.agentplat.http import Api, api, path
from tests.agentplat.mcp_programs import Program, over_http, text_of
from tests.agentplat.mortal_workers import LOOK, PAY, Fate, acting, tally_tools
from tests.agentplat.run_records import LONG_S, execute, fault_of, folder_content, stored
from tests.agentplat.world import World

pytestmark = pytest.mark.promise("R-5")

DEVELOPER = "acme/platform:developer"
SCHEMA = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"], "additionalProperties": False}
MODES = ("auto", "legacy")
"""How clients speak: as the newest protocol wants it, and as those before it did."""


@pytest.fixture
def served(everywhere: World, tmp_path: Path) -> Iterator[Api]:
    """A server whose runs have a tool that reads and one that pays."""
    using = acting(everywhere.store, folder_content(tmp_path), tally_tools(tmp_path, Fate(0, -1)), LONG_S)
    external = replace(everywhere.cases.drive_externally, lease=using.lease, act=using.act, finish_run=using.finish)
    with api(replace(everywhere, cases=replace(everywhere.cases, drive_externally=external))) as running:
        yield running


@pytest.fixture
def ana(everywhere: World) -> Access:
    who = everywhere.person("acme:ana", "author=acme/platform")
    everywhere.publish(who, DEVELOPER, ["paid"], driver={"kind": "external"}, tools=[LOOK, PAY])
    return who


def url(served: Api) -> str:
    return f"http://{served.address}"


def opened(served: Api, access: Access, **body: Any) -> int:
    with served.client(access) as client:
        answer = client.post(path("v1", "agents", DEVELOPER, "runs"), json=body)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["run"])


def leased(served: Api, access: Access) -> dict[str, Any]:
    with served.client(access) as client:
        answer = client.post("/v1/external:lease")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def take(served: Api, access: Access, mode: str = "auto") -> Program:
    return Program(url(served), leased(served, access)["token"], mode)


def trail(served: Api, run_id: int) -> list[Body]:
    assert fault_of(served.world.store, run_id) is None
    with served.world.store.reading() as work:
        return [step.read() for step in work.runs.trail(run_id)]


def paid(folder: Path) -> int:
    tally = folder / "tally"
    return tally.read_text(encoding="utf-8").count(f" {PAY} ") if tally.exists() else 0


@pytest.mark.parametrize("mode", MODES)
def test_a_program_lists_its_tools_calls_them_and_finishes(served: Api, ana: Access, tmp_path: Path, mode: str) -> None:
    run_id = opened(served, ana)
    given = leased(served, ana)
    program = Program(url(served), given["token"], mode)
    # Exactly the tools that the run has, with their schemas, and the way to end it.
    told = program.tools()
    assert {tool["name"]: tool["parameters"] for tool in given["tools"]} == {name: told[name] for name in told if name != "finish"}
    assert set(told) == {"read_artifact", LOOK, PAY, "finish"}
    assert program.call(PAY, n=2) == (True, "pay gave 2")
    assert program.call("delete_everything") == (False, "this run has no tool 'delete_everything'")
    assert program.call("read_artifact", name="x") == (
        False,
        "no event opened this run, so that there is no artifact for it to read",
    )
    assert program.call("finish", summary="Paid.", artifacts={"receipt": "No. 2"}) == (True, f"run {run_id} is finished")
    bodies = trail(served, run_id)
    assert [body.call for body in bodies if isinstance(body, ToolCall)] == [1, 2, 3]
    assert [body.ruling for body in bodies if isinstance(body, GateRuling)] == ["allow", "block", "block"]
    assert bodies[-1] == Closing(state=RunState.FINISHED, published=("paid",))
    assert paid(tmp_path) == 1
    assert program.call(PAY, n=3) == (False, f"run {run_id} is finished already; nothing more is done in it")


@pytest.mark.promise("D-10", "D-12")
@pytest.mark.parametrize("mode", MODES)
def test_a_program_meets_its_contract_over_mcp(served: Api, ana: Access, mode: str) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA)
    program = take(served, ana, mode)
    assert "submit_output" in program.tools()
    early = program.call("finish", summary="Done.")
    told = "this run has a contract for its output and none submitted: submit one that fits with submit_output, then finish"
    assert early == (False, told)
    assert program.call("submit_output", output={"ok": 1}) == (
        False,
        "the output does not fit the contract of this run; tries left: 2\n- /ok: expected the value true",
    )
    assert program.call("submit_output", output={"ok": True}) == (True, "the output is kept")
    assert program.call("finish", summary="Done.") == (True, f"run {run_id} is finished")


@pytest.mark.promise("D-12")
def test_the_third_rejection_over_mcp_ends_the_run(served: Api, ana: Access) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA)
    program = take(served, ana)

    async def submit_often(count: int) -> list[str]:
        async with over_http(url(served), program._token) as client:
            return [text_of(await client.call_tool("submit_output", {"output": {"ok": 1}})) for _ in range(count)]

    told = asyncio.run(submit_often(4))
    assert [line.splitlines()[0] for line in told] == [
        "the output does not fit the contract of this run; tries left: 2",
        "the output does not fit the contract of this run; tries left: 1",
        "the output does not fit the contract of this run; tries left: 0, so that the run has failed",
        f"run {run_id} is failed already; nothing more is done in it",
    ]
    assert stored(served.world.store, run_id).state is RunState.FAILED


def posted(served: Api, token: str, request_id: int | str, tool: str, arguments: dict[str, Any]) -> httpx.Response:
    """A tool call as a client of an older protocol posts it."""
    asked = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    with served.client(token=token) as client:
        return client.post("/mcp", json=asked, headers=headers)


def test_the_same_request_sent_again_is_not_done_again(served: Api, ana: Access, tmp_path: Path) -> None:
    run_id = opened(served, ana, expected_output_schema=SCHEMA)
    token = leased(served, ana)["token"]
    first, again = (posted(served, token, 7, "submit_output", {"output": 1}).json() for _ in range(2))
    assert first == again
    assert sum(isinstance(body, ContractRejected) for body in trail(served, run_id)) == 1
    # The same output as another request is another try; the same id with another output too.
    posted(served, token, 8, "submit_output", {"output": 1})
    assert sum(isinstance(body, ContractRejected) for body in trail(served, run_id)) == 2
    # What writes elsewhere is not done twice, however it is asked for.
    texts = [posted(served, token, request, PAY, {"n": 2}).json()["result"]["content"][0]["text"] for request in (9, 9, 10)]
    assert texts == ["pay gave 2"] * 3
    assert paid(tmp_path) == 1


def test_a_tool_that_reads_is_asked_anew_by_another_connection(served: Api, ana: Access) -> None:
    run_id = opened(served, ana)
    program = take(served, ana)
    assert program.call(LOOK, n=1)[0]
    assert program.call(LOOK, n=1)[0]
    assert [body.call for body in trail(served, run_id) if isinstance(body, ToolCall)] == [1, 2]


def test_calls_side_by_side_are_made_one_after_the_other(served: Api, ana: Access, tmp_path: Path) -> None:
    run_id = opened(served, ana)
    program = take(served, ana)

    async def at_once() -> list[str]:
        async with over_http(url(served), program._token) as client:
            results = await asyncio.gather(*(client.call_tool(PAY, {"n": n}) for n in range(8)))
        return sorted(map(text_of, results))

    assert asyncio.run(at_once()) == [f"pay gave {n}" for n in range(8)]
    assert [body.call for body in trail(served, run_id) if isinstance(body, ToolCall)] == list(range(1, 9))
    assert paid(tmp_path) == 8


@pytest.mark.parametrize("token", [None, "apr_nonsense", "a person's"])
def test_whoever_has_no_token_of_a_run_is_refused(served: Api, ana: Access, token: str | None) -> None:
    shown = served.world.token(ana) if token == "a person's" else token
    with served.client(token=shown) as client:
        answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    with pytest.raises((MCPError, ExceptionGroup)):
        Program(url(served), shown).tools()


def test_a_token_is_worth_nothing_once_the_run_is_lost_and_never_reaches_another_run(served: Api, ana: Access) -> None:
    first, second = opened(served, ana), opened(served, ana)
    mine, other = take(served, ana), take(served, ana)
    database = served.world.store._engine.url.render_as_string(hide_password=False)
    execute(database, f"UPDATE runs SET lease_until = 0 WHERE id = {first}")
    with served.client(ana) as client:
        assert client.post("/v1/external:lease").json()["run"] == first
    lost = f"run {first} is held by another worker or has moved on; take it again before writing to it"
    assert mine.call(PAY, n=1) == (False, lost)
    assert mine.call("finish", summary="x") == (False, lost)
    listed = mine.do(lambda client: client.list_tools())
    assert (listed.tools, (listed.meta or {})[REASON]) == ([], lost)
    assert other.call(LOOK, n=1)[0]
    assert [body for body in trail(served, first) if isinstance(body, ToolCall)] == []
    assert [body.tool for body in trail(served, second) if isinstance(body, ToolCall)] == [LOOK]


def test_a_person_whose_grant_is_gone_drives_nothing(served: Api, ana: Access) -> None:
    run_id = opened(served, ana)
    program = take(served, ana)
    served.world.person("acme:ana", "viewer=acme/platform")
    well, text = program.call(PAY, n=1)
    assert (well, "needs the role" in text) == (False, True)
    assert [body for body in trail(served, run_id) if isinstance(body, ToolCall)] == []


def test_a_cancelled_run_says_so(served: Api, ana: Access) -> None:
    run_id = opened(served, ana)
    program = take(served, ana)
    with served.client(ana) as client:
        assert client.post(f"/v1/runs/{run_id}/cancel").status_code == 200
    assert program.call(PAY, n=1) == (False, f"run {run_id} is cancelled; nothing more is done in it")


def test_a_call_that_waits_says_so_and_goes_on_under_its_number_once_it_is_approved(
    everywhere: World, tmp_path: Path, ana: Access
) -> None:
    assert ana.person is not None
    root = everywhere.person("acme:ana", "author=acme/platform", "approver=acme/platform")
    using = acting(everywhere.store, folder_content(tmp_path), tally_tools(tmp_path, Fate(0, -1)), LONG_S)
    cautious = replace(using.act.tools.gate, autonomy=everywhere.cases.drive_externally.act.tools.gate.autonomy)
    act = replace(using.act, tools=replace(using.act.tools, gate=cautious))
    external = replace(everywhere.cases.drive_externally, lease=using.lease, act=act, finish_run=using.finish)
    with api(replace(everywhere, cases=replace(everywhere.cases, drive_externally=external))) as served:
        run_id = opened(served, root)
        program = take(served, root)
        assert program.call(PAY, n=2) == (False, f"run {run_id} waits for an approval")
        assert paid(tmp_path) == 0
        with served.client(root) as client:
            [question] = client.get("/v1/approvals").json()["approvals"]
            decision = {"granted": True, "digest": question["digest"]}
            answer = client.post(f"/v1/approvals/{question['id']}/answer", json=decision)
            assert answer.status_code == 200, answer.text
        again = take(served, root)
        assert again.call(PAY, n=2) == (True, "pay gave 2")
        assert [body.call for body in trail(served, run_id) if isinstance(body, ToolCall)] == [1]
    assert paid(tmp_path) == 1


def test_requests_over_mcp_count_against_the_rate_of_the_run(everywhere: World, ana: Access) -> None:
    with api(everywhere, rates=RateLimit(1e-6, 3)) as served:
        opened(served, ana)
        token = leased(served, ana)["token"]
        statuses = [posted(served, token, n, "read_artifact", {"name": "x"}).status_code for n in range(4)]
    assert statuses == [200, 200, 200, 429]


def test_no_stream_is_kept_open(served: Api, ana: Access) -> None:
    opened(served, ana)
    with served.client(token=leased(served, ana)["token"]) as client:
        assert client.get("/mcp", headers={"Accept": "text/event-stream"}).status_code == 405


def test_a_request_that_is_larger_than_the_server_takes_is_refused(served: Api, ana: Access) -> None:
    opened(served, ana)
    answer = posted(served, leased(served, ana)["token"], 1, "read_artifact", {"name": "x" * 100_000})
    assert answer.status_code == 413


@pytest.mark.parametrize("arguments", [{}, {"summary": 1}, {"summary": "x", "artifacts": {"a": 1}}, {"summary": "x", "more": 1}])
def test_a_finish_that_is_not_as_its_schema_says_is_refused_and_the_run_goes_on(
    served: Api, ana: Access, arguments: dict[str, Any]
) -> None:
    run_id = opened(served, ana)
    program = take(served, ana)
    assert not program.call("finish", **arguments)[0]
    assert stored(served.world.store, run_id).state is RunState.RUNNING
    assert program.call("finish", summary="x")[0]


def test_every_request_is_a_sign_of_life(served: Api, ana: Access) -> None:
    run_id = opened(served, ana)
    program = take(served, ana)
    database = served.world.store._engine.url.render_as_string(hide_password=False)
    for act in (program.tools, lambda: program.call(LOOK, n=1)):
        execute(database, f"UPDATE runs SET lease_until = 1 WHERE id = {run_id}")
        act()
        with served.client(ana) as client:
            assert client.post("/v1/external:lease").status_code == 204
