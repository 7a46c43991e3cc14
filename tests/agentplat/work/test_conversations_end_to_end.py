"""Work handed over in spaces, with worker processes and programs over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access
from agentplat.domain.chains import ChainLimits
from agentplat.store.sql import SqlStore
from agentplat.usecases.catalogue import Patience, build_use_cases
from agentplat.worktrees.folder import FolderWorkTrees

from tests.agentplat.http import Api, api, path
from tests.agentplat.processes import command
from tests.agentplat.run_records import folder_content
from tests.agentplat.work.test_work_trees import git, repository
from tests.agentplat.workers import worker
from tests.agentplat.world import BACKOFF, PATIENCE_S, World, wait_until

SCOPE = "acme/platform"
ALICE, BOB = f"{SCOPE}:alice", f"{SCOPE}:bob"


def _script(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "scripted", "actions": list(actions)}


def _calls(other: str) -> dict[str, Any]:
    """A script that hands everything on."""
    said = {"call": "post_message", "arguments": {"text": f"@{other} your turn"}}
    return _script(said, {"finish": {"summary": f"{other} goes on"}})


class Client:
    """Somebody who works in one space over HTTP."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        made = self._sent("post", "/v1/workspaces", {"scope": SCOPE, "name": "Platform"})
        self.workspace = f"/v1/workspaces/{made['id']}"
        self.space = f"{self.workspace}/spaces/{self._sent('post', f'{self.workspace}/spaces', {'name': 'Talk'})['id']}"

    def _sent(self, method: str, where: str, body: Any = None) -> Any:
        answer = self.client.request(method.upper(), where, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def put(self, where: str, body: Any = None) -> Any:
        """PUT something."""
        return self._sent("put", where, body)

    def post(self, where: str, body: Any = None) -> Any:
        """POST something."""
        return self._sent("post", where, body)

    def get(self, where: str) -> Any:
        """GET something."""
        return self._sent("get", where)

    def say(self, text: str) -> Any:
        """Say something in the space."""
        return self.post(f"{self.space}/messages", {"body": text})

    def messages(self, after: int = 0) -> list[Any]:
        """What was said."""
        found: list[Any] = self.get(f"{self.space}/messages?after={after}")["messages"]
        return found

    def join(self, *agents: str) -> None:
        """Let agents take part."""
        for agent in agents:
            self.put(f"{self.space}/participants{path(agent)}")


def _root(acme: World) -> Access:
    return acme.person("acme:root", "author=*", "viewer=*", "admin=*")


@contextmanager
def serving(acme: World, folder: Path, trees: FolderWorkTrees | None) -> Iterator[Api]:
    """A server with these work trees."""
    patience = Patience(verify_s=PATIENCE_S, check_s=PATIENCE_S, call_s=PATIENCE_S, backoff=BACKOFF, lease_s=PATIENCE_S)
    cases = build_use_cases(acme.store, folder_content(folder), acme.cases.preview_version.graph, patience, trees)
    served = World(store=acme.store, graph=acme.graph, cases=cases)
    with api(served) as running:
        yield running


@contextmanager
def talking(acme: World, folder: Path, trees: FolderWorkTrees | None = None) -> Iterator[tuple[Client, Api]]:
    """Somebody with a new workspace on a server with these work trees."""
    with serving(acme, folder, trees) as running, running.client(_root(acme)) as client:
        yield Client(client), running


def _limits(store: SqlStore, limits: ChainLimits) -> None:
    with store.writing() as work:
        work.chains.set_limits(limits)


@pytest.mark.promise("W-4", "W-8", "W-9")
@pytest.mark.parametrize(
    ("limits", "runs", "reason"),
    [
        (ChainLimits(hops=8, runs=256), 9, "the chain has come to hop 8, which is its last"),
        (ChainLimits(hops=100, runs=256), 11, "alice and bob have sent each other 10 messages within a minute, which is the most"),
        (ChainLimits(hops=100, runs=5), 5, "the chain has spent its budget of 5 runs"),
    ],
)
def test_two_agents_that_mention_each_other_for_ever_stop_at_the_first_limit_and_the_space_says_why(
    acme: World, tmp_path: Path, limits: ChainLimits, runs: int, reason: str
) -> None:
    acme.publish(_root(acme), ALICE, driver=_calls("bob"))
    acme.publish(_root(acme), BOB, driver=_calls("alice"))
    _limits(acme.store, limits)
    with talking(acme, tmp_path) as (client, _), worker(acme.store, tmp_path):
        client.join(ALICE, BOB)
        client.say("@alice begin")
        wait_until(lambda: any(message["kind"] == "refusal" for message in client.messages()), "a guard refuses")
        wait_until(lambda: len([1 for message in client.messages() if message["kind"] == "result"]) == runs, "all runs end")
        messages = client.messages()
        [refusal] = [message for message in messages if message["kind"] == "refusal"]
        last = "alice" if runs % 2 == 0 else "bob"
        assert refusal["body"] == f"{last} was not started: {reason}."
        assert refusal["mentions"] == []
        assert [run["state"] for run in client.get(client.space)["runs"]] == ["finished"] * runs
        # Every message but the first one and the refusal is of a run: what it said, and what it came to.
        assert len(messages) == 2 + 2 * runs


@pytest.mark.promise("W-1", "W-4", "W-5", "W-6", "W-7", "W-10")
def test_a_program_gets_the_message_its_tickets_the_space_its_mode_a_work_tree_and_the_tools_of_the_mode(
    acme: World, tmp_path: Path
) -> None:
    linked = repository(tmp_path / "linked")
    acme.publish(_root(acme), ALICE, tools=["create_ticket"], driver={"kind": "external"})
    with talking(acme, tmp_path, FolderWorkTrees(tmp_path / "trees", "here")) as (client, running):
        client.post(f"{client.workspace}/repositories", {"name": "site", "path": str(linked)})
        client.post(f"{client.workspace}/tickets", {"title": "Mend the build", "description": "It fails."})
        said = client.say("@alice please mend #1")
        with _taken(client, running) as (task, program):
            assert '"title": "Mend the build"' in task["input"]
            assert task["workplace"] == {
                "workspace": int(client.workspace.rpartition("/")[2]),
                "space": int(client.space.rpartition("/")[2]),
                "mode": "chat",
                "message": said["id"],
            }
            [tree] = task["work_trees"]
            assert git(Path(tree["path"]), "symbolic-ref", "--short", "HEAD") == tree["branch"]
            assert program.get("/v1/external/run").json()["work_trees"] == [tree]
            tools = {tool["name"] for tool in task["tools"]}
            assert {"post_message", "create_ticket"} <= tools
            assert "submit_plan" not in tools
            done = program.post(
                "/v1/external/run/calls", json={"call": 1, "tool": "post_message", "arguments": {"text": "half of it"}}
            )
            assert done.json()["result"] == "done"
            program.post("/v1/external/run/finish", json={"summary": "mended"})
        assert [(message["kind"], message["body"]) for message in client.messages(said["id"])] == [
            ("progress", "half of it"),
            ("result", "mended"),
        ]
        shown = client.get(f"{client.workspace}/tickets/1")
        assert [run["state"] for run in shown["runs"]] == ["finished"]
        assert [message["body"] for message in shown["messages"]] == ["mended", "@alice please mend #1"]
        # The mode of the next message decides.
        client.put(f"{client.space}/mode", {"mode": "plan"})
        client.say("@alice plan it")
        with _taken(client, running) as (task, program):
            assert (task["workplace"]["mode"], task["work_trees"][0]["branch"]) == ("plan", None)
            tools = {tool["name"] for tool in task["tools"]}
            assert "submit_plan" in tools
            assert "create_ticket" not in tools
            asked = {"call": 1, "tool": "create_ticket", "arguments": {"title": "x"}}
            refused = program.post("/v1/external/run/calls", json=asked).json()
            assert (refused["result"], refused["text"]) == ("refused", "this run has no tool 'create_ticket'")
            never = program.post("/v1/external/run/calls", json={**asked, "call": 2, "tool": "never_was"}).json()
            assert never["text"].replace("never_was", "create_ticket") == refused["text"]
            program.post("/v1/external/run/finish", json={"summary": "planned"})
        removed = client.client.delete(client.space).json()
        assert removed["branches"] == []
        assert not Path(tree["path"]).exists()
        assert client.client.get(client.space).status_code == 404


@contextmanager
def _taken(client: Client, running: Api) -> Iterator[tuple[Any, httpx.Client]]:
    """The run that waits for a program, and a client with its token."""
    task = client.post("/v1/external:lease")
    with running.client(token=task["token"]) as program:
        yield task, program


@pytest.mark.promise("W-10")
def test_a_server_without_work_trees_leaves_runs_that_need_one_to_others(acme: World, tmp_path: Path) -> None:
    acme.publish(_root(acme), ALICE, driver={"kind": "external"})
    linked = repository(tmp_path / "linked")
    with talking(acme, tmp_path, FolderWorkTrees(tmp_path / "trees", "here")) as (client, _):
        client.post(f"{client.workspace}/repositories", {"name": "site", "path": str(linked)})
        client.say("@alice go")
        elsewhere = FolderWorkTrees(tmp_path / "other", "elsewhere")
        for trees in (None, elsewhere):
            with serving(acme, tmp_path, trees) as other, other.client(_root(acme)) as asking:
                assert asking.post("/v1/external:lease").status_code == 204
        assert client.post("/v1/external:lease")["agent"] == ALICE


@pytest.mark.promise("W-1", "W-2", "W-3", "W-8")
def test_the_commands_do_what_the_api_does(acme: World, tmp_path: Path) -> None:
    acme.publish(_root(acme), ALICE, driver={"kind": "external"})
    with api(acme) as running:
        token = tmp_path / "token"
        token.write_text(acme.token(_root(acme)), encoding="utf-8")

        def ask(*arguments: object, status: int = 0) -> Any:
            asked = ("--server", f"http://{running.address}", "--token-file", token, "--format", "json")
            done = command(*arguments, *asked, cwd=tmp_path)
            assert done.status == status, done.err
            # The server's log goes to the same place, as it runs in this process.
            answers = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
            return answers if not status else done.err

        [workspace] = ask("workspace", "create", SCOPE, "Platform")
        w = workspace["id"]
        assert ask("workspace", "list")[0]["name"] == "Platform"
        assert ask("workspace", "show", w)[0]["agents"] == [ALICE]
        assert "keeps no work trees" in ask("workspace", "link", w, "x", tmp_path, status=2)
        assert ask("ticket", "create", w, "Mend", "--description", "It fails.")[0]["number"] == 1
        assert ask("ticket", "involve", w, 1, "assignee", "agent", ALICE) == [{"changed": True}]
        assert ask("ticket", "comment", w, 1, "Seen.")[0]["body"] == "Seen."
        assert ask("ticket", "change", w, 1, "--version", 1, "--status", "done")[0]["version"] == 2
        assert "#1 has version 2 by now, not 1" in ask("ticket", "change", w, 1, "--version", 1, "--status", "open", status=2)
        assert ask("ticket", "release", w, 1, "assignee", "agent", ALICE) == [{"changed": True}]
        assert ask("ticket", "list", w, "--status", "done")[0]["title"] == "Mend"
        assert ask("ticket", "show", w, 1)[0]["comments"][0]["body"] == "Seen."
        s = ask("space", "create", w, "Talk")[0]["id"]
        assert ask("space", "review", w, "site#42")[0]["mode"] == "review"
        assert [space["name"] for space in ask("space", "list", w)] == ["Talk", "review of site#42"]
        assert ask("space", "mode", w, s, "orchestrate")[0]["mode"] == "orchestrate"
        assert "review, which nobody chooses" in ask("space", "mode", w, s, "review", status=2)
        assert ask("space", "add", w, s, ALICE) == [{"changed": True}]
        assert ask("space", "autonomy", w, s, ALICE, "proposeOnly")[0]["participants"] == [
            {"agent": ALICE, "autonomy": "proposeOnly"}
        ]
        assert ask("space", "drop", w, s, ALICE) == [{"changed": True}]
        said = ask("space", "say", w, s, "@ali see #1")[0]
        assert said["mentions"][0]["outcome"] == "opened"
        assert "@nobody means nobody" in ask("space", "say", w, s, "@nobody go", status=2)
        assert [message["id"] for message in ask("space", "read", w, s, "--after", said["id"] - 1)] == [said["id"]]
        assert "still work in the space" in ask("space", "remove", w, s, status=2)
        assert ask("run", "cancel", said["mentions"][0]["run"])[0]["state"] == "cancelled"
        assert ask("space", "remove", w, s) == [{"space": s, "branches": []}]
