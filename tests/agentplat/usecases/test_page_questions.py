"""What the pages of Studio ask the database: as often for much as for little, and never for all that ever ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from agentplat.content.folder import FolderContent
from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.budgets import Unit, agent_holder
from agentplat.domain.insights import RunFilter
from agentplat.domain.modes import Mode
from agentplat.domain.runs import Run, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.spaces import Workplace
from agentplat.domain.steps import Waiting
from agentplat.domain.tickets import Author, MessageKind, NewTicket
from agentplat.store.sql import SqlStore, open_store
from agentplat.usecases.converse import Converse
from agentplat.usecases.manage_spaces import ManageSpaces
from agentplat.usecases.manage_tickets import ManageTickets
from agentplat.usecases.monitor_runs import MonitorRuns
from agentplat.usecases.read_inbox import ReadInbox

from tests.agentplat.records import person
from tests.agentplat.run_records import opened

EVERYTHING = Access(None, frozenset({Grant(Role.ADMIN, "*")}))
SCOPE, OTHER = "acme/platform", "acme/finance"


@contextmanager
def _asked(store: SqlStore) -> Iterator[list[tuple[str, Any]]]:
    """The statements of the block with their values."""
    found: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        found.append((statement, values))

    sa.event.listen(store._engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        sa.event.remove(store._engine, "before_cursor_execute", note)


def _count(store: SqlStore, read: Callable[[], object]) -> int:
    with _asked(store) as statements:
        read()
    return len(statements)


def _stopped(store: SqlStore, number: int) -> Run:
    """A run of an agent of its own that waits at that agent's ceiling."""
    ref = Ref(SCOPE if number % 2 else OTHER, f"spender-{number}")
    run = opened(store, ref)
    with store.writing() as work:
        holder = agent_holder(run.agent_id, ref)
        work.budgets.set_ceiling(holder, Unit.TOOL_CALLS, number)
        waiting = Waiting(waiting_for=WaitingFor.BUDGET, ceiling=f"tool calls of {ref.text}")
        return work.runs.wait(run, waiting, 2)


@pytest.mark.promise("U-3")
def test_the_inbox_asks_as_often_for_many_stopped_runs_as_for_one_and_tells_each_its_ceiling(store: SqlStore) -> None:
    inbox = ReadInbox(store=store)
    first = _stopped(store, 1)
    one = _count(store, lambda: inbox(EVERYTHING))
    others = [_stopped(store, number) for number in range(2, 8)]
    found = inbox(EVERYTHING).stopped
    assert [(stop.logged.run.id, stop.budget.ceiling) for stop in found] == [
        (run.id, number) for number, run in enumerate((first, *others), start=1)
    ]
    assert {stop.budget.holder.name for stop in found} == {run.agent.text for run in (first, *others)}
    assert _count(store, lambda: inbox(EVERYTHING)) == one


@pytest.mark.promise("U-3")
def test_a_space_and_a_ticket_ask_as_often_for_many_runs_and_references_as_for_one(store: SqlStore, tmp_path: Path) -> None:
    with store.writing() as work:
        who = person(work)
        workspace = work.workspaces.add(SCOPE, "Work", who, 1)
        assert workspace is not None
        space = work.spaces.add(workspace.id, "Talk", Mode.CHAT, who, 2)
        assert space is not None
    made: list[int] = []

    def more() -> None:
        run = opened(store, Ref(SCOPE, "helper"))
        with store.writing() as work:
            ticket = work.tickets.make(NewTicket(workspace_id=workspace.id, title="Mend it", description="", made_by_id=who.id), 3)
            made.append(ticket.id)
            work.spaces.say(space, MessageKind.SAID, Author(person_id=who.id), "See", 4, made)
            place = Workplace(workspace_id=workspace.id, space_id=space.id, mode=Mode.CHAT, ticket_id=made[0])
            work.spaces.place(run.id, place)

    converse = Converse(store=store, content=FolderContent(tmp_path))
    pages: tuple[Callable[[], object], ...] = (
        lambda: converse.messages(EVERYTHING, workspace.id, space.id, 0, 50),
        lambda: converse.before_newest(EVERYTHING, workspace.id, space.id, 50),
        lambda: ManageSpaces(store=store, trees=None).one(EVERYTHING, workspace.id, space.id),
        lambda: ManageTickets(store=store).one(EVERYTHING, workspace.id, 1),
    )
    more()
    few = [_count(store, page) for page in pages]
    for _ in range(6):
        more()
    assert [_count(store, page) for page in pages] == few
    said = converse.messages(EVERYTHING, workspace.id, space.id, 0, 50)
    assert [message.tickets for message in said] == [tuple(range(1, size + 1)) for size in range(1, 8)]
    begin = converse.before_newest(EVERYTHING, workspace.id, space.id, 3)
    assert [message.id for message in said if message.id > begin] == [message.id for message in said[-3:]]
    assert converse.before_newest(EVERYTHING, workspace.id, space.id, 7) == 0
    runs = ManageSpaces(store=store, trees=None).one(EVERYTHING, workspace.id, space.id).runs
    assert [run.id for run in runs] == sorted((run.id for run in runs), reverse=True)
    assert len(runs) == 7


@pytest.mark.promise("U-3")
def test_no_page_looks_through_all_runs(sqlite_url: str, tmp_path: Path) -> None:
    with closing(open_store(sqlite_url)) as store:
        _stopped(store, 1)
        monitor, converse = MonitorRuns(store=store), Converse(store=store, content=FolderContent(tmp_path))
        with store.writing() as work:
            workspace = work.workspaces.add(SCOPE, "Work", person(work), 1)
            assert workspace is not None
            space = work.spaces.add(workspace.id, "Talk", Mode.CHAT, person(work), 2)
            assert space is not None
            work.spaces.say(space, MessageKind.SAID, Author(person_id=person(work).id), "Hello", 4)
        with _asked(store) as statements:
            monitor.roster(EVERYTHING, None)
            monitor.roster(EVERYTHING, "acme")
            for scope in ("*", SCOPE):
                period = RunFilter(scopes=(scope,), since=0, until=10)
                monitor.log(EVERYTHING, period, None, 50)
                monitor.log(EVERYTHING, period, 1, 50)
                monitor.totals(EVERYTHING, period)
            ReadInbox(store=store)(EVERYTHING)
            converse.messages(EVERYTHING, workspace.id, space.id, 0, 50)
        read = [(statement, values) for statement, values in statements if " runs" in statement]
        assert len(read) > 10
        with store._engine.connect() as connection:
            plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", values).all() for asked, values in read]
    steps = [row[3] for plan in plans for row in plan]
    assert [step for step in steps if step == "SCAN runs" or step.startswith("MATERIALIZE")] == []
    # What looks through an index from its end does so for as many runs as are shown.
    assert {step for step in steps if step.startswith("SCAN runs")} <= {
        "SCAN runs USING INDEX ix_runs_leasable",
        "SCAN runs USING INDEX ix_runs_waiting",
    }
