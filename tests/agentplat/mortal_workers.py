"""Workers that are killed at chosen moments: ``python -m tests.agentplat.mortal_workers URL FOLDER PLAN``.

PLAN is JSON: for each run a list of moments. The run's first worker is killed at the first moment, the one that takes the run over
at the second, and so on; the last one lives. Each worker is a process of its own, forked before anything is opened, and its end is
SIGKILL. Moments are counted from 1: before and after each commit, after bytes were kept, before and after each tool's effect.
Answers one JSON value: for each run its id, where its workers died, and how many moments the last one lived through.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from agentplat.content.folder import FolderContent
from agentplat.content.port import ContentStore
from agentplat.domain.access import Access
from agentplat.domain.artifacts import Blob
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.steps import ResultKind
from agentplat.domain.tickets import NewTicket
from agentplat.domain.tools import Asked, Effect, Given, Move, ToolSpec
from agentplat.drivers.scripted import ScriptedDriver
from agentplat.store.port import Store, Work
from agentplat.store.sql import open_store
from agentplat.usecases.catalogue import Acting, build_acting
from agentplat.usecases.open_run import OpenRun
from agentplat.usecases.tool import AnyTool, Tool, WorkTool
from agentplat.worker import Worker
from typing_extensions import override

from tests.agentplat.run_records import DEVELOPER, LONG_S, execute, stored
from tests.agentplat.world import wait_until

LOOK, PAY, KEEP, GONE = "look", "pay", "keep", "gone"


@dataclass
class Fate:
    """dies_at: the moment at which this process ends; 0 for never. told: where it says so."""

    dies_at: int
    told: int
    lived: int = 0

    def pass_by(self, moment: str) -> None:
        """Live through a moment, or not."""
        self.lived += 1
        if self.lived == self.dies_at:
            os.write(self.told, moment.encode())
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(Store):
    """A store on which each transaction that writes has two moments."""

    def __init__(self, inner: Store, fate: Fate) -> None:
        self._inner, self._fate = inner, fate
        self.reading, self.check, self.close = inner.reading, inner.check, inner.close

    @contextmanager
    def writing(self) -> Iterator[Work]:
        with self._inner.writing() as work:
            yield work
            self._fate.pass_by("before commit")
        self._fate.pass_by("after commit")


@dataclass(frozen=True)
class MortalContent(ContentStore):
    """A content store with a moment after bytes were kept."""

    inner: ContentStore
    fate: Fate

    def put(self, data: bytes) -> Blob:
        blob = self.inner.put(data)
        self.fate.pass_by("bytes kept")
        return blob

    def get(self, blob: Blob) -> bytes:
        return self.inner.get(blob)

    def erase(self, blob: Blob) -> None:
        self.inner.erase(blob)


@dataclass(frozen=True)
class _Declared:
    """What the tools here have in common."""

    name: str
    effect: Effect
    fate: Fate

    @property
    def spec(self) -> ToolSpec:
        """What the tool declares."""
        # Nothing in it is a reason to ask a person: what happens to calls that are let through is what this is about.
        return ToolSpec(
            name=self.name,
            description=self.name,
            schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            effect=self.effect,
            longest_ms=1_000,
            labels=frozenset(),
        )

    def fault(self, _asked: Asked) -> str | None:
        """Nothing is wrong with any arguments."""

    def artifact(self, _asked: Asked) -> str | None:
        """No artifact is read."""

    def moves(self, _work: Work, _asked: Asked) -> tuple[Move, ...]:
        """No data moves."""
        return ()


@dataclass(frozen=True)
class TallyTool(_Declared, Tool):
    """A tool whose effect is a line in a file."""

    tally: Path

    @override
    def __call__(self, asked: Asked) -> Given:
        self.fate.pass_by(f"before {self.name}")
        n = asked.arguments["n"]
        with self.tally.open("a", encoding="utf-8") as out:
            out.write(f"{asked.run.id} {self.name} {n}\n")
        self.fate.pass_by(f"after {self.name}")
        return Given(result=ResultKind.DONE, data=f"{self.name} gave {n}".encode())


@dataclass(frozen=True)
class TicketTool(_Declared, WorkTool):
    """A tool whose effect is a ticket."""

    @override
    def within(self, work: Work, asked: Asked) -> Given:
        new = NewTicket(workspace_id=1, title=f"ticket {asked.arguments['n']}", description="", made_in_run_id=asked.run.id)
        made = work.tickets.make(new, 1)
        self.fate.pass_by(f"in {self.name}")
        return Given(result=ResultKind.DONE, data=made.title.encode())


def tally_tools(folder: Path, fate: Fate | None = None) -> dict[str, AnyTool]:
    """A tool that reads, one that pays, and one that makes a ticket."""
    tally, fate = folder / "tally", fate or Fate(0, -1)
    return {
        LOOK: TallyTool(LOOK, Effect.READ, fate, tally),
        PAY: TallyTool(PAY, Effect.WRITE, fate, tally),
        KEEP: TicketTool(KEEP, Effect.WRITE, fate),
    }


def acting(store: Store, content: ContentStore, tools: Mapping[str, AnyTool], lease_s: float = LONG_S) -> Acting:
    """The use cases of a worker with these tools."""
    made = build_acting(store, content, lease_s, tools.values())
    # The tools write, and no person stands by to approve each call.
    gate = replace(made.act.tools.gate, autonomy=lambda _work, _run: Autonomy.ACT_FREELY)
    return replace(made, act=replace(made.act, tools=replace(made.act.tools, gate=gate)))


def _open(url: str, folder: Path) -> int:
    store = open_store(url)
    try:
        with store.reading() as work:
            agent = work.registry.find(DEVELOPER)
            assert agent is not None
            [person] = work.people.page(["*"], None, 1)
            access = Access(person, work.people.grants(person))
        return OpenRun(store=store, content=FolderContent(folder / "content"))(access, DEVELOPER).id
    finally:
        store.close()


def _live(url: str, folder: Path, run_id: int, fate: Fate) -> None:
    """Carry the run to its end, if fate lets us."""
    store = MortalStore(open_store(url), fate)
    content = MortalContent(FolderContent(folder / "content"), fate)
    worker = Worker(acting(store, content, tally_tools(folder, fate)), [ScriptedDriver()], 0.01)
    worker.start()
    wait_until(lambda: stored(store, run_id).ended, "the run ends")
    assert worker.stop(60)
    store.close()
    os.write(fate.told, str(fate.lived).encode())


def _one_life(url: str, folder: Path, run_id: int, dies_at: int) -> str:
    """What a worker told last: the moment of its death, or how many it lived through."""
    output, told = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _live(url, folder, run_id, Fate(dies_at, told))
            status = 0
        finally:
            os._exit(status)
    os.close(told)
    with os.fdopen(output, encoding="utf-8") as lines:
        last = lines.read()
    _, status = os.waitpid(child, 0)
    expected = -signal.SIGKILL if dies_at else 0
    code = os.waitstatus_to_exitcode(status)
    assert code == expected, f"run {run_id}, moment {dies_at}: {code}, {last}"
    # Nobody gives a sign of life any more: the lease has run out as soon as its end has come.
    execute(url, f"UPDATE runs SET lease_until = 0 WHERE id = {run_id}")
    return last


def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    url, folder, plan = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    found = []
    for moments in plan:
        run_id = _open(url, folder)
        died = [_one_life(url, folder, run_id, moment) for moment in moments]
        found.append({"run": run_id, "died": died, "lived": int(_one_life(url, folder, run_id, 0))})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
