"""Every text world says the same over every kernel, store and transport."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from pydantic import ValidationError

from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import AgentRef, parse_agent
from graphsvc.domain.report import Report
from graphsvc.store.port import Store
from tests.consistency.ways import PLAINEST, WAYS, Graphs, Way
from tests.consistency.worlds import REFUSALS, Declared, Names, Question, Step, World, names_of, read_world, reader_named, told

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
WORLDS = {path: read_world(path) for path in CASES}
RENAMED = [path for path, world in WORLDS.items() if world.otherwise_named]

FreshStore = Callable[[str], Store]


def _params(paths: Iterable[Path]) -> list[ParameterSet]:
    return [pytest.param(path, id=path.stem, marks=pytest.mark.promise(*WORLDS[path].promise)) for path in paths]


class Run:
    """A world that is being run on a graph."""

    def __init__(self, world: World, graphs: Graphs) -> None:
        """Import the world's agents and take its further steps, each of which must do what it says."""
        self._world, self._graphs = world, graphs
        self._declared = {parse_agent(text): declared for text, declared in world.agents.items()}
        self._numbers: defaultdict[AgentRef, int] = defaultdict(int)
        self.names = _names(world)
        self.reports: list[Report] = []
        versions = [self._version(agent, declared) for agent, declared in self._declared.items()]
        self._numbers.update((version.agent, version.number) for version in versions)
        imported = graphs.import_versions(versions)
        assert (imported.revision, imported.created) == (len(world.agents), len(world.agents))
        for step in world.then:
            if step.refused is None:
                self._take(step)
            else:
                with pytest.raises(REFUSALS[step.refused]):
                    self._take(step)

    def _version(self, agent: AgentRef, declared: Declared) -> AgentVersion:
        number = self._numbers[agent] + 1 if declared.version is None else declared.version
        return AgentVersion(agent, number, declared.declaration())

    def _take(self, step: Step) -> None:
        if step.retire is not None:
            retired = self._graphs.retire(parse_agent(step.retire))
            self._as_said(step, retired.revision, created=retired.created)
            return
        ((text, declared),) = (step.publish or {}).items()
        version = self._version(parse_agent(text), declared)
        published = self._graphs.publish(version, reader_named(step.reader))
        if published.created:
            self._numbers[version.agent], self._declared[version.agent] = version.number, declared
        self._as_said(step, published.revision, created=published.created)
        self.reports.append(published.report)
        if step.expect is not None:
            assert told(published.report, step.expect, self.names) == step.expect

    def _as_said(self, step: Step, revision: int, *, created: bool) -> None:
        assert step.revision in (None, revision)
        assert step.created in (None, created)

    def answers(self, graphs: Graphs) -> list[Report]:
        """The reports on all that the world asks."""
        return [self._answer(graphs, question) for question in self._world.ask]

    def _answer(self, graphs: Graphs, question: Question) -> Report:
        agent = parse_agent(question.check)
        declaration = (question.proposed or self._declared[agent]).declaration()
        reader = reader_named(question.reader)
        return graphs.check(agent, declaration, reader, max_loops=question.max_loops, max_visits=question.max_visits)


def _names(world: World) -> Names:
    published = (text for step in world.then for text in step.publish or ())
    return names_of([*world.agents, *published, *(question.check for question in world.ask)])


def _digests(reports: Iterable[Report]) -> list[str]:
    return [report.digest for report in reports]


def _all_reports(world: World, way: Way, store: Store) -> list[Report]:
    with way.open(store) as graphs:
        run = Run(world, graphs)
        return run.reports + run.answers(graphs)


@pytest.mark.promise("G-11", "G-25")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.text)
@pytest.mark.parametrize("path", _params(CASES))
def test_a_world_is_told_as_written_and_alike_on_every_way(path: Path, way: Way, fresh_store: FreshStore) -> None:
    world, store = WORLDS[path], fresh_store(way.store)
    with way.open(store) as graphs:
        run = Run(world, graphs)
        reports = run.answers(graphs)
        for question, report in zip(world.ask, reports, strict=True):
            assert told(report, question.expect, run.names) == question.expect, question.check
    # A service that starts on the same log later has folded it in one go, and says the same.
    with way.open(store) as started_later:
        assert run.answers(started_later) == reports
    plainest = _all_reports(world, PLAINEST, fresh_store(PLAINEST.store))
    assert _digests(run.reports + reports) == _digests(plainest)


@pytest.mark.promise("G-16")
@pytest.mark.parametrize("path", _params(RENAMED))
def test_a_world_whose_hidden_parts_have_other_names_is_told_alike(path: Path, fresh_store: FreshStore) -> None:
    world, other = WORLDS[path], read_world(path, otherwise_named=True)
    assert other.agents.keys() != world.agents.keys(), "the other names must name somebody otherwise"
    reports, renamed = (_all_reports(one, PLAINEST, fresh_store(PLAINEST.store)) for one in (world, other))
    assert renamed == reports
    assert _digests(renamed) == _digests(reports)


@pytest.mark.promise("G-11")
@pytest.mark.parametrize("path", _params(path for path, world in WORLDS.items() if not world.then))
def test_agents_that_arrive_the_other_way_round_are_the_same_to_who_reads_all(path: Path, fresh_store: FreshStore) -> None:
    world = WORLDS[path].model_copy(update={"ask": [question for question in WORLDS[path].ask if question.reader is None]})
    backwards = world.model_copy(update={"agents": dict(reversed(world.agents.items()))})
    reports, others = (_all_reports(one, PLAINEST, fresh_store(PLAINEST.store)) for one in (world, backwards))
    assert _digests(others) == _digests(reports)


@pytest.mark.promise("G-11")
def test_every_world_meets_every_kernel_store_and_transport() -> None:
    assert {way.kernel for way in WAYS} == {"reference", "jit"}
    assert {way.store for way in WAYS} == {"memory", "sqlite", "postgres"}
    assert {way.transport for way in WAYS} == {"process", "grpc"}
    assert len(CASES) >= 25


@pytest.mark.parametrize(
    "text",
    [
        "promise: [G-1]\nagents: {'acme:a': {emit: [x]}}\nask: [{check: 'acme:a', expect: {verification: complete, loops: []}}]",
        "promise: [G-1]\nagents: {'acme:a': {}}\nask: [{check: 'acme:a', expect: {verification: complete, loops: [], notes: []}}]",
        "promise: [G-1]\nagents: {'acme:a': {}}\nask: []",
        "promise: []\nagents: {'acme:a': {}}\nask: [{check: 'acme:a', expect: {verification: complete, loops: []}}]",
        "promise: [G-1]\nagents: {'acme:hidden': {}}\nask: [{check: 'acme:hidden', expect: {verification: complete, loops: []}}]",
    ],
    ids=["misspelt declaration", "misspelt expectation", "no question", "no promise", "agent named hidden"],
)
def test_a_world_that_says_something_unknown_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "world.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValidationError):
        read_world(path)
