"""Workspaces, tickets, spaces, mentions and modes, over HTTP and MCP of the processes of `agentplat up` (W-1 to W-10, W-12)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.together.hall import EVERY_ROLE, Hall, Room
from tests.agentplat.api.test_every_route import BODIES, QUERIES, UNKNOWN_ID
from tests.agentplat.http import path
from tests.agentplat.work.test_work_trees import git, repository
from tests.agentplat.world import wait_until

INSIDE = ("tickets", "ticket_roles", "ticket_changes", "ticket_comments", "messages", "mentions", "participants", "runs")
"""The tables of what is in a workspace."""


def _name(caller: Any) -> str:
    return str(caller.get("/v1/me")["person"])


@pytest.mark.promise("W-1")
def test_a_workspace_has_the_agents_of_its_scope_and_below_the_people_with_a_grant_on_it_and_repositories(
    running: Hall, room: Room, tmp_path: Path
) -> None:
    other = running.room()
    other.publish("carl")
    reader = running.person(f"{room.scope}:reader", f"viewer={room.scope}")
    shown = room.boss.get(room.workspace)
    assert shown["scope"] == room.scope
    assert shown["agents"] == [room.agent("alice"), room.agent("bob")]
    assert shown["members"] == [_name(room.boss), _name(reader)]
    company = running.root.post("/v1/workspaces", {"scope": "acme", "name": f"All of {room.scope}"})
    below = running.root.get(f"/v1/workspaces/{company['id']}")["agents"]
    assert {room.agent("alice"), other.agent("carl")} <= set(below)
    given = {"name": "site", "path": str(repository(tmp_path / "linked"))}
    room.boss.post(f"{room.workspace}/repositories", given, status=403)
    running.root.post(f"{room.workspace}/repositories", given)
    assert [one["name"] for one in room.boss.get(room.workspace)["repositories"]] == ["site"]


@pytest.mark.promise("W-2")
def test_roles_on_a_ticket_start_nothing_and_grant_nothing(running: Hall, room: Room) -> None:
    number = room.ticket("Mend the build")
    ticket = f"{room.workspace}/tickets/{number}"
    reader = running.person(f"{room.scope}:reader", f"viewer={room.scope}")
    for role in ("assignee", "collaborator", "reviewer"):
        assert room.boss.put(f"{ticket}/roles/{role}/agent{path(room.agent('alice'))}") == {"changed": True}
    room.boss.put(f"{ticket}/roles/assignee/person{path(_name(reader))}")
    shown = room.boss.get(ticket)
    # One assignee; who was it before is it no longer.
    assert sorted((one["role"], one["name"]) for one in shown["involved"]) == [
        ("assignee", _name(reader)),
        ("collaborator", room.agent("alice")),
        ("reviewer", room.agent("alice")),
    ]
    assert (shown["runs"], room.runs()) == ([], [])
    room.boss.post("/v1/external:lease", status=204)
    reader.ask("PATCH", ticket, {"version": 1, "status": "done"}, status=403)
    reader.post(f"{ticket}/comments", {"body": "I am the assignee"}, status=403)


@pytest.mark.promise("W-3")
def test_an_agent_moves_a_ticket_along_the_graph_a_person_to_any_status_and_nobody_with_a_stale_version(room: Room) -> None:
    number = room.ticket("Mend the build")
    ticket = f"{room.workspace}/tickets/{number}"
    room.say(f"@alice mend #{number}")
    mcp = room.take().mcp
    far = "an agent moves a ticket from open to in_progress, blocked, cancelled, not to done"
    assert mcp.call("move_ticket", ticket=number, status="done", version=1) == (False, far)
    well, told = mcp.call("move_ticket", ticket=number, status="in_progress", version=1)
    assert (well, json.loads(told)) == (True, {"ticket": number, "status": "in_progress", "version": 2})
    stale = f"#{number} has version 2 by now, not 1; look at it again, then change it"
    assert mcp.call("move_ticket", ticket=number, status="blocked", version=1) == (False, stale)
    refused = room.boss.ask("PATCH", ticket, {"version": 1, "status": "done"}, status=409)
    assert refused["detail"] == stale
    statuses = ["backlog", "done", "cancelled", "open", "failed", "in_review", "blocked", "in_progress"]
    for version, status in enumerate(statuses, start=2):
        assert room.boss.ask("PATCH", ticket, {"version": version, "status": status})["status"] == status
    changes = room.boss.get(ticket)["changes"]
    assert [change["changed"]["status"] for change in changes] == ["in_progress", *statuses]
    assert [change["by"]["name"] for change in changes] == [room.agent("alice"), *[_name(room.boss)] * len(statuses)]


@pytest.mark.promise("W-4", "W-5", "W-6", "W-7", "W-10")
def test_a_message_hands_a_ticket_over_and_the_agent_works_in_a_tree_and_the_mode_of_the_space(
    running: Hall, room: Room, tmp_path: Path
) -> None:
    linked = repository(tmp_path / "linked")
    before = (git(linked, "rev-parse", "HEAD"), git(linked, "status", "--porcelain"))
    running.root.post(f"{room.workspace}/repositories", {"name": "site", "path": str(linked)})
    number = room.ticket("Mend the build", "It fails on main.")
    completed = room.boss.get(f"{room.workspace}/completions?text=%23Mend")["completions"]
    assert [one["insert"] for one in completed] == [f"#{number}"]
    planning = room.open_space("Plans", "plan")
    said = room.say(f"@alice please mend #{number}")
    assert [(one["name"], one["outcome"]) for one in said["mentions"]] == [(room.agent("alice"), "opened")]
    alice = room.take()
    given = json.loads(alice.task["input"].partition("\n")[2])
    assert given["message"]["text"] == f"@alice please mend #{number}"
    assert [(one["title"], one["description"]) for one in given["tickets"]] == [("Mend the build", "It fails on main.")]
    assert alice.task["workplace"] == {
        "workspace": room.workspace_id,
        "space": room.space_id,
        "mode": "chat",
        "message": said["id"],
    }
    [tree] = alice.task["work_trees"]
    (Path(tree["path"]) / "mended.txt").write_text("mended", encoding="utf-8")
    assert {"create_ticket", "post_message"} <= alice.tools
    # The mode that is set now is that of what is said from now on, and of this space alone.
    room.boss.put(f"{room.space}/mode", {"mode": "plan"})
    assert room.boss.ask("PUT", f"{room.space}/mode", {"mode": "review"}, status=422)
    assert {"create_ticket", "post_message"} <= alice.tools
    assert alice.call("post_message", text="half of it")["result"] == "done"
    alice.finish("mended")
    assert [(one["kind"], one["body"]) for one in room.messages(said["id"])] == [
        ("notice", "The mode is plan from the next message on; it was chat."),
        ("progress", "half of it"),
        ("result", "mended"),
    ]
    room.say(f"@alice plan #{number}")
    room.boss.post(f"{planning}/messages", {"body": f"@bob plan #{number}"})
    for planner in (room.take(), room.take()):
        assert (planner.task["workplace"]["mode"], planner.task["work_trees"][0]["branch"]) == ("plan", None)
        assert "submit_plan" in planner.tools
        absent = planner.mcp.call("create_ticket", title="x")
        assert absent == (False, "this run has no tool 'create_ticket'")
        assert planner.mcp.call("never_was", title="x") == (False, absent[1].replace("create_ticket", "never_was"))
        planner.finish("planned")
    assert (git(linked, "rev-parse", "HEAD"), git(linked, "status", "--porcelain")) == before
    # What nobody committed is on the branch, which stays, and the tree is gone.
    assert room.boss.ask("DELETE", room.space)["branches"] == [tree["branch"]]
    assert not Path(tree["path"]).exists()
    assert git(linked, "show", f"{tree['branch']}:mended.txt") == "mended"
    assert (git(linked, "rev-parse", "HEAD"), git(linked, "status", "--porcelain")) == before


@pytest.mark.promise("W-8")
def test_a_mention_is_exact_or_a_unique_prefix_and_agents_mention_participants_only(running: Hall, room: Room) -> None:
    room.publish("bobby", "Carla")
    reader = running.person(f"{room.scope}:reader", f"viewer={room.scope}")

    def outcomes(text: str) -> list[tuple[str, str]]:
        return [(one["name"].rpartition(":")[2], one["outcome"]) for one in room.say(text)["mentions"]]

    for text, why in (("@b go", "@b is ambiguous"), ("@nobody go", "@nobody means nobody"), ("go #99", "#99 is no ticket")):
        refused = room.boss.post(f"{room.space}/messages", {"body": text}, status=422)
        assert why in refused["violations"][0]["reason"]
    assert room.messages() == []
    assert outcomes("@alice @bob") == [("alice", "ignored"), ("bob", "ignored")]
    assert outcomes("@reader look at this") == [("reader", "notified")]
    assert len(reader.get("/v1/me/mentions")["messages"]) == 1
    assert room.runs() == []
    assert outcomes("@bob go") == [("bob", "opened")]
    assert outcomes("@CAR go") == [("Carla", "opened")]
    bob = room.take()
    assert "@alice means nobody in this space's participants" in bob.call("post_message", text="@alice help")["text"]
    room.join("alice", "bob")
    told = json.loads(bob.call("post_message", text="@ALI and @bob, help")["text"])
    assert [one["agent"] for one in told["started"]] == [room.agent("alice")]
    assert told["not_started"] == [{"agent": room.agent("bob"), "reason": "an agent's mention of itself does nothing"}]


@pytest.mark.promise("W-9")
def test_agents_that_mention_each_other_for_ever_come_to_the_end_of_their_chain_and_the_space_says_why(room: Room) -> None:
    for name, other in (("ping", "pong"), ("pong", "ping")):
        said = {"call": "post_message", "arguments": {"text": f"@{other} your turn"}}
        room.publish(name, driver={"kind": "scripted", "actions": [said, {"finish": {"summary": "done"}}]})
    room.join("ping", "pong")
    room.say("@ping begin")
    wait_until(lambda: any(one["kind"] == "refusal" for one in room.messages()), "a guard refuses")
    wait_until(lambda: {run["state"] for run in room.runs()} == {"finished"}, "all runs end")
    [refusal] = [one for one in room.messages() if one["kind"] == "refusal"]
    assert refusal["body"] == "pong was not started: the chain has come to hop 8, which is its last."
    assert refusal["mentions"] == []
    runs = room.runs()[::-1]
    assert [run["hop"] for run in runs] == list(range(9))
    assert {run["chain"] for run in runs} == {runs[0]["run"]}
    assert all(later["source_run"] == run["run"] for run, later in pairwise(runs))


@pytest.mark.promise("W-9")
def test_two_agents_start_each_other_ten_times_a_minute_and_a_refusal_mentions_nobody(room: Room) -> None:
    room.join("alice", "bob")
    room.say("@alice go")
    alice = room.take()
    told = [json.loads(alice.call("post_message", text=f"@bob part {i}")["text"]) for i in range(11)]
    assert [len(one["started"]) for one in told] == [1] * 10 + [0]
    reason = "alice and bob have sent each other 10 messages within a minute, which is the most"
    assert told[-1]["not_started"] == [{"agent": room.agent("bob"), "reason": reason}]
    last = room.messages()[-1]
    assert (last["kind"], last["body"], last["mentions"]) == ("refusal", f"bob was not started: {reason}.", [])
    assert {(run["opened_by"], run["hop"], run["chain"]) for run in room.runs()[:-1]} == {("mention", 1, alice.run)}
    assert len(room.runs()) == 11


@pytest.mark.promise("W-12")
def test_no_route_of_the_running_server_tells_a_workspace_of_others_from_none(running: Hall, room: Room) -> None:
    number = room.ticket("hidden")
    room.say("hidden")
    routes = [
        f"{method.upper()} {pattern}"
        for pattern, methods in running.root.get("/openapi.json")["paths"].items()
        for method in methods
        if "/workspaces/{workspace}" in pattern
    ]
    assert len(routes) >= 20
    own = {"workspace": room.workspace_id, "space": room.space_id, "number": number, "ref": room.agent("alice")}
    nothing = {"workspace": UNKNOWN_ID, "space": UNKNOWN_ID, "number": 2**30, "ref": room.agent("nobody")}
    plain = {"role": "reviewer", "kind": "agent"}
    elsewhere = running.room().scope
    before = running.rows(*INSIDE)
    for i, scope in enumerate((elsewhere, "globex")):
        stranger = running.person(f"{scope}:stranger{i}", *(f"{role}={scope}" for role in EVERY_ROLE))
        wrong = []
        for route in sorted(routes):
            method, pattern = route.split(" ")
            answers = []
            for values in (own, nothing):
                filled = pattern
                for name, value in {**values, **plain}.items():
                    filled = filled.replace(f"{{{name}}}", path(value)[1:])
                answer = stranger.send(method, filled + QUERIES.get(route, ""), BODIES.get(route))
                answers.append((answer.status_code, answer.content))
            if answers[0] != answers[1] or answers[0][0] != 404:
                wrong.append((route, answers))
        assert not wrong, "\n".join(map(repr, wrong))
        assert all("hidden" not in stranger.send("GET", where).text for where in ("/v1/workspaces", "/v1/me/mentions", "/v1/runs"))
        assert room.workspace_id not in [one["id"] for one in stranger.get("/v1/workspaces")["workspaces"]]
    assert running.rows(*INSIDE) == before
