"""One running platform, and rooms in it that have nothing to do with one another: each test works in an area of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa
from agentplat.store.engine import open_engine

from tests.agentplat.chat_server import chat_server
from tests.agentplat.http import path
from tests.agentplat.mcp_programs import Program as McpProgram
from tests.agentplat.processes import Server, up
from tests.agentplat.world import PATIENCE_S, manifest, manifests, wait_until

EVERY_ROLE = ("author", "admin", "viewer", "approver", "auditor")


class Caller:
    """Somebody, or something, with a token. client: of the server, shared by all. secret: the token."""

    def __init__(self, client: httpx.Client, secret: str) -> None:
        self.client, self.secret = client, secret

    def send(self, method: str, where: str, body: Any = None) -> httpx.Response:
        """A request, whatever it is answered."""
        return self.client.request(method, where, json=body, headers={"Authorization": f"Bearer {self.secret}"})

    def ask(self, method: str, where: str, body: Any = None, status: int | None = None) -> Any:
        """What a request is answered. status: which it must be, any success where it is left out."""
        answer = self.send(method, where, body)
        assert answer.is_success if status is None else answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def get(self, where: str, status: int | None = None) -> Any:
        """GET something."""
        return self.ask("GET", where, None, status)

    def post(self, where: str, body: Any = None, status: int | None = None) -> Any:
        """POST something."""
        return self.ask("POST", where, body, status)

    def put(self, where: str, body: Any = None, status: int | None = None) -> Any:
        """PUT something."""
        return self.ask("PUT", where, body, status)


class Holder(Caller):
    """A program that holds a run: over HTTP with `call`, over MCP with `mcp`, and a run keeps to one way. task: what it got."""

    def __init__(self, client: httpx.Client, task: Mapping[str, Any]) -> None:
        super().__init__(client, task["token"])
        self.task, self.run, self.mcp = task, int(task["run"]), McpProgram(str(client.base_url), task["token"])
        self._calls = count(1)

    @property
    def tools(self) -> set[str]:
        """The names of the tools that the run has."""
        return {tool["name"] for tool in self.get("/v1/external/run/tools")["tools"]}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make the next call; the result as the program gets it."""
        found: dict[str, Any] = self.post(
            "/v1/external/run/calls", {"call": next(self._calls), "tool": tool, "arguments": arguments}
        )
        return found

    def finish(self, summary: str = "done", **artifacts: str) -> None:
        """Finish the run."""
        self.post("/v1/external/run/finish", {"summary": summary, "artifacts": artifacts})


@dataclass(kw_only=True)
class Room:
    """An area with agents, a workspace and a space. boss: may do everything there, and nothing anywhere else."""

    hall: Hall
    scope: str
    boss: Caller
    workspace: str = ""
    space: str = ""

    @property
    def workspace_id(self) -> int:
        """The number of the workspace."""
        return int(self.workspace.rpartition("/")[2])

    @property
    def space_id(self) -> int:
        """The number of the space."""
        return int(self.space.rpartition("/")[2])

    def agent(self, name: str) -> str:
        """The whole reference of an agent of the area."""
        return f"{self.scope}:{name}"

    def publish(self, *names: str, **spec: Any) -> None:
        """Publish agents that all have this specification; programs drive them unless it says otherwise."""
        whole = {"driver": {"kind": "external"}, **spec}
        self.hall.publish(self.boss, *(manifest(self.agent(name), **whole) for name in names))

    def open_space(self, name: str, mode: str = "chat") -> str:
        """A new space of the workspace; its path."""
        made = self.boss.post(f"{self.workspace}/spaces", {"name": name, "mode": mode})
        return f"{self.workspace}/spaces/{made['id']}"

    def join(self, *names: str) -> None:
        """Let agents take part in the space."""
        for name in names:
            self.boss.put(f"{self.space}/participants{path(self.agent(name))}")

    def say(self, text: str) -> Any:
        """Say something in the space."""
        return self.boss.post(f"{self.space}/messages", {"body": text})

    def messages(self, after: int = 0) -> list[dict[str, Any]]:
        """What was said in the space."""
        found: list[dict[str, Any]] = self.boss.get(f"{self.space}/messages?after={after}")["messages"]
        return found

    def ticket(self, title: str, description: str = "") -> int:
        """A new ticket; its number."""
        return int(self.boss.post(f"{self.workspace}/tickets", {"title": title, "description": description})["number"])

    def delegate(self, name: str, **more: Any) -> dict[str, Any]:
        """Delegate as a person."""
        given = {"space_id": self.space_id, "agent": name, "title": f"for {name}", "description": "do it", **more}
        found: dict[str, Any] = self.boss.post(f"{self.workspace}/tickets:delegate", given)
        return found

    def take(self) -> Holder:
        """Take the oldest run of the area that waits for a program."""
        return Holder(self.boss.client, self.boss.post("/v1/external:lease", status=200))

    def runs(self) -> list[dict[str, Any]]:
        """All runs of the area, newest first."""
        found: list[dict[str, Any]] = self.boss.get("/v1/runs?page_size=1000")["runs"]
        return found


@dataclass(kw_only=True)
class Hall:
    """The platform. root: may do everything. models: the server of the language model."""

    server: Server
    database: str
    root: Caller
    models: Any
    _named: Iterator[int] = field(default_factory=lambda: count(1))

    def publish(self, who: Caller, *texts: str) -> None:
        """Publish manifests."""
        who.post("/v1/agents:publish", {"manifest": manifests(*texts)})

    def person(self, name: str, *grants: str) -> Caller:
        """Somebody new with grants such as author=acme/one."""
        self.root.post("/v1/people", {"person": name})
        for grant in grants:
            role, _, scope = grant.partition("=")
            self.root.put(path("v1", "people", name, "grants", role, scope))
        return Caller(self.root.client, self.root.post(path("v1", "people", name, "tokens"), {"name": "test"})["token"])

    def room(self, company: str = "acme", mode: str = "chat") -> Room:
        """A new area of a company with a workspace and a space."""
        scope = f"{company}/area{next(self._named)}"
        boss = self.person(f"{scope}:boss", *(f"{role}={scope}" for role in EVERY_ROLE))
        room = Room(hall=self, scope=scope, boss=boss)
        room.workspace = f"/v1/workspaces/{boss.post('/v1/workspaces', {'scope': scope, 'name': 'Work'})['id']}"
        room.space = room.open_space("Talk", mode)
        return room

    def model_says(self, *says: dict[str, Any]) -> None:
        """What the model answers from now on, one after the other."""
        with self.models.lock:
            self.models.asked.clear()
            self.models.says = [(200, said) for said in says]

    def settle(self) -> None:
        """Wait until every finished run and every published version is dealt with: the platform then writes nothing by itself."""
        wait_until(lambda: bool(self.root.get("/v1/dispatch/reconciliation")["proved"]), "every finished run is handled")
        wait_until(lambda: not any("'waiting'" in row for row in self.rows("outbox")["outbox"]), "every version is delivered")

    def rows(self, *tables: str) -> dict[str, list[str]]:
        """What stands in these tables of the database, in all where none is named."""
        engine = open_engine(self.database)
        try:
            with engine.connect() as connection:
                wanted: Sequence[str] = tables or sa.inspect(connection).get_table_names()
                return {table: sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {table}"))) for table in wanted}
        finally:
            engine.dispose()


@contextmanager
def hall(folder: Path, *arguments: object) -> Iterator[Hall]:
    """`agentplat up` on a data folder below this one, with a model on this machine."""
    with ExitStack() as stack:
        models = stack.enter_context(chat_server())
        keys = {"OPENAI_BASE_URL": f"http://127.0.0.1:{models.server_port}/v1", "OPENAI_API_KEY": "key"}
        often = ("--poll-interval-s", "0.05", "--requests-burst", "100000", "--run-lease-s", "600")
        server = stack.enter_context(up(folder, *often, *arguments, **keys))
        token = Path(server.ready["token_file"]).read_text(encoding="utf-8").strip()
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=PATIENCE_S))
        database = f"sqlite:///{folder / 'data' / 'agentplat.db'}"
        yield Hall(server=server, database=database, root=Caller(client, token), models=models)
