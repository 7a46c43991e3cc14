"""The use cases of the graph service, on real stores."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Semaphore

import pytest

from graphsvc.domain.answers import Neighbour
from graphsvc.domain.errors import InvalidInput, LogDamaged, Overloaded, RevisionAhead, StaleVersion, UnknownAgent, VersionConflict
from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion, declare
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.domain.report import Report, Verification
from graphsvc.judge import judge
from graphsvc.kernels import reference
from graphsvc.kernels.nodes import Nodes
from graphsvc.kernels.rows import Answer, Question
from graphsvc.service import GraphService
from graphsvc.store.opening import MEMORY, open_store
from tests.graphsvc.folding import fold, reader, version_of
from tests.oracle import Agent, agent

POLICY = LimitPolicy(default=Limits(), ceiling=Limits(max_loops=50, max_visits=2_000_000))
WAIT_S = 120

A, B = agent("a", ["x"], ["y"]), agent("b", ["y"], ["x"])


def serve(url: str = MEMORY) -> GraphService:
    return GraphService(open_store(url), POLICY, reference.search)


@pytest.fixture
def service() -> Iterator[GraphService]:
    with closing(serve()) as opened:
        yield opened


@pytest.fixture(params=["memory", "sqlite"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphService]:
    """A service on each kind of store that needs no server."""
    with closing(serve(MEMORY if request.param == "memory" else f"sqlite:///{tmp_path / 'log.db'}")) as opened:
        yield opened


def check(service: GraphService, proposed: Agent, scopes: tuple[str, ...] = ("*",), **asked: int) -> Report:
    version = version_of(proposed)
    return service.check(version.agent, version.declaration, reader(scopes), **asked)


def paths(report: Report) -> list[list[str]]:
    return [[named.text if named else "?" for named in loop.agents] for loop in report.loops]


def exported(service: GraphService, scopes: tuple[str, ...] = ("*",), *asked: str) -> list[tuple[str, int]]:
    _, versions = service.export(reader(scopes), [parse_agent(f"{scope}:any").scope for scope in asked])
    return [(version.agent.text, version.number) for version in versions]


# Judging


@pytest.mark.promise("G-3")
def test_a_version_is_judged_in_place_of_its_agents_current_one(service: GraphService) -> None:
    service.import_versions([version_of(A), version_of(B)])
    assert paths(check(service, A)) == [["*:a", "*:b"]]
    deaf = agent("a", [], ["y"])
    assert paths(check(service, deaf)) == []
    assert paths(service.publish(version_of(deaf, 2), EVERYTHING).report) == []
    assert paths(check(service, B)) == []
    assert paths(service.publish(version_of(A, 3), EVERYTHING).report) == [["*:a", "*:b"]]


@pytest.mark.promise("G-3", "G-20")
def test_checking_stores_nothing(service: GraphService) -> None:
    service.import_versions([version_of(B)])
    before = (service.revision, service.status(EVERYTHING), exported(service))
    assert paths(check(service, A)) == [["*:a", "*:b"]]
    assert (service.revision, service.status(EVERYTHING), exported(service)) == before


@pytest.mark.promise("G-7")
@pytest.mark.parametrize(
    ("asked", "applied"),
    [
        ({}, (10, 1_000_000)),
        ({"max_loops": 1}, (1, 1_000_000)),
        ({"max_loops": 50, "max_visits": 2_000_000}, (50, 2_000_000)),
        ({"max_loops": 51, "max_visits": 2_000_001}, (50, 2_000_000)),
        ({"max_visits": 0}, (10, 0)),
    ],
)
def test_limits_are_the_requests_up_to_the_ceiling_or_else_the_defaults(
    service: GraphService, asked: dict[str, int], applied: tuple[int, int]
) -> None:
    service.publish(version_of(B), EVERYTHING)
    for report in (check(service, A, **asked), service.publish(version_of(A), EVERYTHING, **asked).report):
        assert (report.limits.max_loops, report.limits.max_visits) == applied


@pytest.mark.promise("G-7")
def test_the_limits_are_what_stops_the_search(service: GraphService) -> None:
    others = [agent(name, ["y"], ["x"]) for name in "bcdefghijklm"]
    service.import_versions(map(version_of, [A, *others]))
    assert len(check(service, A).loops) == 10
    one = check(service, A, max_loops=1)
    assert (paths(one), one.verification) == ([["*:a", "*:b"]], Verification.MORE_LOOPS)
    none = check(service, A, max_visits=0)
    assert (paths(none), none.verification) == ([], Verification.NOT_VERIFIED)


@pytest.mark.promise("G-7", "G-24")
@pytest.mark.parametrize(("asked", "field"), [({"max_loops": 0}, "limits.max_loops"), ({"max_visits": -1}, "limits.max_visits")])
def test_limits_below_their_least_are_refused_and_nothing_is_stored(
    service: GraphService, asked: dict[str, int], field: str
) -> None:
    with pytest.raises(InvalidInput) as checked:
        check(service, A, **asked)
    with pytest.raises(InvalidInput) as published:
        service.publish(version_of(A), EVERYTHING, **asked)
    for refused in (checked, published):
        assert [violation.field for violation in refused.value.violations] == [field]
    assert (service.revision, exported(service)) == (0, [])


# Revisions


@pytest.mark.promise("G-21")
def test_every_answer_carries_the_revision_it_was_computed_at(service: GraphService) -> None:
    first = service.publish(version_of(A), EVERYTHING)
    assert (first.revision, first.report.revision) == (1, 1)
    second = service.publish(version_of(B), EVERYTHING)
    assert (second.revision, second.report.revision) == (2, 2)
    assert check(service, A).revision == 2
    assert service.describe(parse_agent("*:a"), EVERYTHING).revision == 2
    assert service.retire(parse_agent("*:a")).revision == 3
    assert service.import_versions([version_of(A, 2)]).revision == 4
    assert service.export(EVERYTHING)[0] == service.status(EVERYTHING).revision == service.revision == 4


@pytest.mark.promise("G-21")
def test_a_revision_ahead_of_the_log_is_refused_with_both_numbers(service: GraphService) -> None:
    service.publish(version_of(A), EVERYTHING)
    assert check(service, A, at_least_revision=1).revision == 1
    for ask in (
        lambda: check(service, A, at_least_revision=2),
        lambda: service.describe(parse_agent("*:a"), EVERYTHING, at_least_revision=2),
    ):
        with pytest.raises(RevisionAhead) as refused:
            ask()
        assert (refused.value.wanted, refused.value.head) == (2, 1)


@pytest.mark.promise("G-21", "G-27")
def test_an_answer_comes_from_no_earlier_revision_than_the_one_asked_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    with closing(serve(url)) as one, closing(serve(url)) as two:
        one.import_versions([version_of(A), version_of(B)])
        assert two.revision == 0
        assert check(two, A).revision == 0
        report = check(two, A, at_least_revision=2)
        assert (report.revision, paths(report)) == (2, [["*:a", "*:b"]])
        revision = one.publish(version_of(agent("c", ["y"], ["x"])), EVERYTHING).revision
        neighbours = two.describe(parse_agent("*:a"), EVERYTHING, at_least_revision=revision).starts
        assert [neighbour.agent.text for neighbour in neighbours] == ["*:b", "*:c"]


@pytest.mark.promise("G-21", "G-16")
def test_visits_and_sizes_are_for_readers_of_the_whole_installation_only(service: GraphService) -> None:
    a, b = agent("a", ["x"], ["y"], "acme"), agent("b", ["y"], ["x"], "globex")
    service.import_versions([version_of(a), version_of(b)])
    visits = check(service, a).visits
    assert visits is not None
    assert visits > 0
    sizes = service.status(EVERYTHING).sizes
    assert sizes is not None
    assert tuple(sizes) == (2, 2, 4)
    for scopes in ((), ("acme",), ("acme", "globex")):
        assert check(service, a, scopes).visits is None
        assert service.status(reader(scopes)).sizes is None


@pytest.mark.promise("G-7", "G-20")
def test_the_status_tells_the_limits_that_apply(service: GraphService) -> None:
    status = service.status(reader(()))
    assert (status.default_limits, status.ceilings) == (POLICY.default, POLICY.ceiling)


# Publishing


@pytest.mark.promise("G-22")
def test_the_same_content_again_changes_nothing_and_gets_the_first_revision_and_a_fresh_report(stored: GraphService) -> None:
    first = stored.publish(version_of(A), EVERYTHING)
    assert (first.revision, first.created, paths(first.report)) == (1, True, [])
    stored.publish(version_of(B), EVERYTHING)
    again = stored.publish(version_of(A), EVERYTHING)
    assert (again.revision, again.created) == (1, False)
    assert (again.report.revision, paths(again.report)) == (2, [["*:a", "*:b"]])
    stored.publish(version_of(agent("a", ["x"], ["z"]), 2), EVERYTHING)
    stored.publish(version_of(agent("a", ["x"], []), 5), EVERYTHING)
    late = stored.publish(version_of(A), EVERYTHING)
    assert (late.revision, late.created, late.report.revision, stored.revision) == (1, False, 4, 4)
    assert exported(stored) == [("*:a", 5), ("*:b", 1)]


@pytest.mark.promise("G-22")
@pytest.mark.parametrize(
    "other",
    [agent("a", ["x"], []), agent("a", [], ["y"]), Agent("a", A.hears, A.emits, guarded=A.emits)],
    ids=["emits", "hears", "contract"],
)
def test_other_content_under_a_known_number_is_refused_and_changes_nothing(stored: GraphService, other: Agent) -> None:
    stored.publish(version_of(A), EVERYTHING)
    stored.publish(version_of(agent("a", ["x"], ["z"]), 2), EVERYTHING)
    for send in (stored.publish, lambda version, _: stored.import_versions([version])):
        with pytest.raises(VersionConflict) as refused:
            send(version_of(other, 1), EVERYTHING)
        assert (refused.value.agent, refused.value.number) == ("*:a", 1)
    assert (stored.revision, exported(stored)) == (2, [("*:a", 2)])


@pytest.mark.promise("G-22")
def test_a_new_number_below_the_current_one_is_refused_and_a_gap_above_it_is_not(stored: GraphService) -> None:
    stored.publish(version_of(A, 3), EVERYTHING)
    stored.publish(version_of(A, 7), EVERYTHING)
    for send in (stored.publish, lambda version, _: stored.import_versions([version])):
        with pytest.raises(StaleVersion) as refused:
            send(version_of(A, 5), EVERYTHING)
        assert (refused.value.agent, refused.value.number, refused.value.current) == ("*:a", 5, 7)
    assert (stored.revision, exported(stored)) == (2, [("*:a", 7)])


@pytest.mark.promise("G-22", "P-11")
def test_retiring_is_a_revision_and_retiring_again_is_none(stored: GraphService) -> None:
    stored.import_versions([version_of(A), version_of(B)])
    gone = stored.retire(parse_agent("*:b"))
    assert (gone.revision, gone.created) == (3, True)
    assert paths(check(stored, A)) == []
    again = stored.retire(parse_agent("*:b"))
    assert (again.revision, again.created, stored.revision) == (3, False, 3)
    with pytest.raises(UnknownAgent):
        stored.retire(parse_agent("*:never published"))
    assert stored.revision == 3


@pytest.mark.promise("G-22", "P-11")
def test_a_retired_agent_comes_back_by_a_new_version_only(stored: GraphService) -> None:
    stored.import_versions([version_of(A), version_of(B)])
    stored.retire(parse_agent("*:b"))
    again = stored.publish(version_of(B, 1), EVERYTHING)
    assert (again.revision, again.created, exported(stored)) == (2, False, [("*:a", 1)])
    back = stored.publish(version_of(B, 2), EVERYTHING)
    assert (back.revision, back.created, paths(back.report)) == (4, True, [["*:b", "*:a"]])
    assert exported(stored) == [("*:a", 1), ("*:b", 2)]


@pytest.mark.promise("G-22", "G-25")
def test_what_was_acknowledged_is_there_for_a_service_that_opens_the_store_afterwards(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    with closing(serve(url)) as one:
        one.import_versions([version_of(A), version_of(B)])
        one.publish(version_of(agent("c", ["y"], ["x"]), 4), EVERYTHING)
        one.retire(parse_agent("*:b"))
        # The first one is still open: nothing may depend on its being closed in order.
        with closing(serve(url)) as two:
            assert (two.revision, exported(two)) == (4, [("*:a", 1), ("*:c", 4)])
            assert check(two, A).digest == check(one, A).digest


# Importing


@pytest.mark.promise("G-20", "G-24", "G-25")
@pytest.mark.parametrize("fault", ["conflict", "stale", "input"])
def test_an_import_is_stored_whole_or_not_at_all(stored: GraphService, fault: str) -> None:
    stored.import_versions([version_of(A, 2)])

    def versions() -> Iterator[AgentVersion]:
        yield version_of(B)
        yield version_of(agent("c", ["y"], ["x"]))
        if fault == "input":
            yield AgentVersion(parse_agent("*:d"), 1, declare([""], []))
        yield version_of(agent("a", ["other"]), 2 if fault == "conflict" else 1)

    with pytest.raises({"conflict": VersionConflict, "stale": StaleVersion, "input": InvalidInput}[fault]):
        stored.import_versions(versions())
    assert (stored.revision, exported(stored)) == (1, [("*:a", 2)])
    done = stored.import_versions([version_of(B)])
    assert (done.revision, done.created, done.unchanged) == (2, 1, 0)


@pytest.mark.promise("G-20")
def test_a_conflict_within_one_import_is_refused(service: GraphService) -> None:
    with pytest.raises(VersionConflict):
        service.import_versions([version_of(A), version_of(agent("a", ["other"]))])
    with pytest.raises(StaleVersion):
        service.import_versions([version_of(A, 2), version_of(A, 1)])
    assert service.revision == 0
    done = service.import_versions([version_of(A), version_of(A), version_of(agent("a", ["other"]), 3)])
    assert (done.revision, done.created, done.unchanged) == (2, 2, 1)
    assert exported(service) == [("*:a", 3)]


@pytest.mark.promise("G-20", "G-22")
def test_number_0_is_the_next_number_where_the_content_differs_from_the_current_one(service: GraphService) -> None:
    other = agent("a", ["x"], ["z"])

    def load(*versions: Agent) -> tuple[int, int]:
        done = service.import_versions([version_of(one, 0) for one in versions])
        return done.created, done.unchanged

    assert load(A, B) == (2, 0)
    assert load(A, B) == (0, 2)
    assert exported(service) == [("*:a", 1), ("*:b", 1)]
    assert load(other, other, A) == (2, 1)
    assert exported(service) == [("*:a", 3), ("*:b", 1)]
    service.retire(parse_agent("*:a"))
    assert load(A) == (1, 0)
    assert exported(service) == [("*:a", 4), ("*:b", 1)]
    service.publish(version_of(other, 9), EVERYTHING)
    assert load(A) == (1, 0)
    assert exported(service) == [("*:a", 10), ("*:b", 1)]


# Exporting and describing


@pytest.mark.promise("G-20", "G-13")
def test_an_export_holds_the_published_versions_of_the_scopes_asked_for_that_the_reader_may_read(service: GraphService) -> None:
    places = ["*", "acme", "acme/platform", "acme/finance", "globex"]
    service.import_versions([version_of(agent("n", ["x"], ["y"], scope)) for scope in places])
    service.publish(version_of(agent("m", scope="acme")), EVERYTHING)
    service.retire(parse_agent("acme:m"))

    def scopes(readable: tuple[str, ...], *asked: str) -> list[str]:
        return [text.partition(":")[0] for text, _ in exported(service, readable, *asked)]

    assert scopes(("*",)) == sorted(places)
    assert scopes(("acme",)) == ["acme", "acme/finance", "acme/platform"]
    assert scopes(("*",), "acme/platform", "globex") == ["acme/platform", "globex"]
    assert scopes(("acme/platform", "globex"), "acme") == ["acme/platform"]
    assert scopes(("acme",), "globex") == scopes(()) == []


@pytest.mark.promise("G-20")
def test_what_is_exported_can_be_imported_again(service: GraphService) -> None:
    guarded = Agent("c", frozenset(["y"]), frozenset(["x", "z"]), "acme", frozenset(["z"]))
    service.import_versions([version_of(A, 4), version_of(B), version_of(guarded, 2)])
    _, versions = service.export(EVERYTHING)
    with closing(serve()) as other:
        other.import_versions(versions)
        assert list(other.export(EVERYTHING)[1]) == list(service.export(EVERYTHING)[1])


def described(service: GraphService, scopes: tuple[str, ...], page_size: int) -> tuple[list[Neighbour], list[Neighbour], int]:
    """All neighbours back and ahead, gathered over the pages, and the number of pages."""
    back, ahead, token, pages = [], [], "", 0
    while True:
        page = service.describe(parse_agent("acme:hub"), reader(scopes), page_size=page_size, page_token=token)
        assert len(page.started_by) <= page_size
        assert len(page.starts) <= page_size
        assert page.version == version_of(HUB)
        back += page.started_by
        ahead += page.starts
        pages, token = pages + 1, page.next_page_token
        if not token:
            return back, ahead, pages
        assert pages < 50


HUB = agent("hub", ["in", "in too", "own"], ["out", "out too", "own"], "acme")


@pytest.mark.promise("G-20", "G-14")
@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
def test_pages_hold_every_readable_neighbour_exactly_once_in_order(service: GraphService, page_size: int) -> None:
    names = ["9", "10", "a", "é", "n"]
    sources = [agent(name, [], ["in", "in too"] if name == "a" else ["in"], "acme") for name in names]
    twins = [agent("n", ["out"], ["in too"], scope) for scope in ("*", "acme/platform", "globex")]
    targets = [agent(f"t{i}", ["out", "out too"], [], "acme") for i in range(4)]
    service.import_versions(map(version_of, [HUB, *sources, *twins, *targets]))
    one, two = ("in",), ("in", "in too")
    back = [("acme:10", one), ("acme:9", one), ("acme:a", two), ("acme:n", one), ("acme/platform:n", ("in too",)), ("acme:é", one)]
    ahead = [("acme/platform:n", ("out",)), *((f"acme:t{i}", ("out", "out too")) for i in range(4))]
    found_back, found_ahead, pages = described(service, ("acme",), page_size)
    assert [(neighbour.agent.text, neighbour.events) for neighbour in found_back] == back
    assert [(neighbour.agent.text, neighbour.events) for neighbour in found_ahead] == ahead
    assert pages == -(-len(back) // page_size)
    everyone = described(service, ("*",), page_size)
    assert [neighbour.agent.text for neighbour in everyone[0]][3:7] == ["*:n", "acme:n", "acme/platform:n", "globex:n"]


@pytest.mark.promise("G-20")
def test_a_page_of_a_hubs_neighbours_puts_no_others_into_words(service: GraphService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.import_versions([version_of(agent("hub", [], ["e"]))])
    service.import_versions([version_of(agent(f"l{i:04}", ["e"], [])) for i in range(2_000)])
    named: list[int] = []
    put_into_words = Nodes.name

    def counted(nodes: Nodes, node: int) -> str:
        named.append(node)
        return put_into_words(nodes, node)

    monkeypatch.setattr(Nodes, "name", counted)
    first = service.describe(parse_agent("*:hub"), EVERYTHING, page_size=10)
    second = service.describe(parse_agent("*:hub"), EVERYTHING, page_size=10, page_token=first.next_page_token)
    assert [neighbour.agent.name for neighbour in first.starts + second.starts] == [f"l{i:04}" for i in range(20)]
    assert len(named) < 100


@pytest.mark.promise("G-16", "G-20")
def test_an_agent_out_of_sight_a_retired_one_and_one_that_never_was_are_one_answer(service: GraphService) -> None:
    service.import_versions([version_of(agent("hidden", ["x"], ["y"], "globex")), version_of(agent("gone", scope="acme"))])
    service.retire(parse_agent("acme:gone"))
    answers = set()
    for ref in ("globex:hidden", "globex:never was", "acme:gone", "acme:never was", "initech/lab:hidden"):
        with pytest.raises(UnknownAgent) as refused:
            service.describe(parse_agent(ref), reader(["acme"]))
        answers.add((type(refused.value), refused.value.args))
    assert len(answers) == 1
    assert service.describe(parse_agent("globex:hidden"), EVERYTHING).version.number == 1


@pytest.mark.promise("G-23", "G-24")
@pytest.mark.parametrize("token", ["?", "AAAA", "bnVsbA==", "W10=", "W1siYSIsMV0sWyJiIiwiYyJdXQ==", "é"])
def test_a_page_token_of_somebody_else_is_refused(service: GraphService, token: str) -> None:
    service.publish(version_of(A), EVERYTHING)
    with pytest.raises(InvalidInput) as refused:
        service.describe(parse_agent("*:a"), EVERYTHING, page_token=token)
    assert [violation.field for violation in refused.value.violations] == ["page_token"]


@pytest.mark.promise("G-24")
@pytest.mark.parametrize("size", [-1, 1_001])
def test_a_page_size_out_of_bounds_is_refused(service: GraphService, size: int) -> None:
    service.publish(version_of(A), EVERYTHING)
    with pytest.raises(InvalidInput) as refused:
        service.describe(parse_agent("*:a"), EVERYTHING, page_size=size)
    assert [violation.field for violation in refused.value.violations] == ["page_size"]


# Many at once


@pytest.mark.promise("G-21", "G-22")
def test_each_report_of_parallel_checks_and_publications_belongs_to_its_revision(service: GraphService) -> None:
    history: list[Agent] = [A]
    service.publish(version_of(A), EVERYTHING)
    checked, done = Semaphore(0), Event()
    publications: list[tuple[Agent, Report]] = []

    def publish() -> None:
        try:
            for number in range(1, 41):
                # Every publication moves the loops of the one that is checked.
                one = agent(f"n{number % 5}", ["y"], ["x"] if number % 3 else [])
                history.append(one)
                publications.append((one, service.publish(version_of(one, number), EVERYTHING).report))
                assert checked.acquire(timeout=WAIT_S)
        finally:
            done.set()

    def ask() -> list[Report]:
        reports = []
        while not done.is_set():
            reports.append(check(service, A))
            checked.release()
        return reports

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        pool.submit(publish).result(WAIT_S)
        checks = [report for future in asking for report in future.result(WAIT_S)]
    assert service.revision == len(history) == 41
    seen = {(A, report.revision, report.digest) for report in checks}
    seen |= {(one, report.revision, report.digest) for one, report in publications}
    assert {report.revision for _, report in publications} == set(range(2, 42))
    for proposed, revision, digest in seen:
        version = version_of(proposed)
        graph = fold(history[:revision])
        replayed = judge(graph, version.agent, version.declaration, EVERYTHING, Limits(), reference.search, None)
        assert replayed.digest == digest


@pytest.mark.promise("G-23")
def test_a_publication_that_waits_too_long_for_its_turn_is_refused_and_the_one_before_it_is_finished() -> None:
    entered, go_on = Event(), Event()

    def slow(question: Question) -> Answer:
        entered.set()
        assert go_on.wait(WAIT_S)
        return reference.search(question)

    service = GraphService(open_store(MEMORY), POLICY, slow, patience_s=0.05)
    with closing(service), ThreadPoolExecutor(1) as pool:
        service.import_versions([version_of(B)])
        first = pool.submit(service.publish, version_of(A), EVERYTHING)
        try:
            assert entered.wait(WAIT_S)
            for change in (
                lambda: service.publish(version_of(B), EVERYTHING),
                lambda: service.import_versions([version_of(B)]),
                lambda: service.retire(parse_agent("*:b")),
            ):
                with pytest.raises(Overloaded):
                    change()
        finally:
            go_on.set()
        assert first.result(WAIT_S).revision == 2
        assert exported(service) == [("*:a", 1), ("*:b", 1)]
        assert service.publish(version_of(B, 2), EVERYTHING).revision == 3


@pytest.mark.promise("G-25")
def test_a_log_that_ends_before_what_was_read_from_it_is_noticed_and_nothing_is_appended(tmp_path: Path) -> None:
    older, newer = tmp_path / "older", tmp_path / "newer"
    with closing(serve(f"sqlite:///{older}")) as before:
        before.publish(version_of(A), EVERYTHING)
    with closing(serve(f"sqlite:///{newer}")) as after:
        after.import_versions([version_of(A), version_of(B)])
    opened = {"now": open_store(f"sqlite:///{newer}"), "restored": open_store(f"sqlite:///{older}")}
    with closing(opened["restored"]), closing(GraphService(opened["now"], POLICY, reference.search)) as service:
        service._store = opened["restored"]  # what a database brought back from an older copy looks like to a running service
        for act in (service.catch_up, lambda: service.publish(version_of(B, 2), EVERYTHING)):
            with pytest.raises(LogDamaged):
                act()
        assert opened["restored"].head() == 1
        service._store = opened["now"]
