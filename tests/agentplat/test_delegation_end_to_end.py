"""Delegation between programs of real agents, through the HTTP API of real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from agentplat.store.engine import open_engine

from tests.agentplat.http import path
from tests.agentplat.mcp_programs import Program as McpProgram
from tests.agentplat.processes import Server, command, up
from tests.agentplat.world import PATIENCE_S, manifest, manifests

SCOPE = "acme/platform"
NAMES = "ABCDEF"


@dataclass(frozen=True, kw_only=True)
class Office:
    """The running processes, a workspace with a space, and a client with an admin's token."""

    server: Server
    client: httpx.Client
    database: str
    workspace: int
    space: int

    def delegate(self, agent: str, **more: Any) -> httpx.Response:
        """Delegate as a person."""
        given = {"space_id": self.space, "agent": agent, "title": f"for {agent}", "description": "do it", **more}
        return self.client.post(f"/v1/workspaces/{self.workspace}/tickets:delegate", json=given)

    def tree(self, ticket: int) -> dict[str, Any]:
        """The tree of a ticket."""
        answer = self.client.get(f"/v1/workspaces/{self.workspace}/tickets/{ticket}/tree")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    @contextmanager
    def program(self, run: int) -> Iterator[Program]:
        """A program that has taken a run, which must be the oldest that waits for one; the run is finished at the end."""
        leased = self.client.post("/v1/external:lease")
        assert leased.status_code == 200, leased.text
        assert leased.json()["run"] == run
        with httpx.Client(
            base_url=self.server.url, headers={"Authorization": f"Bearer {leased.json()['token']}"}, timeout=PATIENCE_S
        ) as client:
            yield Program(client=client, url=self.server.url, token=leased.json()["token"])
            assert client.post("/v1/external/run/finish", json={"summary": "done"}).status_code == 200

    def everything(self) -> dict[str, list[str]]:
        """The whole database, by table."""
        engine = open_engine(self.database)
        try:
            with engine.connect() as connection:
                tables = sa.inspect(connection).get_table_names()
                return {table: sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {table}"))) for table in tables}
        finally:
            engine.dispose()


class Program:
    """A program that holds a run."""

    def __init__(self, client: httpx.Client, url: str, token: str) -> None:
        self._client, self._calls = client, 0
        self.mcp = McpProgram(url, token)

    def tools(self) -> list[str]:
        """The names of the tools that the run has."""
        return [tool["name"] for tool in self._client.get("/v1/external/run/tools").json()["tools"]]

    def delegate(self, agent: str, **more: Any) -> dict[str, Any]:
        """Delegate; the result as the program gets it."""
        return self.call("delegate_task", agent=agent, **{"title": f"{agent} {self._calls}", "description": "do it", **more})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the result as the program gets it."""
        self._calls += 1
        given = {"call": self._calls, "tool": tool, "arguments": arguments}
        answer = self._client.post("/v1/external/run/calls", json=given)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def handed(self, agent: str, **more: Any) -> dict[str, Any]:
        """Delegate, which must be let through; what the tool told."""
        answer = self.delegate(agent, **more)
        assert answer["result"] == "done", answer
        told: dict[str, Any] = json.loads(answer["text"])
        return told

    def refused(self, agent: str, **more: Any) -> str:
        """Delegate, which must be refused; the reason."""
        answer = self.delegate(agent, **more)
        assert answer["result"] == "refused", answer
        return str(answer["text"])


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """Both processes on one data folder, with six agents whose runs programs drive."""
    folder: Path = tmp_path_factory.mktemp("up")
    with up(folder, "--poll-interval-s", "0.05") as server:
        file = folder / "agents.yaml"
        spec = {"driver": {"kind": "external"}, "tools": ["delegate_task", "post_message"]}
        file.write_text(manifests(*(manifest(f"{SCOPE}:{name}", **spec) for name in NAMES)), encoding="utf-8")
        published = command("publish", file, "--server", server.url, "--token-file", server.ready["token_file"], cwd=folder)
        assert published.status == 0, published.err
        database = f"sqlite:///{folder / 'data' / 'agentplat.db'}"
        token = Path(server.ready["token_file"]).read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE_S) as client:
            workspace = client.post("/v1/workspaces", json={"scope": SCOPE, "name": "checkout"}).json()["id"]
            space = client.post(f"/v1/workspaces/{workspace}/spaces", json={"name": "triage"}).json()["id"]
            yield Office(server=server, client=client, database=database, workspace=workspace, space=space)


def _came_back(*names: str) -> str:
    return f"Delegation refused: cycle detected ({' → '.join(f'{SCOPE}:{name}' for name in names)})."


@pytest.mark.promise("D-1", "D-2", "D-3")
def test_three_hops_pass_and_the_fourth_and_every_way_back_are_refused_word_for_word(office: Office) -> None:
    first = office.delegate("A").json()
    assert (first["depth"], first["agent"]) == (0, f"{SCOPE}:A")
    with office.program(first["run"]) as a:
        assert "delegate_task" in a.tools()
        assert a.refused("A") == a.refused(f"{SCOPE}:A", parent_ticket_id=first["ticket"]) == _came_back("A", "A")
        second = a.handed("B", parent_ticket_id=first["ticket"], from_agent_id=f"{SCOPE}:A")
    with office.program(second["run"]) as b:
        assert b.refused("A") == b.refused("A", parent_ticket_id=second["ticket"]) == _came_back("A", "B", "A")
        assert b.refused("C", parent_ticket_id=first["ticket"]).endswith("is not the ticket that this run works on.")
        third = b.handed("C")
    with office.program(third["run"]) as c:
        fourth = c.handed("D")
    with office.program(fourth["run"]) as d:
        assert fourth["depth"] == 3
        assert d.refused("E") == "Delegation refused: chain depth 4 exceeds the cap of 3."
    tree = office.tree(first["ticket"])
    line = [tree]
    while line[-1]["children"]:
        line.append(line[-1]["children"][0])
    assert [(node["depth"], node["assignee"], node["delegated_by"]) for node in line] == [
        (0, f"{SCOPE}:A", None),
        (1, f"{SCOPE}:B", f"{SCOPE}:A"),
        (2, f"{SCOPE}:C", f"{SCOPE}:B"),
        (3, f"{SCOPE}:D", f"{SCOPE}:C"),
    ]
    assert line[-1]["runs"][0]["refusals"] == ["Delegation refused: chain depth 4 exceeds the cap of 3."]


@pytest.mark.promise("D-4", "D-5")
def test_a_call_in_somebody_elses_name_leaves_nothing_but_its_line_in_the_trail(office: Office) -> None:
    first = office.delegate("A").json()
    with office.program(first["run"]) as a:
        before = office.everything()
        for other in (f"{SCOPE}:B", "globex:X", "1"):
            assert a.refused("B", from_agent_id=other) == "Delegation refused: from_agent_id is not the agent of this run."
        assert a.refused("B", parent_ticket_id=10_000) == "Delegation refused: parent ticket #10000 does not exist."
        after = office.everything()
    # The calls are counted, and the run's row says how long its trail is.
    assert {table for table in after if after[table] != before[table]} == {"steps", "runs", "budgets", "reservations"}
    assert len(after["runs"]) == len(before["runs"])


@pytest.mark.promise("D-5")
def test_a_person_is_held_to_depth_and_cycle_and_to_nothing_else(office: Office) -> None:
    first = office.delegate("A").json()
    again = office.delegate("A", parent_ticket_id=first["ticket"])
    assert (again.status_code, again.json()["detail"]) == (409, _came_back("A", "A"))
    line = [first]
    for name in "BCD":
        line.append(office.delegate(name, parent_ticket_id=line[-1]["ticket"]).json())
    assert [one["depth"] for one in line] == [0, 1, 2, 3]
    deep = office.delegate("E", parent_ticket_id=line[-1]["ticket"])
    assert (deep.status_code, deep.json()["detail"]) == (409, "Delegation refused: chain depth 4 exceeds the cap of 3.")
    missing = office.delegate("B", parent_ticket_id=10_000)
    assert missing.json()["detail"] == "Delegation refused: parent ticket #10000 does not exist."
    forged = office.delegate("B", from_agent_id=f"{SCOPE}:A")
    assert (forged.status_code, forged.json()["violations"][0]["field"]) == (422, "from_agent_id")
    for one in line:
        with office.program(one["run"]):
            pass


@pytest.mark.promise("D-3")
def test_a_step_that_is_given_back_is_refused_and_seen_on_the_ticket_and_at_a_terminal(office: Office, tmp_path: Path) -> None:
    first = office.delegate("E", title="needs a key").json()
    with office.program(first["run"]) as e:
        second = e.handed("F", title="get the key")
    with office.program(second["run"]) as f:
        assert f.refused("E") == _came_back("E", "F", "E")
    shown = command(
        *("delegation", "tree", office.workspace, first["ticket"], "--server", office.server.url),
        *("--token-file", office.server.ready["token_file"]),
        cwd=tmp_path,
    )
    assert shown.status == 0
    assert shown.out.splitlines() == [
        f"#{first['ticket']} needs a key (open): {SCOPE}:E",
        f"  run {first['run']} of {SCOPE}:E: finished",
        f"  #{second['ticket']} get the key (open): {SCOPE}:F, delegated by {SCOPE}:E",
        f"    run {second['run']} of {SCOPE}:F: finished",
        f"      {_came_back('E', 'F', 'E')}",
    ]


@pytest.mark.promise("D-1")
def test_a_person_delegates_at_a_terminal(office: Office, tmp_path: Path) -> None:
    done = command(
        *("delegation", "start", office.workspace, "B", "Find the cause", "--space", office.space, "--format", "json"),
        *("--server", office.server.url, "--token-file", office.server.ready["token_file"]),
        cwd=tmp_path,
    )
    assert (done.status, done.err) == (0, "")
    [made] = done.answers
    with office.program(made["run"]) as b:
        assert b.handed("C")["depth"] == 1
    with office.program(made["run"] + 1):
        pass


@pytest.mark.promise("D-5")
def test_a_mention_in_between_starts_no_chain_of_its_own(office: Office) -> None:
    for name in "ABCD":
        where = path("v1", "workspaces", office.workspace, "spaces", office.space, "participants", f"{SCOPE}:{name}")
        assert office.client.put(where).status_code < 300
    first = office.delegate("A", title="by mention").json()
    with office.program(first["run"]) as a:
        second = a.handed("B")
    with office.program(second["run"]) as b:
        said = b.call("post_message", text="@C please look at this")
        assert said["result"] == "done", said
    with office.program(second["run"] + 1) as c:
        assert c.refused("A") == _came_back("A", "B", "C", "A")
        assert c.refused("B") == _came_back("B", "C", "B")
        third = c.handed("D")
        assert third["depth"] == 2
    with office.program(third["run"]) as d:
        assert d.call("post_message", text="@B it is done")["result"] == "done"
    with office.program(third["run"] + 1) as again:
        assert again.refused("D") == _came_back("D", "B", "D")
        assert again.handed("E")["depth"] == 3
    with office.program(third["run"] + 2) as e:
        assert e.refused("F") == "Delegation refused: chain depth 4 exceeds the cap of 3."


@pytest.mark.promise("D-1", "D-3")
def test_a_program_delegates_over_mcp_and_is_refused_word_for_word(office: Office) -> None:
    first = office.delegate("A", title="over mcp").json()
    with office.program(first["run"]) as a:
        assert "delegate_task" in a.mcp.tools()
        well, told = a.mcp.call("delegate_task", agent="B", title="a part", description="do it")
        assert well, told
        assert a.mcp.call("delegate_task", agent="A", title="rest", description="do it") == (False, _came_back("A", "A"))
    with office.program(json.loads(told)["run"]) as b:
        said = b.mcp.call("delegate_task", agent="A", title="back", description="do it")
        assert said == (False, _came_back("A", "B", "A"))
