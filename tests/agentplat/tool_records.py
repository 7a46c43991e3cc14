"""Tools, deliveries and calls for tests of the Gate: real stores, and tools that write down what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Answer, Delivery, carried, resolve
from agentplat.domain.autonomy import Autonomy
from agentplat.domain.chains import Judgement, Listener, OpenedBy, OutcomeKind, after, judge, position_of
from agentplat.domain.errors import RunWaits
from agentplat.domain.labels import Labels, label_of
from agentplat.domain.registry import Content, Emission
from agentplat.domain.runs import NewRun, Run
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Body, GateRuling, ResultKind, ToolResult
from agentplat.domain.tools import UNTRUSTED, Asked, Effect, Given, Move, ToolSpec
from agentplat.store.port import Store, Work
from agentplat.usecases.call_tool import CallTool
from agentplat.usecases.finish_run import FinishRun
from agentplat.usecases.judge_call import JudgeCall
from agentplat.usecases.read_artifact import ReadArtifact
from agentplat.usecases.tool import Tool
from typing_extensions import override

from tests.agentplat.records import person
from tests.agentplat.run_records import ALL_DRIVERS, LONG_S, folder_content, stored

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 20}, "count": {"type": "integer"}},
    "required": ["text"],
    "additionalProperties": False,
}


def spec(name: str, effect: Effect | None, **more: Any) -> ToolSpec:
    """What a tool of this name declares."""
    usual: dict[str, Any] = {"description": name, "schema": SCHEMA, "longest_ms": 1_000, "labels": frozenset()}
    return ToolSpec(name=name, effect=effect, **{**usual, **more})


@dataclass(kw_only=True)
class Noting(Tool):
    """A tool that writes down its calls, and answers with their text. into: where its data goes, beside the run's own scope."""

    declared: ToolSpec
    done: list[Mapping[str, Any]] = field(default_factory=list)
    into: str | None = None
    given: Given | None = None

    @property
    @override
    def spec(self) -> ToolSpec:
        return self.declared

    @override
    def fault(self, asked: Asked) -> str | None:
        return None

    @override
    def artifact(self, asked: Asked) -> str | None:
        return None

    @override
    def moves(self, work: Work, asked: Asked) -> tuple[Move, ...]:
        return () if self.into is None else (Move(labels=asked.run.labels, into=self.into),)

    @override
    def __call__(self, asked: Asked) -> Given:
        self.done.append(dict(asked.arguments))
        return self.given or Given(result=ResultKind.DONE, data=str(asked.arguments.get("text")).encode())


def tools() -> dict[str, Noting]:
    """One tool of each effect, one without, and one that brings untrusted data in."""
    found = {
        "look": Noting(declared=spec("look", Effect.READ)),
        "web": Noting(declared=spec("web", Effect.READ, labels=UNTRUSTED)),
        "note": Noting(declared=spec("note", Effect.WRITE)),
        "delete": Noting(declared=spec("delete", Effect.DESTRUCTIVE)),
        "pay": Noting(declared=spec("pay", Effect.FINANCIAL, money_microusd=5_000_000)),
        "vague": Noting(declared=spec("vague", None)),
        "send": Noting(declared=spec("send", Effect.READ), into="globex"),
    }
    return {**found, "absent": found["look"]}


ALL_TOOLS = ("look", "web", "note", "delete", "pay", "vague", "send", "absent")


@dataclass(kw_only=True)
class Shop:
    """Everything that calls in runs need, on one store and one folder."""

    store: Store
    content: ContentStore
    tools: dict[str, Noting]
    autonomy: Autonomy = Autonomy.ACT_FREELY

    @property
    def call(self) -> CallTool:
        """The use case, with the tools as they are now."""
        own = ReadArtifact(store=self.store, content=self.content)
        installed: dict[str, Tool] = {name: tool for name, tool in self.tools.items() if name != "absent"}
        gate = JudgeCall(tools={**installed, own.spec.name: own}, autonomy=lambda _work, _run: self.autonomy)
        return CallTool(store=self.store, content=self.content, gate=gate)

    def publish(
        self, ref: Ref, *, emits: Sequence[Emission] = (), listens: Sequence[str] = (), budget: Mapping[str, Any] | None = None
    ) -> None:
        """Publish a version that may call every tool, past the graph service."""
        with self.store.writing() as work:
            agent = work.registry.hold(ref)
            number = work.registry.last_number(agent) + 1
            manifest = {"spec": {"tools": list(ALL_TOOLS), "budget": budget}}
            digest = f"{number:064d}"
            content = Content(agent=ref, manifest=manifest, digest=digest, emits=tuple(emits), listens=tuple(listens))
            work.registry.add(agent, number, content, person(work), number)

    def open(self, ref: Ref, labels: Labels = frozenset()) -> Run:
        """A run that a person opened and this test holds."""
        return self._hold(self._new(ref, labels=labels, opened_by=OpenedBy.PERSON))

    def _new(self, ref: Ref, labels: Labels = frozenset(), **given: Any) -> Run:
        with self.store.writing() as work:
            agent = work.registry.find(ref)
            assert agent is not None
            assert agent.current is not None
            who = person(work)
            new = NewRun(
                agent=agent,
                number=agent.current,
                driver=ALL_DRIVERS[0],
                on_behalf_of=who,
                labels=label_of(ref.scope) | labels,
                **given,
            )
            run = work.runs.open(new, 1)
        assert run is not None
        return run

    def _hold(self, run: Run) -> Run:
        held = self.lease()
        assert held.id == run.id
        return held

    def lease(self) -> Run:
        """The oldest run that can be leased."""
        with self.store.writing() as work:
            held = work.runs.lease(ALL_DRIVERS, "worker", LONG_S)
        assert held is not None
        return held

    def finish(self, run: Run, artifacts: Mapping[str, str] | None = None, summary: str = "done") -> Run:
        """Finish a held run."""
        answer = Answer(summary=summary, artifacts=artifacts or {})
        return FinishRun(store=self.store, content=self.content)(run, answer)

    def delivery(self, source: Run, event: str) -> Delivery:
        """What a listener of the event is told, as a dispatcher makes it."""
        with self.store.reading() as work:
            version = work.registry.version(work.registry.by_id(source.agent_id), source.number)
            assert version is not None
            emission = next(e for e in version.content.emits if e.event == event)
            return resolve(emission, source.agent.text, source.id, work.artifacts.of_run(source.id))

    def deliver(self, source: Run, event: str, listener: Ref) -> Judgement | Run:
        """Judge a listener as a dispatcher does, and open and hold its run where nothing stops it."""
        found = self.start(source, event, listener)
        return self._hold(found) if isinstance(found, Run) else found

    def start(self, source: Run, event: str, listener: Ref) -> Judgement | Run:
        """Judge a listener as a dispatcher does, and open its run where nothing stops it."""
        delivery = self.delivery(source, event)
        with self.store.reading() as work:
            agent = work.registry.find(listener)
            assert agent is not None
        heard = Listener(agent_id=agent.id, scope=listener.scope, paused=False)
        judged = judge(heard, source.agent_id, None, [carried(delivery)])
        if judged.kind is not OutcomeKind.OPENED:
            return judged
        return self._by_event(source, delivery, listener)

    def force(self, source: Run, delivery: Delivery, listener: Ref) -> Run:
        """Open and hold a listener's run without asking anything, as a broken dispatcher would."""
        return self._hold(self._by_event(source, delivery, listener))

    def _by_event(self, source: Run, delivery: Delivery, listener: Ref) -> Run:
        place = position_of(source)
        assert place is not None
        by_event = {"opened_by": OpenedBy.EVENT, "source_run_id": source.id, "position": after(place, OpenedBy.EVENT)}
        return self._new(listener, delivery=delivery, **by_event)

    def trail(self, run: Run) -> list[Body]:
        """The run's steps."""
        with self.store.reading() as work:
            return [step.read() for step in work.runs.trail(run.id)]

    def ruling(self, run: Run) -> tuple[str, str]:
        """The last ruling of the Gate in the run, and its rule."""
        last = [step for step in self.trail(run) if isinstance(step, GateRuling)][-1]
        return last.ruling.value, last.rule

    def text(self, result: ToolResult) -> str:
        """What a result holds."""
        assert result.content is not None
        return self.content.get(result.content).decode()

    def waits(self, run: Run, call: int, tool: str, arguments: Mapping[str, Any]) -> Run:
        """Make a call after which the run waits; the run as it waits."""
        try:
            self.call(run, call, tool, arguments)
        except RunWaits:
            return stored(self.store, run.id)
        raise AssertionError("the run does not wait")


def shop(store: Store, folder: Path, **given: Any) -> Shop:
    """A shop with all tools."""
    return Shop(store=store, content=folder_content(folder), tools=tools(), **given)


def emission(event: str, *artifacts: str) -> Emission:
    """An event with a contract."""
    return Emission(event=event, context="incident", artifacts=artifacts)


def changed(tool: Noting, **given: Any) -> Noting:
    """The tool with another declaration."""
    return Noting(declared=replace(tool.declared, **given))
