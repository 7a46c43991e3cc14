"""Every tool of the platform that names a thing, asked by a run about what is its own, what is not, and what is not there (W-12).

The tools and their arguments come from the platform's own table: one that is new has no row here, and this test says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from agentplat.domain.contracts import SCHEMA_FIELD
from agentplat.domain.tools import ToolSpec
from agentplat.usecases.catalogue import build_acting

from tests.acceptance.together.hall import Hall, Holder, Room
from tests.agentplat.processes import ROOT
from tests.agentplat.proposals import proposal, sub_ticket
from tests.agentplat.world import wait_until

pytestmark = pytest.mark.promise("W-12")

SECRET = "zzsecret"
NOTHING = 999_999_999
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ARTIFACTS = {"event": "found.it", "context": "incident", "artifacts": ["letter"]}
TOOLS = ("create_ticket", "move_ticket", "assign_ticket", "delegate_task")


@dataclass(frozen=True, kw_only=True)
class Thing:
    """What an area has of each kind of thing that a tool may name."""

    agent: str
    person: str
    ticket: int
    message: int
    proposal: int
    artifact: str


def _of_others(room: Room, mark: str, tickets: int) -> Thing:
    """One of each thing, in an area that is not the caller's. It has more tickets than the caller's has."""
    room.publish(mark)
    for i in range(tickets):
        number = room.ticket(f"{mark} {i}")
    space = room.space_id
    proposed = room.boss.post(f"/v1/spaces/{space}/proposals", {"proposal": _proposal(room.agent(mark))})
    said = room.say(f"{mark} says so")
    person = f"{room.scope}:{mark}person"
    room.hall.person(person, f"viewer={room.scope}")
    return Thing(
        agent=room.agent(mark),
        person=person,
        ticket=number,
        message=said["id"],
        proposal=proposed["proposal"],
        artifact=f"{mark}.pdf",
    )


def _proposal(agent: str) -> dict[str, Any]:
    return proposal([sub_ticket("a")], {"worker": agent})


DELEGATED = {"title": "A part", "description": "do it"}

# What a tool takes that names a thing: how it is asked about one. The third part tells apart what one argument may name.
NAMING: Mapping[tuple[str, str, str], Callable[[Thing], dict[str, Any]]] = {
    ("read_artifact", "name", ""): lambda thing: {"name": thing.artifact},
    ("delegate_task", "agent", ""): lambda thing: {"agent": thing.agent, **DELEGATED},
    ("delegate_task", "parent_ticket_id", ""): lambda thing: {"agent": "bob", "parent_ticket_id": thing.ticket, **DELEGATED},
    ("delegate_task", "from_agent_id", ""): lambda thing: {"agent": "bob", "from_agent_id": thing.agent, **DELEGATED},
    ("propose_orchestration", "proposal", ""): lambda thing: {"proposal": _proposal(thing.agent)},
    ("propose_orchestration", "revises", ""): lambda thing: {"proposal": _proposal("OWN:bob"), "revises": thing.proposal},
    ("read_space", "after", ""): lambda thing: {"after": thing.message},
    ("post_message", "text", "of an agent"): lambda thing: {"text": f"@{thing.agent} go"},
    ("post_message", "text", "of a person"): lambda thing: {"text": f"@{thing.person} go"},
    ("post_message", "text", "of a ticket"): lambda thing: {"text": f"see #{thing.ticket} too"},
    ("list_tickets", "before", ""): lambda thing: {"before": thing.ticket},
    ("read_ticket", "ticket", ""): lambda thing: {"ticket": thing.ticket},
    ("comment_ticket", "ticket", ""): lambda thing: {"ticket": thing.ticket, "text": "seen"},
    ("move_ticket", "ticket", ""): lambda thing: {"ticket": thing.ticket, "status": "in_progress", "version": 1},
    ("assign_ticket", "ticket", ""): lambda thing: {"ticket": thing.ticket, "role": "reviewer", "name": "bob"},
    ("assign_ticket", "name", "of an agent"): lambda thing: {"ticket": 1, "role": "reviewer", "name": thing.agent},
    ("assign_ticket", "name", "of a person"): lambda thing: {"ticket": 1, "role": "reviewer", "name": thing.person},
}

# Asked with what is there for every caller: the answer does not depend on whose the thing is, and tells nothing of it.
LISTING = {("read_space", "after"), ("list_tickets", "before")}

# What no call on what is not there may change, besides the trail; runs are counted, as their rows say how long their trails are.
MAKING = ("tickets", "ticket_roles", "ticket_changes", "ticket_comments", "messages", "mentions", "escrows", "proposals")

# What names nothing.
PLAIN = {
    "submit_output": {"output"},
    "delegate_task": {"title", "description", SCHEMA_FIELD, "output_contract_mode", "budget"},
    "submit_plan": {"plan"},
    "list_tickets": {"statuses"},
    "comment_ticket": {"text"},
    "create_ticket": {"title", "description", "status"},
    "move_ticket": {"status", "version"},
    "assign_ticket": {"role"},
}

# A call of each tool that does what the tool is for.
OWN: Mapping[str, Mapping[str, Any]] = {
    "read_artifact": {"name": "letter"},
    "submit_output": {"output": {"n": 1}},
    "delegate_task": {"agent": "bob", **DELEGATED},
    "propose_orchestration": {"proposal": _proposal("OWN:bob")},
    "read_space": {},
    "post_message": {"text": "@bob please see #1"},
    "submit_plan": {"plan": "First this."},
    "list_tickets": {},
    "read_ticket": {"ticket": 1},
    "comment_ticket": {"ticket": 1, "text": "seen"},
    "create_ticket": {"title": "More"},
    "move_ticket": {"ticket": 1, "status": "in_progress", "version": 1},
    "assign_ticket": {"ticket": 1, "role": "reviewer", "name": "bob"},
}


def _specs() -> Mapping[str, ToolSpec]:
    """The tools of the platform, from the table that its processes use."""
    return {name: tool.spec for name, tool in build_acting(Mock(), Mock(), 1.0).act.tools.gate.tools.items()}


class Desk:
    """Runs of one area that between them have every tool, and who calls over which way."""

    def __init__(self, room: Room, way: str) -> None:
        self.room, self._way = room, way
        room.publish("alice", tools=TOOLS)
        room.publish("giver", emits=[ARTIFACTS])
        room.publish("reader", listens=["found.it"])
        room.join("alice", "bob")
        room.ticket("First")

    def thing(self) -> Thing:
        """What a name or number of nobody looks like."""
        scope = self.room.scope
        return Thing(
            agent=f"{scope}:nobody", person=f"{scope}:nobody-else", ticket=NOTHING, message=2**40, proposal=2**40, artifact="no.pdf"
        )

    @cached_property
    def chat(self) -> Holder:
        """A run in a chat that works on the first ticket."""
        self.room.say("@alice do #1")
        return self.room.take()

    def _mode(self, mode: str) -> Holder:
        space = self.room.open_space(mode, mode)
        self.room.boss.post(f"{space}/messages", {"body": "@alice do #1"})
        return self.room.take()

    @cached_property
    def plan(self) -> Holder:
        """A run that plans."""
        return self._mode("plan")

    @cached_property
    def orchestrate(self) -> Holder:
        """A run that proposes."""
        return self._mode("orchestrate")

    @cached_property
    def contract(self) -> Holder:
        """A run that owes an output."""
        self.room.delegate("alice", expected_output_schema=SCHEMA)
        return self.room.take()

    @cached_property
    def event(self) -> Holder:
        """A run that an event opened."""
        self.room.say("@giver go")
        self.room.take().finish("done", letter="Dear all")
        wait_until(lambda: self.room.runs()[0]["opened_by"] == "event", "the event opens a run")
        return self.room.take()

    def take_all(self) -> None:
        """Take every run, before any call opens further ones."""
        assert len({self.holder(tool).run for tool in OWN}) == 5

    def holder(self, tool: str) -> Holder:
        """A run that has the tool."""
        special = {
            "read_artifact": "event",
            "submit_output": "contract",
            "propose_orchestration": "orchestrate",
            "submit_plan": "plan",
        }
        found: Holder = getattr(self, special.get(tool, "chat"))
        return found

    def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[bool, str]:
        """Whether a call went well, and what it gave."""
        given = json.loads(json.dumps(arguments).replace("OWN:", f"{self.room.scope}:"))
        holder = self.holder(tool)
        if self._way == "mcp":
            return holder.mcp.call(tool, **given)
        answer = holder.call(tool, **given)
        return answer["result"] == "done", str(answer["text"])


@pytest.fixture(params=["http", "mcp"])
def desk(room: Room, request: pytest.FixtureRequest) -> Desk:
    """An area with runs that between them have every tool."""
    return Desk(room, request.param)


def _worded(text: str, thing: Thing) -> str:
    """An answer with what was named taken out, as the caller wrote it."""
    named = [thing.agent, thing.person, thing.artifact, f"#{thing.ticket} ", f"#{thing.ticket}"]
    for name in sorted(named, key=len, reverse=True):
        text = text.replace(name, "THAT ")
    return text.replace("THAT  ", "THAT ")


def test_every_argument_of_every_tool_has_a_row() -> None:
    found = {(name, argument) for name, spec in _specs().items() for argument in spec.schema["properties"]}
    plain = {(name, argument) for name, arguments in PLAIN.items() for argument in arguments}
    rows = {(name, argument) for name, argument, _ in NAMING} | plain
    assert (found - rows, rows - found) == (set(), set())
    assert OWN.keys() == _specs().keys()


def test_what_is_not_yours_and_what_is_not_there_are_one_answer_by_every_tool(running: Hall, desk: Desk) -> None:
    desk.take_all()
    # They come later, so that their messages have higher numbers than any of the caller's.
    others = [_of_others(running.room(), SECRET, 12), _of_others(running.room("globex"), SECRET, 13), desk.thing()]
    wrong = []
    before = running.rows(*MAKING)
    made = len(running.rows("runs")["runs"])
    for (tool, argument, what), asked in NAMING.items():
        answers = [desk.call(tool, asked(thing)) for thing in others]
        words = {_worded(told, thing) for (_, told), thing in zip(answers, others, strict=True)}
        as_wanted = {well for well, _ in answers} == {(tool, argument) in LISTING}
        if len(words) != 1 or not as_wanted or SECRET in "".join(words):
            wrong.append((tool, argument, what, answers))
    assert not wrong, "\n".join(map(repr, wrong))
    assert running.rows(*MAKING) == before
    assert len(running.rows("runs")["runs"]) == made


@pytest.mark.promise("D-7")
def test_every_tool_does_its_work_on_what_is_yours_and_only_those_of_the_page_of_guards_make_work(
    running: Hall, desk: Desk
) -> None:
    page = (Path(ROOT) / "docs" / "guards.md").read_text(encoding="utf-8")
    makes: dict[str, set[str]] = {}
    for tool, made in re.findall(r"^\| `(\w+)` \| tool \| ([^|]*) \|", page, re.MULTILINE):
        makes.setdefault(tool, set()).add("tickets" if "ticket" in made else "runs")
    desk.take_all()
    for tool, arguments in OWN.items():
        assert tool in desk.holder(tool).tools
        before = running.rows("tickets", "runs")
        well, told = desk.call(tool, arguments)
        assert well, (tool, told)
        after = running.rows("tickets", "runs")
        assert {table for table in after if len(after[table]) > len(before[table])} == makes.get(tool, set()), tool
