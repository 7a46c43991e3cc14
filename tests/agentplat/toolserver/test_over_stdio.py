"""MCP against both processes as they are started, over HTTP and through the command on standard streams."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import StdioServerParameters

from tests.agentplat.mcp_programs import Program, over_stdio, text_of
from tests.agentplat.processes import Server, command, environment, process, up
from tests.agentplat.world import PATIENCE_S, manifest, wait_until

LEASE_S = 2
WRITER = "acme/platform:writer"
SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}'


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Both processes on one data folder. The lease is so short that whoever gives no sign of life loses its run at once."""
    folder = tmp_path_factory.mktemp("up")
    with up(folder, "--poll-interval-s", "0.05", "--run-lease-s", LEASE_S) as found:
        file = folder / "writer.yaml"
        file.write_text(manifest(WRITER, ["written"], driver={"kind": "external"}), encoding="utf-8")
        assert command("publish", file, *asking(found), cwd=folder).status == 0
        yield found


def asking(running: Server) -> tuple[object, ...]:
    return ("--server", running.url, "--token-file", running.ready["token_file"])


def leased(running: Server) -> dict[str, Any]:
    token = Path(running.ready["token_file"]).read_text(encoding="utf-8").strip()
    answer = httpx.post(f"{running.url}/v1/external:lease", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def opened(running: Server, folder: Path, *more: object) -> int:
    (folder / "schema.json").write_text(SCHEMA, encoding="utf-8")
    done = command("run", "open", WRITER, "--output-schema", "schema.json", *more, "--format", "json", *asking(running), cwd=folder)
    assert (done.status, done.err) == (0, "")
    return int(done.answers[0]["run"])


def shown(running: Server, folder: Path, run: int) -> dict[str, Any]:
    found: dict[str, Any] = command("run", "show", run, "--format", "json", *asking(running), cwd=folder).answers[0]
    return found


def held_until(running: Server, run: int) -> int:
    """When the run's lease ends, in milliseconds since 1970."""
    with closing(sqlite3.connect(running.errors.parent / "data" / "agentplat.db")) as database:
        [(lease_until,)] = database.execute("SELECT lease_until FROM runs WHERE id = ?", (run,))
    return int(lease_until)


def bridging(running: Server, token: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "agentplat", "mcp", "--server", running.url, "--token-env", "TOKEN_OF_THE_RUN"],
        env=environment(TOKEN_OF_THE_RUN=token),
    )


@pytest.mark.promise("D-10", "R-5")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_program_drives_its_run_through_the_command_on_standard_streams(running: Server, tmp_path: Path, mode: str) -> None:
    run = opened(running, tmp_path, "--output-mode", "strict")
    token = leased(running)["token"]
    first = held_until(running, run)

    async def drive() -> list[tuple[bool, str]]:
        async with over_stdio(bridging(running, token), mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["read_artifact", "submit_output", "finish"]
            # The command gives signs of life by itself.
            await asyncio.to_thread(wait_until, lambda: held_until(running, run) > first + LEASE_S * 1_000, "the run is held on")
            asked: list[tuple[str, dict[str, Any]]] = [
                ("read_artifact", {"name": "x"}),
                ("submit_output", {"output": {"n": "1"}}),
                ("submit_output", {"output": {"n": 1}}),
                ("finish", {"summary": "Done."}),
            ]
            results = [await client.call_tool(name, arguments) for name, arguments in asked]
        return [(not result.is_error, text_of(result)) for result in results]

    assert asyncio.run(drive()) == [
        (False, "no event opened this run, so that there is no artifact for it to read"),
        (False, "the output does not fit the contract of this run; tries left: 2\n- /n: expected a value of type integer"),
        (True, "the output is kept"),
        (True, f"run {run} is finished"),
    ]
    found = shown(running, tmp_path, run)
    assert (found["state"], found["contract"]["state"], found["attempts"]) == ("finished", "accepted", 1)


@pytest.mark.promise("D-12", "R-5")
def test_a_program_drives_its_run_over_http_of_the_server_as_it_is_started(running: Server, tmp_path: Path) -> None:
    run = opened(running, tmp_path, "--output-mode", "permissive")
    program = Program(running.url, leased(running)["token"])
    assert program.call("submit_output", output=None) == (
        True,
        "the output is kept\n- the output: expected a value of type object",
    )
    assert program.call("finish", summary="Done.") == (True, f"run {run} is finished")
    assert shown(running, tmp_path, run)["contract"]["mode"] == "permissive"


def test_the_command_refuses_a_token_that_is_none_before_it_speaks_mcp(running: Server, tmp_path: Path) -> None:
    asked = ("mcp", "--server", running.url, "--token-env", "TOKEN_OF_THE_RUN")
    wrong = process(*asked, cwd=tmp_path, TOKEN_OF_THE_RUN="apr_nonsense")
    assert (wrong.status, wrong.out) == (2, "")
    assert "send a valid token" in wrong.err
    missing = process(*asked, cwd=tmp_path)
    assert (missing.status, missing.out) == (2, "")
    assert "token-env: names TOKEN_OF_THE_RUN, which holds no token" in missing.err
    silent = process("mcp", "--server", "http://127.0.0.1:1", "--token-env", "TOKEN_OF_THE_RUN", cwd=tmp_path, TOKEN_OF_THE_RUN="x")
    assert (silent.status, silent.out) == (4, "")


@pytest.mark.promise("D-12")
@pytest.mark.parametrize(
    ("text", "more", "told"),
    [
        ('{"typ": 1}', (), "expected_output_schema/typ: is no keyword of draft 2020-12"),
        ('{"type": NaN}', (), "output-schema: is not JSON: JSON has no NaN"),
        ("{", (), "output-schema: is not JSON"),
        ("{}", ("--output-mode", "lenient"), "output_contract_mode: is not known; write strict or permissive"),
    ],
)
def test_the_command_line_refuses_a_contract_that_cannot_be(
    running: Server, tmp_path: Path, text: str, more: tuple[str, ...], told: str
) -> None:
    (tmp_path / "schema.json").write_text(text, encoding="utf-8")
    done = command("run", "open", WRITER, "--output-schema", "schema.json", *more, *asking(running), cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert told in done.err
