"""Following what agents do: the space, the ticket, the roster and the run log, as people see them in a running platform (W-11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

import httpx
import pytest

from tests.acceptance.together.hall import Caller, Hall, Room
from tests.agentplat.chat_server import calls_tool
from tests.agentplat.world import PATIENCE_S, wait_until
from tests.browser.visits import seal_on

pytestmark = pytest.mark.promise("W-11")


class Pages:
    """The pages of the studio for somebody who has signed in with a token."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def text(self, where: str) -> str:
        """The text of a page, without its marks."""
        answer = self._client.get(where)
        assert answer.status_code == 200, (where, answer.status_code)
        return _plain(answer.text)

    def row(self, where: str, begins: str) -> str:
        """The one row of the tables of a page that begins so."""
        rows = re.findall(r"<tr>(.*?)</tr>", self._client.get(where).text, re.DOTALL)
        [found] = [row for row in map(_plain, rows) if row.split(" ")[0] == begins]
        return found

    def activity(self, room: Room) -> str:
        """What is done in a space just now, as its open page asks for it."""
        return _plain(self._client.get(f"{_page(room.space)}/news").json()["activity"])

    def status(self, where: str) -> int:
        """The status of the answer."""
        return self._client.get(where).status_code


def _plain(marked: str) -> str:
    # The two halves of an agent's name are marks of their own.
    whole = re.sub(r"</?(bdi|b)>|(?<=:)</span>", "", marked)
    return " ".join(re.sub("[\u2066-\u2069]", "", unescape(re.sub(r"<[^>]*>", " ", whole))).split())


def _page(path: str) -> str:
    """The page of what has this path in the API."""
    return path.removeprefix("/v1")


@contextmanager
def signed_in(who: Caller) -> Iterator[Pages]:
    """The pages for somebody."""
    with httpx.Client(base_url=who.client.base_url, headers={"Accept-Language": "en"}, timeout=PATIENCE_S) as client:
        form = {"seal": seal_on(client.get("/sign-in").text), "token": who.secret, "next": "/"}
        assert client.post("/sign-in", data=form).headers["location"] == "/"
        yield Pages(client)


def test_the_space_shows_what_is_done_while_it_is_done_and_what_it_came_to(room: Room) -> None:
    with signed_in(room.boss) as pages:
        assert pages.activity(room) == "Nobody works here just now."
        said = room.say("@alice look into it")
        alice = room.take()
        assert alice.call("post_message", text="half of it")["result"] == "done"
        assert [(one["kind"], one["run"], one["body"]) for one in room.messages(said["id"])] == [
            ("progress", alice.run, "half of it")
        ]
        [run] = room.boss.get(room.space)["runs"]
        assert (run["run"], run["agent"], run["state"]) == (alice.run, room.agent("alice"), "running")
        first = pages.activity(room)
        assert first.startswith(f"running {room.agent('alice')} · run {alice.run} · ")
        assert alice.call("read_space")["result"] == "done"
        assert pages.activity(room) != first
        assert "half of it" in pages.text(_page(room.space))
        alice.finish("all of it")
        assert [(one["kind"], one["body"]) for one in room.messages(said["id"])] == [
            ("progress", "half of it"),
            ("result", "all of it"),
        ]
        assert [one["state"] for one in room.boss.get(room.space)["runs"]] == ["finished"]
        assert pages.activity(room) == "Nobody works here just now."
        assert "all of it" in pages.text(_page(room.space))


def test_the_ticket_shows_the_status_that_somebody_gave_it_and_no_run_gives_it_one(room: Room) -> None:
    number = room.ticket("Mend the build")
    ticket = f"{room.workspace}/tickets/{number}"

    def seen() -> str:
        status = str(room.boss.get(ticket)["status"])
        assert f"#{number} Mend the build {status.replace('_', ' ')} " in pages.text(_page(ticket)).lower().replace("mend", "Mend")
        return status

    with signed_in(room.boss) as pages:
        room.say(f"@alice mend #{number}")
        assert seen() == "open"
        alice = room.take()
        assert seen() == "open"
        assert alice.call("move_ticket", ticket=number, status="in_progress", version=1)["result"] == "done"
        assert seen() == "in_progress"
        alice.finish("mended")
        assert seen() == "in_progress"
        room.boss.ask("PATCH", ticket, {"version": 2, "status": "done"})
        assert seen() == "done"
        assert [change["run"] for change in room.boss.get(ticket)["changes"]] == [alice.run, None]


def test_the_roster_shows_who_works_who_waits_and_who_is_idle_in_the_workspace_alone(running: Hall, room: Room) -> None:
    other = running.room()
    other.publish("carl")
    live = f"{_page(room.workspace)}/observability"
    alice, bob = room.agent("alice"), room.agent("bob")
    with signed_in(room.boss) as pages:
        assert [pages.row(live, name).split(" ")[1] for name in (alice, bob)] == ["idle", "idle"]
        room.say("@alice go")
        assert f"waiting run {room.runs()[0]['run']} queued" in pages.row(live, alice)
        program = room.take()
        assert f"working run {program.run} running" in pages.row(live, alice)
        assert "idle" in pages.row(live, bob)
        room.boss.post(f"/v1/agents/{bob.replace('/', '%2F')}/pause")
        assert "idle paused" in pages.row(live, bob)
        program.finish()
        assert "idle" in pages.row(live, alice)
        assert f"run {program.run}" not in pages.text(live)
        assert other.agent("carl") not in pages.text(live)
    with signed_in(other.boss) as others:
        missing = _page(room.workspace).replace(str(room.workspace_id), str(2**40))
        wanted = [f"{place}/observability{more}" for place in (_page(room.workspace), missing) for more in ("", "/insights")]
        assert [others.status(where) for where in wanted] == [404] * 4


def test_the_run_log_shows_what_each_run_cost_and_how_long_it_took(running: Hall, room: Room) -> None:
    room.publish("fixer", driver={"kind": "model", "model": "openai-chat:gpt-4o"})
    running.model_says(calls_tool("read_space", {}), calls_tool("finish", {"summary": "Mended."}))
    room.say("@fixer mend it")
    wait_until(lambda: room.runs()[0]["state"] == "finished", "the model's run ends")
    room.say("@alice go")
    log = f"{_page(room.workspace)}/observability/insights"
    alice = room.take()
    _, by_model = room.runs()
    took = r"\d[\d.,]* (ms|s)|\d+ min \d+ s"
    with signed_in(room.boss) as pages:
        done = pages.row(log, str(by_model["run"]))
        assert f"{room.agent('fixer')} finished 0" in done
        # Two turns of 16 tokens, one call, and what that model asks for it.
        assert re.search(rf"({took}) US\$0\.\d+ · ({took}) · 32 tokens · 1 tool call$", done), done
        under_way = pages.row(log, str(alice.run))
        assert under_way.endswith("– –"), under_way
        assert f"{room.agent('alice')} running 0" in under_way
        alice.call("read_space")
        assert "– " in pages.row(log, str(alice.run))
        assert "1 tool call" in pages.row(log, str(alice.run))
        alice.finish()
        assert re.search(rf" ({took}) .*1 tool call$", pages.row(log, str(alice.run)))
        totals = pages.row(log, "last")
        assert totals.startswith("last 7 days 2 ")
        assert "32 tokens" in totals
