"""A workspace with a space in which agents delegate, on a real store, with the real Gate and the real tool."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from agentplat.domain.access import Person
from agentplat.domain.artifacts import Answer, Delivery
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.chains import OpenedBy, Position, after, position_of
from agentplat.domain.errors import RunWaits
from agentplat.domain.labels import Labels, label_of
from agentplat.domain.modes import Mode
from agentplat.domain.registry import Agent, Content
from agentplat.domain.runs import DriverKind, NewRun, Run, RunState
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Space, Workplace
from agentplat.domain.steps import Closing, GateRuling, ToolResult
from agentplat.domain.tickets import Involved, NewTicket, Party, PartyKind, Ticket, TicketRole
from agentplat.domain.tools import Effect
from agentplat.domain.workspaces import Workspace
from agentplat.store.port import Work
from agentplat.store.sql import SqlStore
from agentplat.usecases.call_tool import CallTool
from agentplat.usecases.delegate_task import DelegateTask
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.hand_over import Resolve, resolvers_of
from agentplat.usecases.judge_call import JudgeCall

from tests.agentplat.records import person
from tests.agentplat.run_records import folder_content
from tests.agentplat.tool_records import Noting, spec
from tests.agentplat.world import ref

SCOPE = "acme/platform"


def named(name: str) -> Ref:
    """An agent of the workspace's scope, or of another one where the name says so."""
    return ref(name) if ":" in name else Ref(SCOPE, name)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What the tests of delegation work with. workspace, space: where everything happens."""

    store: SqlStore
    folder: Path
    workspace: Workspace
    space: Space
    resolve: Resolve = resolvers_of

    def agent(self, name: str, budget: Mapping[str, Any] | None = None, **more: Any) -> Ref:
        """Publish a version that may delegate and make notes."""
        manifest = {"spec": {"tools": ["delegate_task", "note"], "budget": budget, **more}}
        who = named(name)
        with self.store.writing() as work:
            agent = work.registry.hold(who)
            number = work.registry.last_number(agent) + 1
            content = Content(agent=who, manifest=manifest, digest=f"{agent.id:032d}{number:032d}", emits=(), listens=())
            work.registry.add(agent, number, content, self.person(work), number)
        return who

    def agents(self, *names: str) -> None:
        """Publish several agents."""
        for name in names:
            self.agent(name)

    def person(self, work: Work) -> Person:
        """Whoever stands behind the runs."""
        return person(work)

    def found(self, work: Work, name: str) -> Agent:
        """An agent that is there."""
        agent = work.registry.find(named(name))
        assert agent is not None
        return agent

    def ticket(self, assignee: str | None = None, **given: Any) -> Ticket:
        """A ticket that a person made, past every guard."""
        with self.store.writing() as work:
            made_by = None if "made_in_run_id" in given else self.person(work).id
            new = NewTicket(workspace_id=self.workspace.id, title="to do", description="all of it", made_by_id=made_by, **given)
            ticket = work.tickets.make(new, 1)
            if assignee is not None:
                agent = self.found(work, assignee)
                party = Party(kind=PartyKind.AGENT, id=agent.id, ref=agent.ref)
                work.tickets.involve(ticket, Involved(role=TicketRole.ASSIGNEE, party=party))
        return ticket

    def run(
        self,
        name: str,
        ticket: Ticket | None = None,
        source: Run | None = None,
        opened_by: OpenedBy = OpenedBy.PERSON,
        labels: Labels = frozenset(),
    ) -> Run:
        """A held run in the space, opened as these would open it, past every guard."""
        with self.store.writing() as work:
            agent = self.found(work, name)
            assert agent.current is not None
            place = None if source is None else position_of(source)
            position: Position | None = None if place is None else after(place, opened_by)
            opened = work.runs.open(
                NewRun(
                    agent=agent,
                    number=agent.current,
                    driver=DriverKind.SCRIPTED,
                    opened_by=opened_by,
                    on_behalf_of=self.person(work),
                    labels=label_of(agent.ref.scope) | labels,
                    source_run_id=None if source is None else source.id,
                    position=position,
                    delivery=_delivery(source) if opened_by is OpenedBy.EVENT else None,
                ),
                1,
            )
            assert opened is not None
            place_id = None if ticket is None else ticket.id
            where = Workplace(workspace_id=self.workspace.id, space_id=self.space.id, mode=Mode.CHAT, ticket_id=place_id)
            work.spaces.place(opened.id, where)
        return self.hold(opened.id)

    def hold(self, run_id: int) -> Run:
        """Hold a queued run, whatever else is queued."""
        with self.store._engine.begin() as connection:
            held = "UPDATE runs SET state = 'running', owner = 'test', lease_until = :end, attempts = 1 WHERE id = :run"
            connection.execute(sa.text(held), {"run": run_id, "end": 2**60})
        return self.now(run_id)

    def now(self, run_id: int) -> Run:
        """A run as it stands."""
        with self.store.reading() as work:
            run = work.runs.find(run_id)
        assert run is not None
        return run

    @property
    def call(self) -> CallTool:
        """The use case, with the tool and one that only makes notes."""
        content = folder_content(self.folder)
        own = DelegateTask(content=content, resolve=self.resolve)
        note = Noting(declared=spec("note", effect=Effect.WRITE, free_from=Autonomy.PROPOSE_ONLY))
        return CallTool(store=self.store, content=content, gate=JudgeCall(tools={tool.spec.name: tool for tool in (own, note)}))

    def delegate(self, run: Run, to: str, **arguments: Any) -> tuple[ToolResult, dict[str, Any]]:
        """Delegate from a held run; what came of it, and what the tool told."""
        now = self.now(run.id)
        with self.store.reading() as work:
            number = sum(1 for step in work.runs.trail(run.id) if step.kind.value == "tool_call") + 1
        given = {"agent": to, "title": f"part {number}", "description": "do it", **arguments}
        _, result = self.call(now, number, "delegate_task", given)
        told = {} if result.content is None else json.loads(folder_content(self.folder).get(result.content))
        return result, told

    def refused(self, run: Run, to: str, **arguments: Any) -> str:
        """The reason word for word of a delegation that must be refused."""
        result, _ = self.delegate(run, to, **arguments)
        assert result.result.value == "refused", result
        assert result.reason is not None
        return result.reason

    def handed(self, run: Run, to: str, **arguments: Any) -> Run:
        """The held run of a delegation that must be let through."""
        result, told = self.delegate(run, to, **arguments)
        assert result.result.value == "done", result.reason
        return self.hold(told["run"])

    def note(self, run: Run, call: int) -> GateRuling:
        """Call the other tool; what the Gate says. A run that waits at a ceiling waits from then on."""
        with contextlib.suppress(RunWaits):
            self.call(self.now(run.id), call, "note", {"text": f"{call}"})
        with self.store.reading() as work:
            found = [step.read() for step in work.runs.trail(run.id)]
        rulings = [body for body in found if isinstance(body, GateRuling) and body.call == call]
        return rulings[-1]

    def finish(self, run: Run) -> Run:
        """Finish a held run."""
        return FinishRun(store=self.store, content=folder_content(self.folder))(self.now(run.id), Answer(summary="done"))

    def end(self, run: Run, state: RunState) -> Run:
        """End a run in any way."""
        with self.store.writing() as work:
            return work.runs.close(self.now(run.id), Closing(state=state), 2)

    def level(self, name: str, level: Autonomy) -> None:
        """Set the autonomy of an agent in the space."""
        with self.store.writing() as work:
            work.spaces.set_autonomy(self.space, self.found(work, name), level, self.person(work), 1)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table."""
        with self.store._engine.connect() as connection:
            found = connection.execute(sa.text(f"SELECT * FROM {table}")).mappings().all()
        return sorted((dict(row) for row in found), key=repr)

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """The whole database, by table."""
        with self.store._engine.connect() as connection:
            tables = sa.inspect(connection).get_table_names()
        return {table: self.rows(table) for table in sorted(tables)}

    def budget(self, holder: str, key: str, unit: str = "tool_calls") -> dict[str, Any]:
        """One budget's row."""
        [row] = [row for row in self.rows("budgets") if (row["holder"], row["key"], row["unit"]) == (holder, key, unit)]
        return row

    def of_run(self, run: Run, unit: str = "tool_calls") -> dict[str, Any]:
        """A run's own budget."""
        return self.budget("run", str(run.id), unit)

    def of_agent(self, name: str, unit: str = "tool_calls") -> dict[str, Any]:
        """An agent's budget."""
        with self.store.reading() as work:
            return self.budget("agent", str(self.found(work, name).id), unit)


def _delivery(source: Run | None) -> Delivery:
    assert source is not None
    return Delivery(event="found", source_agent=source.agent.text, source_run=source.id, artifacts=())


def desk(store: SqlStore, folder: Path, scope: str = SCOPE) -> Desk:
    """A desk in a new workspace of this scope."""
    with store.writing() as work:
        workspace = work.workspaces.add(scope, "checkout", person(work), 1)
        assert workspace is not None
        space = work.spaces.add(workspace.id, "triage", Mode.CHAT, person(work), 1)
        assert space is not None
    return Desk(store=store, folder=folder, workspace=workspace, space=space)
