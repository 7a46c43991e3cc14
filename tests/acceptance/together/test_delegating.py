"""Delegation, contracts and orchestration through the HTTP API and MCP of the processes of `agentplat up` (D-1 to D-16)."""

from __future__ import annotations

import json
import re
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from agentplat.drivers.model import SUB_AGENT, TOO_DEEP

from tests.acceptance.together.hall import Hall, Holder, Room
from tests.agentplat.chat_server import calls_tool
from tests.agentplat.http import path
from tests.agentplat.offices import finish, submit
from tests.agentplat.proposals import proposal, sub_ticket
from tests.agentplat.world import wait_until

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
EXHAUSTED = "Delegation refused: the delegator's budget envelope is exhausted (delegation cannot mint budget)."
MOST_TOKENS, ASKED = 100, 3


def _level(room: Room, name: str, level: str) -> None:
    room.boss.put(f"{room.space}/autonomy{path(room.agent(name))}", {"level": level})


def _pause(room: Room, name: str) -> None:
    room.boss.post(path("v1", "agents", room.agent(name), "pause"))


def _deep(room: Room) -> Holder:
    """A program on a ticket that was delegated three times in a row."""
    ticket = None
    for name in ("one", "two", "three", "alice"):
        ticket = room.delegate(name, **({} if ticket is None else {"parent_ticket_id": ticket}))["ticket"]
    for _ in range(3):
        room.take().finish()
    return room.take()


def _first(room: Room) -> Holder:
    room.delegate("alice")
    return room.take()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A delegation that must be refused. reason: SCOPE stands for the area's."""

    reason: str
    arguments: dict[str, Any]
    holder: Callable[[Room], Holder] = _first
    before: Callable[[Room], object] | None = None


REFUSALS = {
    "depth": Refusal(reason="Delegation refused: chain depth 4 exceeds the cap of 3.", arguments={}, holder=_deep),
    "cycle": Refusal(
        reason="Delegation refused: cycle detected (SCOPE:alice → SCOPE:alice).",
        arguments={"agent": "alice", "parent_ticket_id": 1},
    ),
    "cycle without a parent": Refusal(
        reason="Delegation refused: cycle detected (SCOPE:alice → SCOPE:alice).", arguments={"agent": "alice"}
    ),
    "autonomy": Refusal(
        reason='Delegation refused: a delegate cannot run "actFreely" above the delegator ceiling "actWithApproval".',
        arguments={},
        before=lambda room: _level(room, "bob", "actFreely"),
    ),
    "budget": Refusal(
        reason=EXHAUSTED,
        arguments={},
        before=lambda room: room.publish("alice", tools=["delegate_task"], budget={"tool_calls": 1}),
    ),
    "no such parent": Refusal(reason="Delegation refused: parent ticket #77 does not exist.", arguments={"parent_ticket_id": 77}),
    "another ticket": Refusal(
        reason="Delegation refused: parent_ticket_id is not the ticket that this run works on.",
        arguments={"parent_ticket_id": 1},
        before=lambda room: room.ticket("Another one"),
    ),
    "somebody else": Refusal(
        reason="Delegation refused: from_agent_id is not the agent of this run.", arguments={"from_agent_id": "bob"}
    ),
    "paused": Refusal(reason="bob is paused", arguments={}, before=lambda room: _pause(room, "bob")),
    "schema": Refusal(reason="/$ref", arguments={"expected_output_schema": {"$ref": "https://example.com/s"}}),
}


@pytest.mark.promise("D-2", "D-3", "D-4", "D-5", "D-9")
@pytest.mark.parametrize("way", ["http", "mcp"])
@pytest.mark.parametrize("why", REFUSALS)
def test_a_refused_delegation_says_why_word_for_word_and_leaves_its_line_in_the_trail_alone(
    running: Hall, room: Room, why: str, way: str
) -> None:
    room.publish("one", "two", "three", tools=["delegate_task"])
    refusal = REFUSALS[why]
    if refusal.before is not None:
        refusal.before(room)
    holder = refusal.holder(room)
    given = {"agent": "bob", "title": "a part", "description": "do it", **refusal.arguments}
    running.settle()
    before = running.rows()
    if way == "mcp":
        well, told = holder.mcp.call("delegate_task", **given)
        assert not well
    else:
        answer = holder.call("delegate_task", **given)
        assert answer["result"] == "refused"
        told = answer["text"]
    after = running.rows()
    reason = refusal.reason.replace("SCOPE", room.scope)
    assert told == reason if reason.startswith("Delegation") else reason in told, told
    # The call is counted, as every call is, and the run's row says how long its trail is.
    assert {table for table in after if after[table] != before[table]} == {"steps", "runs", "budgets", "reservations"}
    assert len(after["runs"]) == len(before["runs"])
    steps = room.boss.get(f"/v1/runs/{holder.run}/trail")["steps"]
    results = [step for step in steps if step["kind"] == "tool_result"]
    assert [step["body"]["result"] for step in results] == ["refused"]
    assert len(after["steps"]) - len(before["steps"]) <= len(steps)


@pytest.mark.promise("D-9")
def test_an_unknown_level_of_autonomy_is_refused_and_an_agent_that_may_only_propose_hands_nothing_on(room: Room) -> None:
    where = f"{room.space}/autonomy{path(room.agent('alice'))}"
    refused = room.boss.put(where, {"level": "actAsYouLike"}, status=422)
    assert "level" in refused["violations"][0]["field"]
    _level(room, "alice", "proposeOnly")
    answer = _first(room).call("delegate_task", agent="bob", title="a part", description="do it")
    assert (answer["result"], answer["text"]) == ("refused", "this agent may only propose")


@pytest.mark.promise("D-1", "D-6")
def test_sixty_four_delegations_at_once_bind_no_more_than_there_is_and_what_is_unspent_comes_back(room: Room) -> None:
    room.boss.put("/v1/budgets", {"agent": room.agent("alice"), "unit": "tokens", "ceiling": MOST_TOKENS})
    for _ in range(8):
        room.delegate("alice")
    holders = [room.take() for _ in range(8)]

    def hand_on(holder: Holder) -> list[dict[str, Any]]:
        asked = {"agent": "bob", "description": "do it", "budget": {"tokens": ASKED}}
        return [holder.call("delegate_task", title=f"part {i} of {holder.run}", **asked) for i in range(8)]

    def of_alice() -> dict[str, int]:
        shown = room.boss.get(f"/v1/budgets?agent={room.agent('alice').replace('/', '%2F')}")["budgets"]
        [found] = [one for one in shown if (one["kind"], one["unit"]) == ("agent", "tokens")]
        return {key: found[key] for key in ("ceiling", "reserved", "spent")}

    with ThreadPoolExecutor(len(holders)) as pool:
        answers = [answer for found in pool.map(hand_on, holders) for answer in found]
    assert Counter(answer["result"] for answer in answers) == {"done": 34, "refused": 30}
    assert {answer["text"] for answer in answers if answer["result"] == "refused"} == {EXHAUSTED}
    handed = [json.loads(answer["text"]) for answer in answers if answer["result"] == "done"]
    assert sum(one["ceilings"]["tokens"] for one in handed) == MOST_TOKENS
    assert of_alice() == {"ceiling": MOST_TOKENS, "reserved": MOST_TOKENS, "spent": 0}
    assert len(room.runs()) == 8 + 34
    for one in handed:
        room.boss.post(f"/v1/runs/{one['run']}/cancel")
    assert of_alice() == {"ceiling": MOST_TOKENS, "reserved": 0, "spent": 0}
    assert holders[0].call("delegate_task", agent="bob", title="now", description="do it")["result"] == "done"


@pytest.mark.promise("D-8")
def test_sub_agents_of_a_model_nest_two_levels_and_a_third_is_refused(running: Hall, room: Room) -> None:
    room.publish("thinker", driver={"kind": "model", "model": "openai-chat:local-large"})

    def sub(what: str) -> dict[str, Any]:
        return calls_tool(SUB_AGENT, {"task": what})

    done = [{"role": "assistant", "content": said} for said in ("two is done", "one is done", "all is done")]
    running.model_says(sub("level one"), sub("level two"), sub("level three"), *done)
    room.say("@thinker think it over")
    wait_until(lambda: room.messages()[-1]["kind"] == "result", "the model's run ends")
    assert room.messages()[-1]["body"] == "all is done"
    told = [message["content"] for _, _, body in running.models.asked for message in body["messages"] if message["role"] == "tool"]
    assert told == [TOO_DEEP, "two is done", "one is done"]
    assert len(room.runs()) == 1


@pytest.mark.promise("D-10", "D-11", "D-12")
def test_a_contract_of_a_delegation_is_met_over_mcp_and_its_third_rejection_fails_the_run_and_no_ticket(room: Room) -> None:
    first = _first(room)
    asked = {"agent": "bob", "description": "do it", "expected_output_schema": SCHEMA}
    for title in ("fails", "fits"):
        assert first.call("delegate_task", title=title, **asked)["result"] == "done"
    failing, fitting = room.take(), room.take()
    told = [failing.mcp.call("submit_output", output=output) for output in ({"n": True}, {"n": 1, "m": 2}, {"result": {"n": 1}})]
    assert [well for well, _ in told] == [False] * 3
    begins = "the output does not fit the contract of this run; tries left: "
    assert told[0][1] == f"{begins}2\n- /n: expected a value of type integer"
    assert told[1][1] == f"{begins}1\n- /m: expected no such property"
    assert told[2][1].startswith(f"{begins}0, so that the run has failed\n")
    assert "wrapped" in told[2][1]
    assert not fitting.mcp.call("finish", summary="done")[0]
    assert not fitting.mcp.call("submit_output", output={"n": "1"})[0]
    assert fitting.mcp.call("submit_output", output={"n": 1.0}) == (True, "the output is kept")
    assert fitting.mcp.call("finish", summary="done")[0]
    for holder, number, state, met, kinds in (
        (failing, 2, "failed", "rejected", {"contract_rejected": 3}),
        (fitting, 3, "finished", "accepted", {"contract_rejected": 1, "contract_accepted": 1}),
    ):
        run = room.boss.get(f"/v1/runs/{holder.run}")
        assert (run["state"], run["contract"]["mode"], run["contract"]["state"]) == (state, "strict", met)
        trail = Counter(step["kind"] for step in room.boss.get(f"/v1/runs/{holder.run}/trail")["steps"])
        assert {kind: trail[kind] for kind in trail if kind.startswith("contract_")} == kinds
        ticket = room.boss.get(f"{room.workspace}/tickets/{number}")
        assert (ticket["status"], ticket["version"], ticket["changes"]) == ("open", 1, [])


@pytest.mark.promise("D-10", "D-12")
def test_a_contract_that_nobody_could_check_is_refused_by_the_running_server_and_fetches_nothing(room: Room) -> None:
    where = path("v1", "agents", room.agent("alice"), "runs")
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        host, port = listening.getsockname()
        for schema in (
            {"$ref": f"http://{host}:{port}/schema.json"},
            {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
            {"type": "object", "propertys": {}},
            {"type": "string", "format": "no-such-format"},
            {"type": "string", "pattern": "(a+)+(?=b)"},
            {"allOf": [{"not": {}}] * 2_000},
        ):
            refused = room.boss.post(where, {"expected_output_schema": schema}, status=422)
            assert refused["violations"][0]["field"].startswith("expected_output_schema"), refused
        loose = room.boss.post(where, {"expected_output_schema": SCHEMA, "output_contract_mode": "loose"}, status=422)
        assert [one["field"] for one in loose["violations"]] == ["output_contract_mode"]
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert room.runs() == []


@pytest.mark.promise("D-13", "D-14", "D-15", "D-16")
def test_an_approved_proposal_runs_one_prompt_for_each_sub_ticket_in_its_order_and_makes_no_ticket(running: Hall) -> None:
    room = running.room(mode="orchestrate")
    room.publish("worker", driver={"kind": "scripted", "actions": [finish("worked")]})
    room.publish("writer", driver={"kind": "scripted", "actions": [submit("whole"), finish("written")]})
    room.publish("planner")
    room.ticket("There before")
    roles = {"writer": room.agent("writer"), "worker": room.agent("worker")}
    parts = [sub_ticket("a"), sub_ticket("b", needs=["a"]), sub_ticket("c", needs=["a", "b"])]
    wanted = proposal(parts, roles, "worker")
    room.say("@planner plan it")
    planner = room.take()
    loop = {
        **wanted,
        "sub_tickets": [sub_ticket("a", needs=["b"]), sub_ticket("b", needs=["a"])],
        "nodes": [{"kind": "createTicket"}],
    }
    refused = planner.call("propose_orchestration", proposal=loop)
    assert refused["result"] == "refused"
    assert "nodes" in refused["text"]
    assert re.search(r"a → b → a|b → a → b", refused["text"]), refused["text"]
    offered = json.loads(planner.call("propose_orchestration", proposal=wanted)["text"])
    approve = f"/v1/proposals/{offered['proposal']}/approve"
    seen = {"revision": 1, "digest": offered["digest"]}
    # Only a person approves, and only what they saw.
    planner.post(approve, seen, status=401)
    revised = json.loads(planner.call("propose_orchestration", proposal=wanted, revises=offered["proposal"])["text"])
    room.boss.post(approve, seen, status=409)
    room.boss.post(approve, {"revision": 2, "digest": "0" * 64}, status=409)
    planner.finish()
    pipeline = room.boss.post(approve, {"revision": 2, "digest": revised["digest"]})["pipeline"]
    shown = f"/v1/pipelines/{pipeline}"
    wait_until(lambda: room.boss.get(shown)["state"] != "running", "the pipeline ends")
    ended = room.boss.get(shown)
    assert ended["state"] == "finished"
    assert Counter(step["kind"] for step in ended["steps"]) == {"promptAgent": 3, "research": 1, "synthesis": 1}
    assert {step["title"] for step in ended["steps"] if step["kind"] == "promptAgent"} == {one["title"] for one in parts}
    opened = {step["key"]: step["runs"][0] for step in ended["steps"]}
    assert all(opened[need] < opened[step["key"]] for step in ended["steps"] for need in step["needs"])
    assert [len(step["runs"]) for step in ended["steps"]] == [1] * 5
    assert [ticket["title"] for ticket in room.boss.get(f"{room.workspace}/tickets")["tickets"]] == ["There before"]
    decided = room.boss.get(f"/v1/proposals/{offered['proposal']}")
    assert (decided["approved_revision"], decided["decided_by"]) == (2, f"{room.scope}:boss")
