"""Workspaces, spaces and runs in them for tests: a platform in one thread on a real store, without a graph service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.artifacts import Answer
from agentplat.domain.modes import Mode
from agentplat.domain.registry import Agent, Content
from agentplat.domain.runs import DriverKind, Run
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Message, Space
from agentplat.domain.steps import ToolResult
from agentplat.domain.workspaces import Workspace
from agentplat.store.sql import SqlStore
from agentplat.usecases.catalogue import Acting, build_acting
from agentplat.usecases.converse import ShownMessage
from agentplat.usecases.together import Together, build_together
from agentplat.usecases.tool import Tool
from agentplat.worktrees.port import WorkTrees

from tests.agentplat.records import person
from tests.agentplat.run_records import ALL_DRIVERS, LONG_S, folder_content

PLATFORM = "acme/platform"
EVERY_TOOL = ("create_ticket", "move_ticket", "assign_ticket", "look", "note")


@dataclass(kw_only=True)
class Office:
    """People and agents at work in one thread. installed: tools beside the platform's. calls: how many each run made."""

    store: SqlStore
    folder: Path
    trees: WorkTrees | None = None
    installed: tuple[Tool, ...] = ()
    calls: dict[int, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The database's address."""
        return self.store._engine.url.render_as_string(hide_password=False)

    @property
    def content(self) -> ContentStore:
        """The content store."""
        return folder_content(self.folder)

    @property
    def together(self) -> Together:
        """What people do."""
        return build_together(self.store, self.content, self.trees)

    @property
    def acting(self) -> Acting:
        """What runs do."""
        return build_acting(self.store, self.content, LONG_S, self.installed, self.trees)

    def person(self, name: str = "acme:ana", *grants: tuple[Role, str]) -> Access:
        """Somebody with these grants, which are stored, else author and admin of acme."""
        wanted = grants or ((Role.AUTHOR, "acme"), (Role.ADMIN, "acme"))
        scope, _, called = name.partition(":")
        with self.store.writing() as work:
            who = person(work, called, scope)
            for role, where in wanted:
                work.people.grant(who, Grant(role, where))
            return Access(who, work.people.grants(who))

    def agent(self, text: str, tools: Sequence[str] = EVERY_TOOL, driver: DriverKind = DriverKind.SCRIPTED) -> Agent:
        """A published agent that may name these tools."""
        scope, _, name = text.partition(":")
        ref = Ref(scope, name)
        manifest: Mapping[str, Any] = {"spec": {"tools": list(tools), "driver": {"kind": driver.value}}}
        with self.store.writing() as work:
            agent = work.registry.hold(ref)
            number = work.registry.last_number(agent) + 1
            content = Content(agent=ref, manifest=manifest, digest=f"{number:064d}", emits=(), listens=())
            work.registry.add(agent, number, content, person(work), number)
            found = work.registry.find(ref)
        assert found is not None
        return found

    def workspace(self, access: Access, scope: str = PLATFORM, name: str = "Work") -> Workspace:
        """A workspace."""
        return self.together.workspaces.create(access, scope, name)

    def space(self, access: Access, workspace: Workspace, name: str = "Talk", mode: Mode = Mode.CHAT) -> Space:
        """A space."""
        if mode is Mode.REVIEW:
            return self.together.spaces.create_review(access, workspace.id, name)
        return self.together.spaces.create(access, workspace.id, name, mode)

    def say(self, access: Access, space: Space, text: str) -> ShownMessage:
        """Say something in a space."""
        return self.together.converse.post(access, space.workspace_id, space.id, text)

    def opened(self, said: ShownMessage) -> list[int]:
        """The runs that the mentions of a message opened."""
        return [mention.run_id for mention in said.mentions if mention.run_id is not None]

    def lease(self) -> Run:
        """The oldest run that can be leased."""
        run = self.acting.lease(ALL_DRIVERS, "worker")
        assert run is not None
        return run

    def handed(self, access: Access, space: Space, text: str) -> Run:
        """The run that a message opens, held. No other run may wait."""
        [run_id] = self.opened(self.say(access, space, text))
        run = self.lease()
        assert run.id == run_id
        return run

    def call(self, run: Run, tool: str, **arguments: Any) -> tuple[Run, ToolResult]:
        """Make the next call of a held run."""
        self.calls[run.id] = self.calls.get(run.id, 0) + 1
        return self.acting.act.tools(run, self.calls[run.id], tool, arguments)

    def told(self, result: ToolResult) -> Any:
        """What a call gave, as JSON values."""
        assert result.content is not None, result.reason
        return json.loads(self.content.get(result.content))

    def finish(self, run: Run, summary: str = "done") -> Run:
        """Finish a held run."""
        return self.acting.finish(run, Answer(summary=summary, artifacts={}))

    def messages(self, space: Space) -> list[Message]:
        """All that was said."""
        with self.store.reading() as work:
            return work.spaces.messages(space.id, 0, 1_000)

    def all_runs(self) -> list[Run]:
        """Every run there is, oldest first."""
        with self.store.reading() as work:
            return work.runs.page(["*"], None, 10_000)[::-1]
