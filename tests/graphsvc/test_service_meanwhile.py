"""What callers that read in pieces get when the graph changes meanwhile, and that files are judged like publications."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from graphsvc.domain.limits import LimitPolicy, Limits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import parse_agent
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.kernels import reference
from graphsvc.service import GraphService, check_files
from graphsvc.store.opening import MEMORY, open_store
from tests.graphsvc.folding import reader, version_of
from tests.oracle import Agent, agent

HUB = agent("hub", ["in"], ["out"], "acme")


def above(name: str) -> Agent:
    """An agent that starts the hub."""
    return agent(name, [], ["in"], "acme")


@pytest.fixture
def service() -> Iterator[GraphService]:
    with closing(GraphService(open_store(MEMORY), LimitPolicy(default=Limits(), ceiling=Limits()), reference.search)) as opened:
        opened.import_versions(map(version_of, [HUB, *map(above, "bdfh")]))
        yield opened


@pytest.mark.promise("G-20")
def test_what_is_published_during_an_export_does_not_slip_into_it(service: GraphService) -> None:
    revision, versions = service.export(EVERYTHING)
    first = next(versions)
    service.retire(parse_agent("acme:d"))
    service.publish(version_of(agent("f", ["other"], [], "acme"), 2), EVERYTHING)
    assert (revision, [version.agent.name for version in (first, *versions)]) == (5, ["b", "d", "f", "h", "hub"])


@pytest.mark.promise("G-20")
def test_a_page_goes_on_where_the_one_before_ended_although_that_agent_is_gone(service: GraphService) -> None:
    page = service.describe(parse_agent(HUB.ref), EVERYTHING, page_size=2)
    assert [neighbour.agent.name for neighbour in page.started_by] == ["b", "d"]
    service.retire(parse_agent("acme:d"))
    service.import_versions(map(version_of, map(above, "ae")))
    page = service.describe(parse_agent(HUB.ref), EVERYTHING, page_size=2, page_token=page.next_page_token)
    assert [neighbour.agent.name for neighbour in page.started_by] == ["e", "f"]


@pytest.mark.promise("G-24")
def test_an_import_whose_source_fails_midway_stores_nothing_and_lets_the_next_one_in(service: GraphService) -> None:
    def source() -> Iterator[AgentVersion]:
        yield version_of(above("new"))
        raise OSError("the line went dead")

    with pytest.raises(OSError, match="went dead"):
        service.import_versions(source())
    assert service.revision == 5
    assert service.import_versions([version_of(above("new"))]).revision == 6


@pytest.mark.promise("O-3")
@pytest.mark.parametrize("scopes", [("*",), ("acme",), ()])
def test_files_are_judged_as_the_service_judges_what_is_published(service: GraphService, scopes: tuple[str, ...]) -> None:
    spy = agent("spy", ["out"], ["in"], "globex")
    service.import_versions([version_of(spy)])
    versions = list(service.export(EVERYTHING)[1])
    reports = list(check_files(versions, None, reader(scopes), Limits(), reference.search))
    assert [report.agent for report in reports] == [version.agent for version in versions]
    assert sum(len(report.loops) for report in reports) == 2
    for report, version in zip(reports, versions, strict=True):
        assert report.revision is None
        assert report.digest == service.check(version.agent, version.declaration, reader(scopes)).digest
